/**
 * The state of one city: a snapshot with every later patch applied in order. Pure functions over frozen values.
 *
 * Invariant: snapshot(t0) + patches(t0..t1) gives what snapshot(t1) gives.
 */
import type { LimitTable } from "../client/city_limits";
import type { CityDetail, CityPatch, Reading } from "../client/city_wire";
import { emptySeries, highest, type Series, seriesId, withPoints } from "./series";
import { addDays, dayStart_ms, localDate } from "./zone";

export interface DayHigh {
  temp_c: number;
  /** When it was first reached, or first reported. */
  observed_ms: number | null;
  source: string | null;
}

/** A maximum that a station reported with a reading; it may lie above every point we have. */
interface Reported extends DayHigh {
  /** The reading that reported it: a correction of that reading replaces it. */
  from: string;
}

export interface CityState {
  city: string;
  display_name: string;
  timezone: string;
  unit: "celsius" | "fahrenheit";
  /** The local day that `high` is of. */
  local_date: string;
  headline: Reading | null;
  high: DayHigh | null;
  /** Of `local_date`. */
  reported: Reported | null;
  series: readonly Series[];
  settlement_label: string | null;
  settlement_source: string | null;
  limits: LimitTable;
}

/** A curve shown beside the others that never counts for the headline or the high. */
export function isReference(series_key: string): boolean {
  return series_key === "reference" || series_key.startsWith("runway:");
}

export function plateId(runway: string): string {
  return `runway:${runway}`;
}

function plate(runway: string, source: string, is_settlement: boolean): Series {
  return emptySeries(plateId(runway), source, { id: plateId(runway), runway, label: runway, is_settlement });
}

function isBetter(candidate: DayHigh, best: DayHigh | null): boolean {
  if (best === null || candidate.temp_c !== best.temp_c) return best === null || candidate.temp_c > best.temp_c;
  return (candidate.observed_ms ?? Number.POSITIVE_INFINITY) < (best.observed_ms ?? Number.POSITIVE_INFINITY);
}

/** The highest reading or report of the local day, the first of equals. */
function dayHigh(state: CityState): DayHigh | null {
  const from = dayStart_ms(state.timezone, state.local_date);
  const to = dayStart_ms(state.timezone, addDays(state.local_date, 1));
  let best: DayHigh | null = null;
  for (const series of state.series) {
    const top = isReference(series.series_key) ? null : highest(series, from, to);
    const candidate = top && { temp_c: top[1], observed_ms: top[0], source: series.source };
    if (candidate && isBetter(candidate, best)) best = candidate;
  }
  if (!state.reported || !isBetter(state.reported, best)) return best;
  const { temp_c, observed_ms, source } = state.reported;
  return { temp_c, observed_ms, source };
}

function onDate(state: CityState, date: string): CityState {
  if (date <= state.local_date) return state;
  return { ...state, local_date: date, reported: null };
}

/** Begins the city's new day once its midnight has passed; the same value if it has not. */
export function rollDay(state: CityState, now_ms: number): CityState {
  const next = onDate(state, localDate(state.timezone, now_ms));
  return next === state ? state : { ...next, high: dayHigh(next) };
}

export function cityFromDetail(detail: CityDetail, now_ms: number): CityState {
  const curves = detail.series.map(({ points, ...named }) =>
    withPoints(emptySeries(named.series_key, named.source, named), points),
  );
  const plates = Object.entries(detail.runways).map(([runway, points]) =>
    withPoints(plate(runway, "runway", runway === detail.settlement_runway), points),
  );
  const own = curves.filter((series) => !series.series_key.startsWith("runway:"));
  const date = detail.local_date ?? localDate(detail.timezone, now_ms);
  const state: CityState = {
    city: detail.city,
    display_name: detail.display_name,
    timezone: detail.timezone,
    unit: detail.unit,
    local_date: date,
    headline: detail.primary,
    high: null,
    reported: detail.high && { ...detail.high, source: null, from: "snapshot" },
    series: [...own, ...plates],
    settlement_label: detail.settlement_label,
    settlement_source: detail.settlement_source,
    limits: detail.limits,
  };
  return rollDay({ ...state, high: dayHigh(state) }, now_ms);
}

function upsert(all: readonly Series[], fresh: Series, change: (series: Series) => Series): readonly Series[] {
  const at = all.findIndex((series) => series.id === fresh.id);
  if (at < 0) return [...all, change(fresh)];
  return all.map((series, i) => (i === at ? change(series) : series));
}

function withCurve(all: readonly Series[], patch: CityPatch): readonly Series[] {
  const { temp_c, observed_ms } = patch;
  if (temp_c === null) return all;
  return upsert(all, emptySeries(patch.series_key, patch.source, { label: patch.station_label }), (series) => ({
    ...withPoints(series, [[observed_ms, temp_c]]),
    cadence_s: patch.cadence_s ?? series.cadence_s,
  }));
}

function withPlates(all: readonly Series[], patch: CityPatch): readonly Series[] {
  return patch.runway_points.reduce((series, { runway, temp_c, is_settlement }) => {
    return upsert(series, plate(runway, patch.source, is_settlement ?? false), (known) => ({
      ...withPoints(known, [[patch.observed_ms, temp_c]]),
      is_settlement: is_settlement ?? known.is_settlement,
      cadence_s: patch.cadence_s ?? known.cadence_s,
    }));
  }, all);
}

/** The newest reading is the headline; a late one joins its curve and changes nothing here. */
function headlineAfter(current: Reading | null, patch: CityPatch): Reading | null {
  if (patch.temp_c === null || isReference(patch.series_key)) return current;
  if (current !== null && patch.observed_ms < current.observed_ms) return current;
  const { observed_ms, source, series_key, station_code, station_label } = patch;
  return { temp_c: patch.temp_c, observed_ms, source, series_key, station_code, station_label };
}

function reportedAfter(current: Reported | null, patch: CityPatch): Reported | null {
  if (patch.max_so_far_c === null || isReference(patch.series_key)) return current;
  const from = `${seriesId(patch.series_key, patch.source)} ${patch.observed_ms}`;
  const reported = { temp_c: patch.max_so_far_c, observed_ms: patch.observed_ms, source: patch.source, from };
  return current?.from === from || isBetter(reported, current) ? reported : current;
}

/** The city after one more patch. */
export function applyPatch(state: CityState, patch: CityPatch, now_ms: number): CityState {
  const date = patch.local_date ?? localDate(state.timezone, patch.observed_ms);
  const dated = onDate(onDate(state, date), localDate(state.timezone, now_ms));
  const next: CityState = {
    ...dated,
    headline: headlineAfter(dated.headline, patch),
    reported: date === dated.local_date ? reportedAfter(dated.reported, patch) : dated.reported,
    series: withPlates(withCurve(dated.series, patch), patch),
  };
  return { ...next, high: dayHigh(next) };
}

/** The curve of this key and source, or the runway's own. */
export function findSeries(state: CityState, id: string): Series | undefined {
  return state.series.find(
    (series) => series.id === id || series.series_key === id || seriesId(series.series_key, series.source) === id,
  );
}
