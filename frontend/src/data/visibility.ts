/** Which curves a chart shows by default, and in what order. */
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

/** METAR steps aside where another station decides the day, the runways' summary where the deciding one is drawn. */
export function visibleByDefault(series: Series, all: readonly Series[]): boolean {
  const drawn = all.filter(({ x }) => x.length > 0);
  if (series.series_key === "metar") return !drawn.some(({ series_key }) => series_key === "settlement");
  if (series.series_key === "runway")
    return !drawn.some(({ runway, is_settlement }) => runway !== null && is_settlement);
  return true;
}

/** `chosen` holds the visitor's switches by series id; it outlives every patch and reload. */
export function isVisible(series: Series, all: readonly Series[], chosen: Readonly<Record<string, boolean>>): boolean {
  return chosen[series.id] ?? visibleByDefault(series, all);
}
