/** Reads the server's limits: up to which age a reading of each source counts as fresh, awaited or late. */
import { finite, type Raw, record } from "./parse";

/** Ages in seconds; beyond `stale_s` a reading is stale. */
export interface Limits {
  fresh_s: number;
  wait_s: number;
  stale_s: number;
}

/** By source; `default` is for every source that is not named. */
export type LimitTable = Readonly<Record<string, Limits>>;

export const NO_LIMITS: LimitTable = {};

function limitsOf(value: unknown): Limits | null {
  const raw = record(value);
  const [fresh_s, wait_s, stale_s] = [finite(raw?.fresh_s), finite(raw?.wait_s), finite(raw?.stale_s)];
  return fresh_s === null || wait_s === null || stale_s === null ? null : { fresh_s, wait_s, stale_s };
}

/** Reads `freshness_limits`; what is not readable is left out. `usual` is what holds beside it. */
export function readLimits(value: unknown, usual: LimitTable = NO_LIMITS): LimitTable {
  const own: Raw = record(value) ?? {};
  const read = Object.entries(own).map(([source, each]) => [source, limitsOf(each)] as const);
  const known = read.filter((entry): entry is readonly [string, Limits] => entry[1] !== null);
  return known.length === 0 ? usual : { ...usual, ...Object.fromEntries(known) };
}
