/** Words and tones of the Sources page. */
import type { TFunction } from "i18next";
import type { SourceInfo } from "../client/earth_types";
import { budgetOf, ROWS_COUNTED, type Severity } from "../data/source_state";
import { countText } from "./earth_format";

export const STATE_TONES: Readonly<Record<Severity, string>> = {
  bad: "badge--bad",
  warn: "badge--warn",
  busy: "badge--ok",
  idle: "",
};

type T = TFunction<"sources">;

/** `13,412`, `50,000 or more`, `–`. */
export function rowsText(t: T, rows: number | null, language: string): string {
  if (rows === null) return "–";
  const amount = countText(rows, language);
  return rows >= ROWS_COUNTED ? t("or_more", { amount }) : amount;
}

/** Requests of the last hour, of those that the provider's floor allows. */
export function requestsText(t: T, { requests_hour, floor_s }: SourceInfo): string {
  if (requests_hour === null) return "–";
  const budget = budgetOf(floor_s);
  return budget === null ? t("requests", { count: requests_hour }) : t("requests_of", { done: requests_hour, budget });
}

/** What the code of a refused record means; one of a later version as it is. */
export function rejectText(t: T, code: string): string {
  return t(`reject.${code}`, { defaultValue: code });
}

export function layerNames(source: SourceInfo, language: string): string[] {
  return source.layers.map(({ title, title_zh }) => (language.startsWith("zh") ? title_zh : title));
}

/** A declared text without the marks of its markup. */
export function plainText(text: string): string {
  return text.replaceAll("`", "");
}
