/** Counts by colour: the legend is the scale by which the layer is drawn. A layer without a scale has none. */
import type { Look, ScaleClass } from "../data/presentation";
import type { DrawFeature } from "./layer_style";
import { classOf } from "./layer_styles";
import { valuesOf } from "./layer_values";

export interface LegendEntry {
  of: ScaleClass;
  count: number;
}

/** In the scale's own order; colours that nothing has are left out, and so is what is in no class. */
export function legendOf({ color }: Look, features: readonly DrawFeature[], now_ms: number): LegendEntry[] {
  if (color === null) return [];
  const counts = new Map<ScaleClass, number>();
  for (const feature of features) {
    const found = classOf(color, feature, valuesOf(feature), now_ms);
    if (found) counts.set(found, (counts.get(found) ?? 0) + 1);
  }
  return color.classes.flatMap((of) => {
    const count = counts.get(of);
    return count === undefined ? [] : [{ of, count }];
  });
}
