/** Weather stations: colour by temperature, faint once the reading is later than its source ever is. */
import type { DrawFeature, KindStyle } from "./layer_style";

/** Coldest first: up to `below_c` it has this colour. */
export const TEMPERATURE_STEPS = [
  { key: "freezing", below_c: 0, color: "#8fb3ff" },
  { key: "cold", below_c: 10, color: "#5cc4dd" },
  { key: "mild", below_c: 20, color: "#56d494" },
  { key: "warm", below_c: 30, color: "#f0b64a" },
  { key: "hot", below_c: Number.POSITIVE_INFINITY, color: "#ff6f59" },
] as const;

export type TemperatureKey = (typeof TEMPERATURE_STEPS)[number]["key"];

export const UNKNOWN_COLOR = "#a8967c";

/** Where nothing says when a source is late. */
const STALE_S = 3_600;

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The station's step, or null when it says no temperature. Zero degrees is one. */
export function temperatureStep(data: DrawFeature["data"]): (typeof TEMPERATURE_STEPS)[number] | null {
  const temp_c = number(data.temp_c);
  if (temp_c === null) return null;
  return TEMPERATURE_STEPS.find(({ below_c }) => temp_c < below_c) ?? null;
}

/** By the reading's own time: what the server last called it may be older than the reading. */
export function isLate(feature: DrawFeature, now_ms: number): boolean {
  const age_ms = now_ms - Date.parse(feature.observed_at ?? "");
  return !(age_ms <= (number(feature.data.stale_s) ?? STALE_S) * 1_000);
}

export const weatherStyle: KindStyle = {
  moving: false,
  look(feature, now_ms) {
    const color = temperatureStep(feature.data)?.color ?? UNKNOWN_COLOR;
    return { color, alpha: isLate(feature, now_ms) ? 0.35 : 0.95, size_px: 7 };
  },
};
