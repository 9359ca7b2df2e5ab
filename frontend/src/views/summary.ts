/** A chart in words, for those who cannot see it. */
import type { TFunction } from "i18next";
import { type CityState, isReference } from "../data/city";
import { clockText } from "../draw/time_axis";
import { tempText, UNIT_LETTER, type Unit } from "../draw/unit";

const TREND_MS = 3_600_000;
const STEADY_C = 0.3;

/** Change over the last hour of the curve that gave the headline, in °C; null without two readings. */
export function trend_c(state: CityState): number | null {
  const { headline } = state;
  if (!headline || isReference(headline.series_key)) return null;
  const curve = state.series.find((s) => s.series_key === headline.series_key && s.source === headline.source);
  if (!curve) return null;
  const since = headline.observed_ms - TREND_MS;
  const at = curve.x.findIndex((x) => x >= since);
  const first = at < 0 ? undefined : curve.y[at];
  if (first === undefined || (curve.x[at] as number) >= headline.observed_ms) return null;
  return headline.temp_c - first;
}

function trendWord(change: number | null): "rising" | "falling" | "steady" | "unknown" {
  if (change === null) return "unknown";
  if (Math.abs(change) < STEADY_C) return "steady";
  return change > 0 ? "rising" : "falling";
}

/** `name` null: the numbers alone, where the name stands beside them. */
export function summaryText(t: TFunction, language: string, name: string | null, state: CityState, unit: Unit): string {
  const { headline, high, timezone } = state;
  const symbol = UNIT_LETTER[unit];
  const begin = name === null ? "" : t("terminal:summary.of", { city: name });
  if (!headline) return `${begin}${t("terminal:summary.none")}`;
  const at = (instant_ms: number) => clockText(language, timezone, instant_ms);
  const parts = [
    t("terminal:summary.now", { temp: `${tempText(headline.temp_c, unit)}${symbol}`, time: at(headline.observed_ms) }),
  ];
  if (high) {
    const temp = `${tempText(high.temp_c, unit)}${symbol}`;
    const time = high.observed_ms === null ? null : at(high.observed_ms);
    parts.push(time === null ? t("terminal:summary.high", { temp }) : t("terminal:summary.high_at", { temp, time }));
  }
  parts.push(t(`terminal:summary.${trendWord(trend_c(state))}`));
  return `${begin}${parts.join(t("terminal:summary.between"))}`;
}
