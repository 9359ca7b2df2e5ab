/** What is drawn over a chart's curves: the present moment, the high of the day, and the visitor's lines. */
import type uPlot from "uplot";
import { AXIS_FONT, INK } from "./palette";
import { shown, type Unit } from "./unit";

/** A horizontal line set by the visitor; `text` names it on the chart. */
export interface ChartLine {
  temp_c: number;
  text: string;
  reached: boolean;
}

const LABEL_PX = 11;

function stroke(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

export function drawNow(plot: uPlot, now_ms: number): void {
  const { ctx, bbox } = plot;
  const x = Math.round(plot.valToPos(now_ms, "x", true)) + 0.5;
  ctx.strokeStyle = INK.now;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
  stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
}

export function drawHigh(plot: uPlot, high: number, observed_ms: number | null): void {
  const { ctx, bbox } = plot;
  const y = Math.round(plot.valToPos(high, "y", true)) + 0.5;
  ctx.strokeStyle = INK.high;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.globalAlpha = 0.7;
  stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
  ctx.globalAlpha = 1;
  if (observed_ms === null) return;
  ctx.setLineDash([]);
  ctx.fillStyle = INK.ground;
  ctx.lineWidth = 1.75 * devicePixelRatio;
  ctx.beginPath();
  ctx.arc(plot.valToPos(observed_ms, "x", true), y, 3.5 * devicePixelRatio, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
}

/** Baselines of texts that want to stand at `wanted`, rising, none over another and none below `last`. */
export function spread(wanted: readonly number[], gap: number, last: number): number[] {
  const placed: number[] = [];
  for (const at of wanted) placed.push(Math.max(at, (placed.at(-1) ?? Number.NEGATIVE_INFINITY) + gap));
  let below = last;
  for (let i = placed.length - 1; i >= 0; i -= 1) {
    placed[i] = Math.min(placed[i] as number, below);
    below = (placed[i] as number) - gap;
  }
  return placed;
}

/** A line beyond the scale is labelled at the edge behind which it lies. */
export function drawLines(plot: uPlot, lines: readonly ChartLine[], unit: Unit): void {
  const { ctx, bbox } = plot;
  const dpr = devicePixelRatio;
  const [size, bottom] = [LABEL_PX * dpr, bbox.top + bbox.height];
  ctx.font = AXIS_FONT.replace(/^\d+px/, `${size}px`);
  ctx.textAlign = "right";
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([]);
  ctx.lineWidth = dpr;
  const at = lines.map((line) => ({ line, y: plot.valToPos(shown(line.temp_c, unit), "y", true) }));
  at.sort((a, b) => a.y - b.y);
  const texts = spread(
    at.map(({ y }) => Math.max(y - 3 * dpr, bbox.top + size)),
    size + dpr,
    bottom - 2 * dpr,
  );
  at.forEach(({ line, y }, i) => {
    ctx.strokeStyle = line.reached ? INK.lineReached : INK.line;
    ctx.fillStyle = ctx.strokeStyle;
    const level = Math.round(y) + 0.5;
    ctx.globalAlpha = 0.6;
    if (y >= bbox.top && y <= bottom) stroke(ctx, bbox.left, level, bbox.left + bbox.width, level);
    ctx.globalAlpha = 1;
    const arrow = y < bbox.top ? "▲ " : y > bottom ? "▼ " : "";
    const text = `${arrow}${line.text}${line.reached ? " ✓" : ""}`;
    ctx.fillText(text, bbox.left + bbox.width - 4 * dpr, texts[i] as number);
  });
}
