/** Durations, shares and times of the job panel in the reader's language. */
import type { TFunction } from "i18next";
import { decimalText, durationText } from "./earth_format";

const UNITS = [
  { name: "days", ms: 86_400_000 },
  { name: "hours", ms: 3_600_000 },
  { name: "minutes", ms: 60_000 },
  { name: "seconds", ms: 1_000 },
] as const;

/** Steps up to the next unit only from twice its size: "90 min" says more than "1 h". */
const STEP = 2;

/** A duration in one number and one unit, `45 s`, `3 min`; never below a second. */
export function spanText(t: TFunction<"earth">, duration_ms: number): string {
  const whole_ms = Math.max(1_000, Math.round(duration_ms / 1_000) * 1_000);
  const found = UNITS.find(({ ms }) => whole_ms >= STEP * ms) ?? { name: "seconds" as const, ms: 1_000 };
  return t(`common:age.${found.name}`, { count: Math.round(whole_ms / found.ms) });
}

/** How long something took: tenths of a second while they matter. */
export function tookText(t: TFunction<"earth">, duration_ms: number, language: string): string {
  if (duration_ms >= 60_000) return durationText(duration_ms);
  return t("common:age.seconds", { count: decimalText(Math.max(0, duration_ms) / 1_000, language) as never });
}

const NAMES = { s: "seconds", min: "minutes", h: "hours", d: "days" } as const;

/** An interval as it was set, without rounding: `90 s`, `2 h`, `1.5 s`. */
export function intervalText(t: TFunction<"earth">, interval_s: number): string {
  const { amount, unit } = splitInterval(interval_s);
  return t(`common:age.${NAMES[unit]}`, { count: amount });
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
