/** How late a reading is, in the terms of its source. The limits are the server's own (seconds of age). */

export type Freshness = "fresh" | "expected_wait" | "delayed" | "stale" | "unknown";

interface Limits {
  fresh_s: number;
  wait_s: number;
  stale_s: number;
}

const TEN_MINUTES: Limits = { fresh_s: 900, wait_s: 1_200, stale_s: 2_700 };
const QUARTER_HOUR: Limits = { fresh_s: 900, wait_s: 1_800, stale_s: 3_600 };
const METAR: Limits = { fresh_s: 600, wait_s: 1_800, stale_s: 3_600 };
const MINUTE: Limits = { fresh_s: 180, wait_s: 240, stale_s: 900 };

const LIMITS: Readonly<Record<string, Limits>> = {
  amos: MINUTE,
  cowin_obs: MINUTE,
  amsc_awos: { fresh_s: 180, wait_s: 360, stale_s: 900 },
  mgm: QUARTER_HOUR,
  ncm: QUARTER_HOUR,
  aeroweb: QUARTER_HOUR,
  madis_hfmetar: METAR,
  metar: METAR,
  awc_metar: METAR,
  noaa: METAR,
};

/** State of a reading of `source` observed at `observed_ms`; null is unknown. */
export function freshnessOf(source: string | null, observed_ms: number | null, now_ms: number): Freshness {
  if (source === null || observed_ms === null) return "unknown";
  const { fresh_s, wait_s, stale_s } = LIMITS[source] ?? TEN_MINUTES;
  const age_s = (now_ms - observed_ms) / 1_000;
  if (age_s <= fresh_s) return "fresh";
  if (age_s <= wait_s) return "expected_wait";
  return age_s <= stale_s ? "delayed" : "stale";
}
