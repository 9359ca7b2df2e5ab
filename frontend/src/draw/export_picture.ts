/** A chart as a picture for others: what is on the screen, with the words that stand around it there. */
import { AXIS_FONT, INK, type Stroke } from "./palette";

export interface Caption {
  title: string;
  /** The numbers beside the title. */
  detail: string;
  legend: readonly (Stroke & { text: string })[];
  /** Where it comes from. */
  foot: string;
}

const HEAD_PX = 52;
const LEGEND_PX = 22;
const FOOT_PX = 22;
const SIDE_PX = 12;
const SAMPLE_PX = 16;

/** Font of this size and weight in device pixels. */
function font(size: number, weight = 400): string {
  return AXIS_FONT.replace(/^\d+px/, `${weight} ${size * devicePixelRatio}px`);
}

interface Placed {
  x: number;
  y: number;
  item: Caption["legend"][number];
}

/** Legend entries in as many lines as the width asks for; positions in CSS pixels. */
function placeLegend(ctx: CanvasRenderingContext2D, legend: Caption["legend"], width: number) {
  const placed: Placed[] = [];
  let [x, y] = [SIDE_PX, 0];
  for (const item of legend) {
    const needed = SAMPLE_PX + 6 + ctx.measureText(item.text).width / devicePixelRatio + 14;
    if (x > SIDE_PX && x + needed > width - SIDE_PX) [x, y] = [SIDE_PX, y + LEGEND_PX];
    placed.push({ x, y, item });
    x += needed;
  }
  return { placed, height: legend.length === 0 ? 0 : y + LEGEND_PX };
}

function drawLegend(ctx: CanvasRenderingContext2D, placed: readonly Placed[], top: number): void {
  const dpr = devicePixelRatio;
  ctx.font = font(12);
  for (const { x, y, item } of placed) {
    const middle = (top + y + LEGEND_PX / 2) * dpr;
    ctx.strokeStyle = item.color;
    ctx.lineWidth = 2 * dpr;
    ctx.setLineDash((item.dash ?? []).map((length) => length * dpr));
    ctx.beginPath();
    ctx.moveTo(x * dpr, middle);
    ctx.lineTo((x + SAMPLE_PX) * dpr, middle);
    ctx.stroke();
    ctx.fillStyle = INK.text;
    ctx.fillText(item.text, (x + SAMPLE_PX + 6) * dpr, middle);
  }
}

export function pictureOf(chart: HTMLCanvasElement, caption: Caption): HTMLCanvasElement {
  const dpr = devicePixelRatio;
  const made = document.createElement("canvas");
  const ctx = made.getContext("2d");
  if (!ctx) throw new Error("no canvas");
  ctx.font = font(12);
  const { placed, height } = placeLegend(ctx, caption.legend, chart.width / dpr);
  made.width = chart.width;
  made.height = chart.height + (HEAD_PX + height + FOOT_PX) * dpr;
  ctx.fillStyle = INK.ground;
  ctx.fillRect(0, 0, made.width, made.height);
  ctx.textBaseline = "middle";
  ctx.fillStyle = INK.text;
  ctx.font = font(16, 600);
  ctx.fillText(caption.title, SIDE_PX * dpr, 18 * dpr);
  ctx.font = font(12);
  ctx.fillStyle = INK.line;
  ctx.fillText(caption.detail, SIDE_PX * dpr, 39 * dpr, made.width - 2 * SIDE_PX * dpr);
  ctx.drawImage(chart, 0, HEAD_PX * dpr);
  drawLegend(ctx, placed, HEAD_PX + chart.height / dpr);
  ctx.setLineDash([]);
  ctx.fillStyle = INK.axis;
  ctx.font = font(11);
  ctx.fillText(caption.foot, SIDE_PX * dpr, made.height - (FOOT_PX / 2) * dpr);
  return made;
}
