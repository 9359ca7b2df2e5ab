/** Durations, shares and times of the job panel in the reader's language. */

const UNITS = [
  { unit: "day", ms: 86_400_000 },
  { unit: "hour", ms: 3_600_000 },
  { unit: "minute", ms: 60_000 },
  { unit: "second", ms: 1_000 },
] as const;

/** Steps up to the next unit only from twice its size: "90 min" says more than "1 h". */
const STEP = 2;

/** A duration in one number and one unit, `45 sec`, `3 min`; never below a second. */
export function spanText(duration_ms: number, language: string): string {
  const whole_ms = Math.max(1_000, Math.round(duration_ms / 1_000) * 1_000);
  const found = UNITS.find(({ ms }) => whole_ms >= STEP * ms) ?? { unit: "second", ms: 1_000 };
  const value = Math.round(whole_ms / found.ms);
  return new Intl.NumberFormat(language, { style: "unit", unit: found.unit, unitDisplay: "short" }).format(value);
}

/** An interval as it was set, without rounding: `90 sec`, `2 hr`, `1.5 sec`. */
export function intervalText(interval_s: number, language: string): string {
  const { amount, unit } = splitInterval(interval_s);
  const name = { s: "second", min: "minute", h: "hour", d: "day" }[unit];
  return new Intl.NumberFormat(language, { style: "unit", unit: name, unitDisplay: "short" }).format(amount);
}

export type IntervalUnit = "s" | "min" | "h" | "d";
export const UNIT_S: Readonly<Record<IntervalUnit, number>> = { s: 1, min: 60, h: 3_600, d: 86_400 };

/** The largest unit that holds the interval in whole numbers. */
export function splitInterval(interval_s: number): { amount: number; unit: IntervalUnit } {
  const unit = (["d", "h", "min"] as const).find((name) => interval_s > 0 && interval_s % UNIT_S[name] === 0) ?? "s";
  return { amount: interval_s / UNIT_S[unit], unit };
}

export function percentText(share: number, language: string): string {
  return new Intl.NumberFormat(language, { style: "percent" }).format(share);
}

/** Weekday, date and time with the zone's name, in that zone; null if the zone or the time is none. */
export function tickText(at: string, zone: string | null, language: string): string | null {
  try {
    return new Intl.DateTimeFormat(language, {
      weekday: "short",
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
      timeZone: zone ?? "UTC",
      timeZoneName: "short",
    }).format(new Date(at));
  } catch {
    return null;
  }
}

/** All zones that the browser knows, UTC first. */
export function timeZones(): readonly string[] {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((zone) => zone !== "UTC")];
}
