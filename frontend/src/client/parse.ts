/** Readers for values of unknown shape: each returns a valid value or the stated fallback, and never throws. */

export type Raw = Readonly<Record<string, unknown>>;

export function record(value: unknown): Raw | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Raw) : null;
}

export function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function finite(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** A revision or counter: a whole number from 0 up, else null. */
export function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Only the strings of a list; anything else is an empty list. */
export function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

export function oneOf<T extends string>(value: unknown, allowed: readonly T[]): T | null {
  return typeof value === "string" && (allowed as readonly string[]).includes(value) ? (value as T) : null;
}
