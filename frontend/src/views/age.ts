/** An age in words: one number, one unit. */
import type { TFunction } from "i18next";

/** Text of an age; a slightly future time (clocks differ) reads as now. */
export function ageText(t: TFunction, age_ms: number): string {
  const seconds = Math.max(0, Math.floor(age_ms / 1_000));
  if (seconds < 5) return t("common:age.now");
  if (seconds < 60) return t("common:age.seconds", { count: seconds });
  if (seconds < 3_600) return t("common:age.minutes", { count: Math.floor(seconds / 60) });
  if (seconds < 172_800) return t("common:age.hours", { count: Math.floor(seconds / 3_600) });
  return t("common:age.days", { count: Math.floor(seconds / 86_400) });
}

/** The same with "ago", or "now" alone. */
export function agoText(t: TFunction, age_ms: number): string {
  const age = ageText(t, age_ms);
  return age_ms < 5_000 ? age : t("common:age.ago", { age });
}
