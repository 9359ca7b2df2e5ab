/** °C and °F, and how much of the scale a chart shows. */

export type Unit = "celsius" | "fahrenheit";

export const UNIT_LETTER: Readonly<Record<Unit, string>> = { celsius: "C", fahrenheit: "F" };

/** A temperature in the unit it is shown in. */
export function shown(temp_c: number, unit: Unit): number {
  return unit === "fahrenheit" ? temp_c * 1.8 + 32 : temp_c;
}

/** One decimal; a negative zero is a zero. */
export function tempText(temp_c: number | null, unit: Unit): string {
  if (temp_c === null) return "–";
  const text = shown(temp_c, unit).toFixed(1);
  return `${text === "-0.0" ? "0.0" : text.replace("-", "−")}°`;
}

/** Lowest and highest value of the scale: never less than a few degrees, so that noise does not look like weather. */
export function valueRange(min: number | null, max: number | null, high: number | null, unit: Unit): [number, number] {
  const known = [min, max, high].filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length === 0) return unit === "fahrenheit" ? [32, 86] : [0, 30];
  const least = unit === "fahrenheit" ? 7.2 : 4;
  const low = Math.min(...known);
  const top = Math.max(...known);
  const pad = Math.max((top - low) * 0.12, (least - (top - low)) / 2, least / 10);
  return [low - pad, top + pad];
}
