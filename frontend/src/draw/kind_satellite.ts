/** Satellites: they move, and their orbit follows from their mean elements. */
import type { DrawFeature, KindDrawing } from "./layer_style";

export type Regime = "LEO" | "MEO" | "GEO" | "HEO";

export interface Orbit {
  regime: Regime;
  period_min: number;
  perigee_km: number;
  apogee_km: number;
  inclination_deg: number;
}

/** km³/s², WGS 72 as in SGP4. */
const MU = 398_600.8;
const EARTH_KM = 6_378.135;

function number(value: unknown): number {
  return value === null || value === "" ? Number.NaN : Number(value);
}

function regimeOf(turns_a_day: number, eccentricity: number, apogee_km: number): Regime {
  if (eccentricity >= 0.25) return "HEO";
  if (apogee_km < 2_000) return "LEO";
  return turns_a_day > 0.9 && turns_a_day < 1.1 ? "GEO" : "MEO";
}

/** Heights above the equator's radius by Kepler's third law; null when the elements say nothing. */
export function orbitOf(data: DrawFeature["data"]): Orbit | null {
  const turns_a_day = number(data.MEAN_MOTION);
  const eccentricity = number(data.ECCENTRICITY);
  if (!(turns_a_day > 0) || !(eccentricity >= 0 && eccentricity < 1)) return null;
  const rate = (turns_a_day * 2 * Math.PI) / 86_400;
  const axis_km = Math.cbrt(MU / (rate * rate));
  const apogee_km = axis_km * (1 + eccentricity) - EARTH_KM;
  return {
    regime: regimeOf(turns_a_day, eccentricity, apogee_km),
    period_min: 1_440 / turns_a_day,
    perigee_km: axis_km * (1 - eccentricity) - EARTH_KM,
    apogee_km,
    inclination_deg: number(data.INCLINATION),
  };
}

export const drawing: KindDrawing = {
  moving: true,
  values(data, place) {
    const orbit = orbitOf(data) ?? {};
    return place === null ? orbit : { ...orbit, altitude_km: place.altitude_m / 1_000 };
  },
};
