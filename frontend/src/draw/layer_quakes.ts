/** Earthquakes: size by magnitude, colour by age. */
import type { KindStyle } from "./layer_style";

const HOUR_MS = 3_600_000;

/** Newest first: up to `age_ms` old it has this colour. */
export const AGE_STEPS = [
  { age_ms: HOUR_MS, color: "#ff5f4f", alpha: 0.95 },
  { age_ms: 24 * HOUR_MS, color: "#ff9a4d", alpha: 0.85 },
  { age_ms: 7 * 24 * HOUR_MS, color: "#e2c08a", alpha: 0.7 },
] as const;

export const OLDER = { color: "#a8967c", alpha: 0.55 };

/** Diameter in pixels: the area doubles about with each unit, from a speck to 30 px at magnitude 9. */
export function magnitudeSize_px(magnitude: number | null): number {
  if (magnitude === null || !Number.isFinite(magnitude)) return 4;
  return Math.round(Math.min(30, Math.max(3, 3 * 1.29 ** Math.max(0, magnitude))) * 10) / 10;
}

export function ageLook(observed_at: string | null, now_ms: number): { color: string; alpha: number } {
  const age_ms = now_ms - Date.parse(observed_at ?? "");
  return AGE_STEPS.find((step) => age_ms <= step.age_ms) ?? OLDER;
}

export const quakeStyle: KindStyle = {
  moving: false,
  look(feature, now_ms) {
    const { color, alpha } = ageLook(feature.observed_at, now_ms);
    const magnitude = typeof feature.data.mag === "number" ? feature.data.mag : null;
    return { color, alpha, size_px: magnitudeSize_px(magnitude) };
  },
};
