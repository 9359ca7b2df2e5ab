/** Counts by colour: regimes of satellites, ages of quakes, temperatures. Kinds without a scale have no legend. */
import { AGE_STEPS, ageLook, OLDER, quakeStyle } from "./layer_quakes";
import { orbitOf, REGIME_COLOR, type Regime, satelliteStyle } from "./layer_satellites";
import type { DrawFeature } from "./layer_style";
import { styleOf } from "./layer_styles";
import { TEMPERATURE_STEPS, type TemperatureKey, temperatureStep, weatherStyle } from "./layer_weather";

export type LegendKey = Regime | "hour" | "day" | "week" | "older" | TemperatureKey;

export interface LegendEntry {
  key: LegendKey;
  color: string;
  count: number;
}

const AGES: readonly (readonly [LegendKey, string])[] = [
  ["hour", AGE_STEPS[0].color],
  ["day", AGE_STEPS[1].color],
  ["week", AGE_STEPS[2].color],
  ["older", OLDER.color],
];

function ageKey(feature: DrawFeature, now_ms: number): LegendKey {
  const { color } = ageLook(feature.observed_at, now_ms);
  return AGES.find(([, each]) => each === color)?.[0] ?? "older";
}

/** In the scale's own order; colours that nothing has are left out. */
export function legendOf(features: readonly DrawFeature[], now_ms: number): LegendEntry[] {
  const counts = new Map<LegendKey, number>();
  const bump = (key: LegendKey) => counts.set(key, (counts.get(key) ?? 0) + 1);
  for (const feature of features) {
    const style = styleOf(feature.kind, feature.data);
    if (style === satelliteStyle) bump(orbitOf(feature.data)?.regime ?? "LEO");
    else if (style === quakeStyle) bump(ageKey(feature, now_ms));
    else if (style === weatherStyle) {
      const step = temperatureStep(feature.data);
      if (step) bump(step.key);
    }
  }
  const scale: (readonly [LegendKey, string])[] = [
    ...(Object.entries(REGIME_COLOR) as [Regime, string][]),
    ...AGES,
    ...TEMPERATURE_STEPS.map(({ key, color }) => [key, color] as const),
  ];
  return scale.flatMap(([key, color]) => {
    const count = counts.get(key);
    return count === undefined ? [] : [{ key, color, count }];
  });
}
