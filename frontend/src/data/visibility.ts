/** Which curves a chart shows until somebody decides otherwise, and in what order. */
import type { Series } from "./series";

const ORDER = ["runway", "settlement", "airport_primary", "metar", "reference"];

function rank(series: Series): number {
  if (series.runway !== null) return series.is_settlement ? -1 : ORDER.length;
  const at = ORDER.indexOf(series.series_key);
  return at < 0 ? ORDER.length : at;
}

/** Settlement runway first, other runways last, the rest by what they stand for. */
export function inOrder(all: readonly Series[]): readonly Series[] {
  return [...all].sort((a, b) => rank(a) - rank(b) || a.id.localeCompare(b.id, "en"));
}

/** METAR steps aside where another station decides the day; everything else is shown. */
export function visibleByDefault(series: Series, all: readonly Series[]): boolean {
  if (series.series_key !== "metar") return true;
  return !all.some((other) => other.series_key === "settlement" && other.x.length > 0);
}

/** `chosen` holds what somebody switched by hand, by series id; it outlives every patch and reload. */
export function isVisible(series: Series, all: readonly Series[], chosen: Readonly<Record<string, boolean>>): boolean {
  return chosen[series.id] ?? visibleByDefault(series, all);
}
