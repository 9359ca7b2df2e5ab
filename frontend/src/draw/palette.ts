/** Colours and strokes of curves: the same series looks the same on every chart. */
import type { Series } from "../data/series";

export interface Stroke {
  color: string;
  width: number;
  dash?: number[];
}

const PLATES = ["#56d494", "#a3b1bf", "#c9d36a", "#7fb8a4", "#d8a7c9"];
const KINDS: Readonly<Record<string, Stroke>> = {
  airport_primary: { color: "#8fb3ff", width: 1.75 },
  runway: { color: "#5cc4dd", width: 1.75 },
  settlement: { color: "#b79bff", width: 1.75 },
  metar: { color: "#f0b64a", width: 1.5 },
  reference: { color: "#e58fd0", width: 1.25, dash: [4, 3] },
};
const OTHER: Stroke = { color: "#c9d36a", width: 1.25 };

export const INK = {
  grid: "rgb(163 177 191 / 9%)",
  axis: "#8594a3",
  now: "rgb(163 177 191 / 35%)",
  high: "#ff8f70",
  line: "#a3b1bf",
  lineReached: "#e8eef4",
  text: "#e8eef4",
  ground: "#10151b",
} as const;

export const AXIS_FONT = '11px Inter, "Segoe UI", system-ui, "PingFang SC", "Noto Sans CJK SC", sans-serif';

/** A second source of the same kind keeps the colour and is distinguished by its dashes. */
export function strokesOf(all: readonly Series[]): readonly Stroke[] {
  const seen = new Map<string, number>();
  return all.map((series) => {
    const kind = series.runway === null ? series.series_key : "plate";
    const nth = seen.get(kind) ?? 0;
    seen.set(kind, nth + 1);
    if (series.runway === null) {
      const stroke = KINDS[series.series_key] ?? OTHER;
      return nth === 0 ? stroke : { ...stroke, dash: [2 + nth * 2, 3] };
    }
    const color = PLATES[nth % PLATES.length] as string;
    return series.is_settlement ? { color, width: 1.75 } : { color, width: 1.25, dash: [5, 3] };
  });
}
