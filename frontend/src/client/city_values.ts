/** Small values of the city wire: names, dates, instants, temperatures. Each returns null for an invalid value. */
import { finite, text } from "./parse";

/** Milliseconds of an ISO text with a zone, or of a number of ms; null for anything else. */
export function instant(value: unknown): number | null {
  if (typeof value === "number") return finite(value);
  if (typeof value !== "string" || !/(Z|[+-]\d\d:?\d\d)$/.test(value)) return null;
  const parsed = Date.parse(value);
  return Number.isNaN(parsed) ? null : parsed;
}

export const name = (value: unknown): string | null => text(value)?.trim().toLowerCase() || null;
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const fahrenheit = (value: unknown): boolean => /^°?f(ahrenheit)?$/i.test(text(value)?.trim() ?? "");
export const date = (value: unknown): string | null =>
  /^\d{4}-\d\d-\d\d$/.test(text(value) ?? "") ? text(value) : null;

/** A temperature in °C; text is allowed, since older senders wrote numbers as text. */
export function celsius(value: unknown, unit: unknown): number | null {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  const read = finite(number);
  return read !== null && fahrenheit(unit) ? ((read - 32) * 5) / 9 : read;
}

export function first<T>(...values: readonly (T | null)[]): T | null {
  // Not `||`: 0 °C is a temperature.
  return values.find((value) => value !== null) ?? null;
}
