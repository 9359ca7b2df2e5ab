/**
 * Lines that the visitor drew across a city's chart. Each keeps the number and the unit it was set in, so that 80 °F stays
 * 80 °F whatever unit the page shows, and is compared in that unit.
 */
import type { CityState } from "./city";
import { isReference } from "./city";
import { addDays, dayStart_ms } from "./zone";

export interface Threshold {
  value: number;
  unit: "celsius" | "fahrenheit";
}

export const THRESHOLDS_MAX = 8;
const LEAST = -150;
const MOST = 200;

export function threshold_c({ value, unit }: Threshold): number {
  return unit === "fahrenheit" ? ((value - 32) * 5) / 9 : value;
}

/** The threshold at a temperature, to the tenth of the unit. */
export function thresholdAt(temp_c: number, unit: Threshold["unit"]): Threshold {
  const value = unit === "fahrenheit" ? temp_c * 1.8 + 32 : temp_c;
  return { value: Math.round(value * 10) / 10 || 0, unit };
}

/** Parses a typed number; a comma is a decimal point. Null for anything else, or an impossible temperature. */
export function parseValue(text: string): number | null {
  const plain = text.trim().replace(",", ".").replace("−", "-");
  const value = plain === "" ? Number.NaN : Number(plain);
  return Number.isFinite(value) && value >= LEAST && value <= MOST ? Math.round(value * 10) / 10 || 0 : null;
}

function isSame(a: Threshold, b: Threshold): boolean {
  return Math.abs(threshold_c(a) - threshold_c(b)) < 0.005;
}

/** With one more, if there is room and it is not there yet. */
export function withThreshold(all: readonly Threshold[], fresh: Threshold): readonly Threshold[] {
  return all.length >= THRESHOLDS_MAX || all.some((one) => isSame(one, fresh)) ? all : [...all, fresh];
}

/** With the one at `index` elsewhere; it is gone if another lies there already. */
export function movedThreshold(all: readonly Threshold[], index: number, to: Threshold): readonly Threshold[] {
  if (!all[index]) return all;
  if (all.some((one, i) => i !== index && isSame(one, to))) return all.filter((_, i) => i !== index);
  return all.map((one, i) => (i === index ? to : one));
}

export function withoutThreshold(all: readonly Threshold[], index: number): readonly Threshold[] {
  return all.filter((_, i) => i !== index);
}

/** Reads stored thresholds; invalid ones are left out. */
export function readThresholds(value: unknown): readonly Threshold[] {
  const read: Threshold[] = [];
  for (const each of Array.isArray(value) ? value : []) {
    const { value: number, unit } = (each ?? {}) as Partial<Record<string, unknown>>;
    const known = typeof number === "number" ? parseValue(String(number)) : null;
    if (known !== null && (unit === "celsius" || unit === "fahrenheit")) read.push({ value: known, unit });
  }
  return read.reduce<readonly Threshold[]>(withThreshold, []);
}

/** To the hundredth: a reading that was converted on its way still equals the number it was. */
function isReached(temp_c: number, { value, unit }: Threshold): boolean {
  const read = unit === "fahrenheit" ? temp_c * 1.8 + 32 : temp_c;
  return Math.round(read * 100) >= Math.round(value * 100);
}

export interface Reached {
  /** The first reading of the day that reached it; null when only a reported maximum shows it. */
  observed_ms: number | null;
}

/** When the city's day reached the threshold; null if it has not. */
export function reachedAt(state: CityState, threshold: Threshold): Reached | null {
  const from = dayStart_ms(state.timezone, state.local_date);
  const to = dayStart_ms(state.timezone, addDays(state.local_date, 1));
  let first: number | null = null;
  for (const { series_key, x, y } of state.series) {
    if (isReference(series_key)) continue;
    const at = x.findIndex((time, i) => time >= from && time < to && isReached(y[i] as number, threshold));
    if (at >= 0) first = Math.min(first ?? Number.POSITIVE_INFINITY, x[at] as number);
  }
  if (first !== null) return { observed_ms: first };
  return state.high && isReached(state.high.temp_c, threshold) ? { observed_ms: null } : null;
}
