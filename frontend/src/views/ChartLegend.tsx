/** Curves by name with their value, and the switch of each. */
import { useTranslation } from "react-i18next";
import type { Series } from "../data/series";
import type { Curve, Pointed } from "../draw/chart";
import { clockText } from "../draw/time_axis";
import { tempText, type Unit } from "../draw/unit";

interface ChartLegendProps {
  curves: readonly Curve[];
  series: readonly Series[];
  pointed: Pointed | null;
  unit: Unit;
  zone: string;
  settlement_source: string | null;
  onToggle: (id: string, visible: boolean) => void;
}

/** Whether the city's day is decided by this curve's station, or by the sensors beside that runway. */
function settles(series: Series | undefined, settlement_source: string | null): boolean {
  if (!series) return false;
  return series.is_settlement || series.series_key === "settlement" || series.series_key === settlement_source;
}

export function ChartLegend({ curves, series, pointed, unit, zone, settlement_source, onToggle }: ChartLegendProps) {
  const { t, i18n } = useTranslation("terminal");
  return (
    <ul className="legend" aria-label={t("legend.label")}>
      {pointed ? <li className="legend__time num">{clockText(i18n.language, zone, pointed.instant_ms)}</li> : null}
      {curves.map((curve, i) => {
        const last = series[i]?.y.at(-1) ?? null;
        const value = pointed ? (pointed.values[curve.id] ?? null) : last;
        return (
          <li key={curve.id}>
            <button
              type="button"
              className="legend__item"
              aria-pressed={curve.visible}
              title={t(curve.visible ? "legend.hide" : "legend.show", { name: curve.label })}
              onClick={() => onToggle(curve.id, !curve.visible)}
            >
              <svg viewBox="0 0 14 6" aria-hidden="true">
                <path d="M0 3h14" stroke={curve.color} strokeWidth="2" strokeDasharray={curve.dash?.join(" ")} />
              </svg>
              <span className="legend__name">{curve.label}</span>
              {settles(series[i], settlement_source) ? (
                <span className="legend__mark" role="img" aria-label={t("legend.settles")} title={t("legend.settles")}>
                  ◆
                </span>
              ) : null}
              <span className="num">{curve.visible ? tempText(value, unit) : ""}</span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}
