/** How late a reading is, in the terms of its source and station; the limits are the server's. */
import type { LimitTable } from "../client/city_limits";

export type Freshness = "fresh" | "expected_wait" | "delayed" | "stale" | "unknown";

/** State of a reading of `source` observed at `observed_ms`; null is unknown, and so is what has no limits. */
export function freshnessOf(
  limits: LimitTable,
  source: string | null,
  observed_ms: number | null,
  now_ms: number,
): Freshness {
  const own = source === null ? undefined : (limits[source] ?? limits.default);
  if (own === undefined || observed_ms === null) return "unknown";
  const age_s = (now_ms - observed_ms) / 1_000;
  if (age_s <= own.fresh_s) return "fresh";
  if (age_s <= own.wait_s) return "expected_wait";
  return age_s <= own.stale_s ? "delayed" : "stale";
}
