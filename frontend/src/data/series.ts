/** One curve of a city as columns: x ascending and unique, whatever order its points came in. */
import type { Point } from "../client/city_wire";

export interface Series {
  /** `<series_key>/<source>`, or `runway:<name>` for one runway's own curve. */
  id: string;
  series_key: string;
  source: string;
  label: string | null;
  /** Seconds between two readings as the source declares it, or null. */
  cadence_s: number | null;
  /** The runway's name, for a runway's own curve. */
  runway: string | null;
  is_settlement: boolean;
  x: readonly number[];
  y: readonly number[];
}

const KEPT_MS = 50 * 3_600_000;
const POINTS_MAX = 6_000;
const MEDIAN_OF = 60;
const DEFAULT_CADENCE_S = 600;
export function seriesId(series_key: string, source: string): string {
  return `${series_key}/${source}`;
}

export function emptySeries(series_key: string, source: string, more: Partial<Series> = {}): Series {
  const id = seriesId(series_key, source);
  return {
    id,
    series_key,
    source,
    label: null,
    cadence_s: null,
    runway: null,
    is_settlement: false,
    x: [],
    y: [],
    ...more,
  };
}

function place(x: readonly number[], at: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((x[middle] as number) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The series with the points in it: late ones in their place, one for a time already there instead of it. */
export function withPoints(series: Series, points: readonly Point[]): Series {
  if (points.length === 0) return series;
  const x = [...series.x];
  const y = [...series.y];
  for (const [time, value] of points) {
    const at = place(x, time);
    const replaced = x[at] === time ? 1 : 0;
    x.splice(at, replaced, time);
    y.splice(at, replaced, value);
  }
  // Cut by time, not by arrival: a late point is not what makes the newest one go.
  const oldest = (x[x.length - 1] ?? 0) - KEPT_MS;
  const from = Math.max(place(x, oldest), x.length - POINTS_MAX);
  return { ...series, x: x.slice(from), y: y.slice(from) };
}

/** Seconds between two readings: what the source declares, unless its readings are rarer. */
export function cadence_s(series: Series): number {
  const declared = series.cadence_s;
  const recent = series.x.slice(-MEDIAN_OF);
  const steps = recent.slice(1).map((time, i) => (time - (recent[i] as number)) / 1_000);
  if (steps.length < 3) return declared ?? DEFAULT_CADENCE_S;
  steps.sort((a, b) => a - b);
  return Math.max(declared ?? 0, steps[steps.length >>> 1] as number);
}

export interface Columns {
  x: number[];
  /** One per series; null where the line breaks, undefined where only another series has a point. */
  y: (number | null | undefined)[][];
}

interface Lane {
  x: number[];
  y: (number | null)[];
}

/** The curve with a null in the middle of each hole, where its line must break. */
function withBreaks(series: Series): Lane {
  const limit_ms = cadence_s(series) * 2 * 1_000;
  const lane: Lane = { x: [], y: [] };
  series.x.forEach((time, i) => {
    const before = series.x[i - 1] ?? time;
    if (time - before > limit_ms) {
      lane.x.push(Math.floor((before + time) / 2));
      lane.y.push(null);
    }
    lane.x.push(time);
    lane.y.push(series.y[i] as number);
  });
  return lane;
}

/** The curves over one common x. A hole of more than twice the cadence is a hole, not a line. */
export function columns(all: readonly Series[]): Columns {
  const lanes = all.map((series) => ({ ...withBreaks(series), at: 0, column: [] as (number | null | undefined)[] }));
  const x: number[] = [];
  for (;;) {
    const next = Math.min(...lanes.map((lane) => lane.x[lane.at] ?? Number.POSITIVE_INFINITY));
    if (next === Number.POSITIVE_INFINITY) return { x, y: lanes.map(({ column }) => column) };
    x.push(next);
    for (const lane of lanes) {
      const has = lane.x[lane.at] === next;
      lane.column.push(has ? lane.y[lane.at] : undefined);
      if (has) lane.at += 1;
    }
  }
}

/** Highest point with from ≤ x < to, the first of equals; null if there is none. */
export function highest(series: Series, from: number, to: number): Point | null {
  let best: Point | null = null;
  for (let i = place(series.x, from); i < series.x.length && (series.x[i] as number) < to; i += 1) {
    const value = series.y[i] as number;
    if (best === null || value > best[1]) best = [series.x[i] as number, value];
  }
  return best;
}
