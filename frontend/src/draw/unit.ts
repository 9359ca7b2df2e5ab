/** °C and °F, and how much of the scale a chart shows. */

export type Unit = "celsius" | "fahrenheit";

export const UNIT_LETTER: Readonly<Record<Unit, string>> = { celsius: "C", fahrenheit: "F" };

/** A temperature in the unit it is shown in. */
export function shown(temp_c: number, unit: Unit): number {
  return unit === "fahrenheit" ? temp_c * 1.8 + 32 : temp_c;
}

/** A temperature in °C, from the unit it is shown in. */
export function fromShown(value: number, unit: Unit): number {
  return unit === "fahrenheit" ? ((value - 32) * 5) / 9 : value;
}

/** One decimal; a negative zero is a zero. */
export function tempText(temp_c: number | null, unit: Unit): string {
  if (temp_c === null) return "–";
  const text = shown(temp_c, unit).toFixed(1);
  return `${text === "-0.0" ? "0.0" : text.replace("-", "−")}°`;
}

const LEAST: Readonly<Record<Unit, number>> = { celsius: 4, fahrenheit: 7.2 };

function near(curves: readonly number[], lines: readonly number[], unit: Unit): readonly number[] {
  if (curves.length === 0) return lines;
  const [low, top] = [Math.min(...curves), Math.max(...curves)];
  const reach = Math.max(top - low, LEAST[unit]);
  return lines.filter((line) => line >= low - reach && line <= top + reach);
}

/**
 * Lowest and highest value of the scale: never less than a few degrees, so that noise does not look like weather.
 * Lines that lie no further from the curves than the curves are high have room too; further ones would flatten them.
 */
export function valueRange(
  min: number | null,
  max: number | null,
  high: number | null,
  unit: Unit,
  lines: readonly number[] = [],
): [number, number] {
  const curves = [min, max, high].filter((value): value is number => value !== null && Number.isFinite(value));
  const known = [...curves, ...near(curves, lines, unit)];
  if (known.length === 0) return unit === "fahrenheit" ? [32, 86] : [0, 30];
  const least = LEAST[unit];
  const low = Math.min(...known);
  const top = Math.max(...known);
  const pad = Math.max((top - low) * 0.12, (least - (top - low)) / 2, least / 10);
  return [low - pad, top + pad];
}
