/** How a feature is drawn: by its layer's look, which comes from the server. */
import type { Late, Look, Scale, ScaleClass, Size } from "../data/presentation";
import type { DrawFeature, ObjectLook } from "./layer_style";
import { numberOf, type Values, valuesOf } from "./layer_values";

const PALETTE = ["#8fb3ff", "#56d494", "#c9d36a", "#ff8f70", "#e58fd0", "#5cc4dd"] as const;

/** The same text always gives the same colour. */
export function colorOf(name: string): string {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return PALETTE[hash % PALETTE.length] ?? PALETTE[0];
}

/** NaN if the age is unknown. */
function age_ms(feature: DrawFeature, now_ms: number): number {
  return now_ms - Date.parse(feature.observed_at ?? "");
}

type Holds = (one: ScaleClass) => boolean;

/** Whether a class with a bound holds the feature; null when the feature has no value of the scale's kind. */
function holdsOf(scale: Scale, feature: DrawFeature, values: Values, now_ms: number): Holds | null {
  if (scale.by === "age") {
    const age = age_ms(feature, now_ms);
    return Number.isNaN(age) ? null : ({ up_to_s }) => up_to_s !== null && age <= up_to_s * 1_000;
  }
  const value = values(scale.value);
  if (scale.by === "category") return typeof value === "string" ? ({ equals }) => equals === value : null;
  const number = numberOf(value);
  return number === null ? null : ({ below }) => below !== null && number < below;
}

function isRest({ up_to_s, below, equals }: ScaleClass): boolean {
  return up_to_s === null && below === null && equals === null;
}

/** The class by which a feature is coloured and counted; null when it is in none. */
export function classOf(scale: Scale, feature: DrawFeature, values: Values, now_ms: number): ScaleClass | null {
  const holds = holdsOf(scale, feature, values, now_ms);
  if (holds === null && scale.unknown !== null) return null;
  return (holds && scale.classes.find(holds)) ?? scale.classes.find(isRest) ?? null;
}

/** To a tenth of a pixel. */
export function sizeOf(size: Size, values: Values): number {
  if ("px" in size) return size.px;
  const value = numberOf(values(size.value));
  if (value === null) return size.else_px;
  const grown = size.base_px * size.factor ** value;
  return Math.round(Math.min(size.most_px, Math.max(size.least_px, grown)) * 10) / 10;
}

/** By the observation's own time: what the server last called it may be older than it. */
export function isLate(late: Late, feature: DrawFeature, values: Values, now_ms: number): boolean {
  const after_s = (late.value === null ? null : numberOf(values(late.value))) ?? late.after_s;
  return !(age_ms(feature, now_ms) <= after_s * 1_000);
}

/** Whether a look changes with time alone, without an event. */
export function changesWithTime({ color, late }: Look): boolean {
  return color?.by === "age" || late !== null;
}

export function objectLook(look: Look, feature: DrawFeature, now_ms: number): ObjectLook {
  const values = valuesOf(feature);
  const found = look.color && classOf(look.color, feature, values, now_ms);
  const { color, alpha } = found ?? look.color?.unknown ?? { color: colorOf(feature.kind), alpha: 0.9 };
  return {
    color,
    alpha: look.late && isLate(look.late, feature, values, now_ms) ? look.late.alpha : alpha,
    size_px: found?.size_px ?? sizeOf(look.size, values),
    fill_alpha: look.fill_alpha,
  };
}
