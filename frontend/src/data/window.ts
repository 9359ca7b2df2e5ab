/** Which span of time a chart shows. */
import type { WindowName } from "./slots";
import { dayBounds_ms } from "./zone";

const HOUR_MS = 3_600_000;
/** Share of a running window kept free on its right, so that the newest reading does not stick to the edge. */
const AHEAD = 0.03;

/** The city's local day from midnight to midnight, or the last hours. */
export function windowOf(name: WindowName, zone: string, now_ms: number): readonly [number, number] {
  if (name === "day") return dayBounds_ms(zone, now_ms);
  const span_ms = (name === "24h" ? 24 : 6) * HOUR_MS;
  return [now_ms - span_ms, now_ms + span_ms * AHEAD];
}
