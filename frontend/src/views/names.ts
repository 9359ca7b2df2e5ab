/** Names of curves and sources in the page's language. */
import type { TFunction } from "i18next";
import type { Series } from "../data/series";

const KINDS = new Set(["airport_primary", "settlement", "metar", "reference", "runway"]);

export function sourceName(t: TFunction, source: string): string {
  return t(`terminal:source.${source}`, { defaultValue: source.replaceAll("_", " ").toUpperCase() });
}

/** The kind of the curve and where it comes from; a runway by its designators. */
export function curveName(t: TFunction, series: Series, settlement_label: string | null): string {
  if (series.runway !== null) return t("terminal:curve.plate", { runway: series.runway });
  if (series.series_key === "settlement" && settlement_label) return settlement_label;
  const kind = KINDS.has(series.series_key) ? t(`terminal:curve.${series.series_key}`) : series.series_key;
  const source = sourceName(t, series.source);
  return source.toUpperCase() === kind.toUpperCase() ? kind : `${kind} · ${source}`;
}
