/**
 * One live chart: curves over a window of the city's time, with its high, the present moment and set lines marked.
 *
 * Invariant: a patch never moves a zoomed view, and never shows a curve that was switched off.
 */
import uPlot from "uplot";
import type { Columns } from "../data/series";
import { type ChartLine, drawHigh, drawLines, drawNow } from "./chart_marks";
import { LineDrag } from "./line_drag";
import { AXIS_FONT, INK, type Stroke } from "./palette";
import { axisSplits, axisStep_min, tickText } from "./time_axis";
import { shown, type Unit, valueRange } from "./unit";

export interface Curve extends Stroke {
  id: string;
  label: string;
  visible: boolean;
  /** A reading says nothing about instants further away than this. */
  reach_ms: number;
}

export interface ChartModel {
  curves: readonly Curve[];
  /** In °C, one column per curve. */
  columns: Columns;
  zone: string;
  language: string;
  unit: Unit;
  window: readonly [from_ms: number, to_ms: number];
  now_ms: number;
  high: { observed_ms: number | null; temp_c: number } | null;
  lines: readonly ChartLine[];
}

/** What lies under the pointer: values in °C by curve id, where there are any. */
export interface Pointed {
  instant_ms: number;
  values: Readonly<Record<string, number>>;
}

export interface ChartOptions {
  /** Charts of the same key share the pointer's instant. */
  sync_key: string;
  onPoint: (pointed: Pointed | null) => void;
  /** The visitor moved the line of this index. */
  onLineMoved: (index: number, temp_c: number) => void;
}

const LABEL_PX = 58;
/** Radius of the mark of the high, its stroke included. */
const RING_PX = 5;
const SHARED = new Set(["mousemove", "mouseleave", "mouseenter"]);

/** Everything that asks for a new plot when it changes; the data do not. */
function shapeOf({ curves, zone, language, unit }: ChartModel): string {
  const drawn = curves.map(({ visible, reach_ms, ...rest }) => rest);
  return JSON.stringify([drawn, zone, language, unit]);
}

export class CityChart {
  readonly #parent: HTMLElement;
  readonly #options: ChartOptions;
  readonly #observer: ResizeObserver;
  readonly #drag: LineDrag;
  #plot: uPlot | null = null;
  #shape = "";
  #model: ChartModel | null = null;
  #windowKey = "";
  #zoomed = false;

  constructor(parent: HTMLElement, options: ChartOptions) {
    this.#parent = parent;
    this.#options = options;
    this.#observer = new ResizeObserver(() => this.#resize());
    this.#observer.observe(parent);
    this.#drag = new LineDrag({
      model: () => this.#model,
      redraw: () => this.#plot?.redraw(false),
      onMoved: options.onLineMoved,
    });
  }

  update(model: ChartModel): void {
    this.#model = model;
    const shape = shapeOf(model);
    // A window of another length was chosen: that ends the zoom. One that only moved on does not.
    const key = String(Math.round((model.window[1] - model.window[0]) / 3_600_000));
    if (key !== this.#windowKey) this.#zoomed = false;
    this.#windowKey = key;
    if (!this.#plot || shape !== this.#shape) this.#rebuild(model, shape);
    else this.#refresh(this.#plot, model);
  }

  /** What is drawn now, in the screen's pixels; null while there is no room for it. */
  get canvas(): HTMLCanvasElement | null {
    return this.#plot?.ctx.canvas ?? null;
  }

  destroy(): void {
    this.#drag.end();
    this.#observer.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  #data(model: ChartModel): uPlot.AlignedData {
    const y = model.columns.y.map((column) =>
      column.map((value) => (typeof value === "number" ? shown(value, model.unit) : value)),
    );
    return [model.columns.x, ...y];
  }

  #rebuild(model: ChartModel, shape: string): void {
    const { clientWidth: width, clientHeight: height } = this.#parent;
    if (width < 40 || height < 40) return;
    const kept = this.#zoomed ? this.#plot?.scales.x : undefined;
    this.#plot?.destroy();
    this.#shape = shape;
    this.#plot = new uPlot(this.#plotOptions(model, width, height), this.#data(model), this.#parent);
    const [min, max] = kept ? [kept.min ?? model.window[0], kept.max ?? model.window[1]] : model.window;
    this.#plot.setScale("x", { min, max });
  }

  #refresh(plot: uPlot, model: ChartModel): void {
    plot.batch(() => {
      plot.setData(this.#data(model), false);
      model.curves.forEach((curve, i) => {
        if (plot.series[i + 1]?.show !== curve.visible) plot.setSeries(i + 1, { show: curve.visible }, false);
      });
      const { min, max } = plot.scales.x ?? {};
      const [from, to] = this.#zoomed ? [min ?? model.window[0], max ?? model.window[1]] : model.window;
      // Setting the scale also makes the values' scale fit what came in.
      plot.setScale("x", { min: from, max: to });
    });
  }

  #resize(): void {
    const { clientWidth: width, clientHeight: height } = this.#parent;
    if (width < 40 || height < 40) return;
    if (this.#plot) this.#plot.setSize({ width, height });
    else if (this.#model) this.#rebuild(this.#model, shapeOf(this.#model));
  }

  #resetZoom(): null {
    this.#zoomed = false;
    if (this.#plot && this.#model) this.#refresh(this.#plot, this.#model);
    return null;
  }

  #plotOptions(model: ChartModel, width: number, height: number): uPlot.Options {
    return {
      width,
      height,
      ms: 1,
      padding: [10, 24, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false },
        // Zoomed in, the curve alone decides: the high may lie far outside.
        y: { range: (_, min, max) => this.#range(min, max, model.unit) },
      },
      axes: axes(model, (texts) => {
        this.#parent.dataset.ticks = texts.join("|");
      }),
      series: [{}, ...model.curves.map(seriesOptions)],
      cursor: this.#cursor(),
      hooks: {
        draw: [(plot) => this.#marks(plot)],
        setCursor: [(plot) => this.#options.onPoint(this.#pointed(plot))],
        setSelect: [(plot) => this.#selected(plot)],
      },
    };
  }

  #range(min: number | null, max: number | null, unit: Unit): [number, number] {
    if (this.#zoomed) return valueRange(min, max, null, unit);
    const lines = this.#model?.lines.map(({ temp_c }) => shown(temp_c, unit)) ?? [];
    return valueRange(min, max, this.#highShown(), unit, lines);
  }

  #selected(plot: uPlot): void {
    if (plot.select.width > 0) this.#zoomed = true;
  }

  #cursor(): uPlot.Cursor {
    return {
      drag: { x: true, y: false, dist: 8 },
      // The level of the pointer means nothing on the other charts.
      y: false,
      points: { size: 6 },
      // Holes are shown as holes, not as the nearest reading; the gaps of other curves' times are passed over.
      hover: { skip: [undefined], prox: (plot, series) => this.#reach_px(plot, series) },
      bind: {
        dblclick: () => () => this.#resetZoom(),
        mousedown: (plot, _, handler) => (event) => (this.#drag.press(plot, event) ? null : handler(event)),
        mousemove: (plot, _, handler) => (event) => {
          plot.over.style.cursor = this.#drag.isDragging || this.#drag.near(plot, event) >= 0 ? "ns-resize" : "";
          return handler(event);
        },
      },
      sync: {
        key: this.#options.sync_key,
        setSeries: false,
        scales: ["x", null],
        filters: { pub: (type) => SHARED.has(type), sub: (type) => SHARED.has(type) },
      },
    };
  }

  #reach_px(plot: uPlot, series: number): number {
    const { min, max } = plot.scales.x ?? {};
    const reach_ms = this.#model?.curves[series - 1]?.reach_ms ?? 0;
    return typeof min === "number" && typeof max === "number" ? (reach_ms / (max - min)) * plot.rect.width : 0;
  }

  #highShown(): number | null {
    return this.#model?.high ? shown(this.#model.high.temp_c, this.#model.unit) : null;
  }

  #pointed(plot: uPlot): Pointed | null {
    const model = this.#model;
    const { left, idxs } = plot.cursor;
    if (!model || left === undefined || left < 0 || !idxs) return null;
    const values: Record<string, number> = {};
    model.curves.forEach((curve, i) => {
      const index = idxs[i + 1];
      const value = typeof index === "number" ? model.columns.y[i]?.[index] : null;
      if (curve.visible && typeof value === "number") values[curve.id] = value;
    });
    return { instant_ms: plot.posToVal(left, "x"), values };
  }

  #marks(plot: uPlot): void {
    const model = this.#model;
    if (!model) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    // A high at the very edge of the day, e.g. at midnight, keeps its whole ring.
    const ring = RING_PX * devicePixelRatio;
    ctx.rect(bbox.left - ring, bbox.top, bbox.width + 2 * ring, bbox.height);
    ctx.clip();
    drawNow(plot, model.now_ms);
    const high = this.#highShown();
    if (model.high && high !== null) drawHigh(plot, high, model.high.observed_ms);
    drawLines(plot, this.#drag.lines(model.lines), model.unit);
    ctx.restore();
  }
}

function axes(model: ChartModel, onTicks: (texts: readonly string[]) => void): uPlot.Axis[] {
  const common = { stroke: INK.axis, font: AXIS_FONT, grid: { stroke: INK.grid, width: 1 }, ticks: { show: false } };
  return [
    {
      ...common,
      size: 24,
      gap: 6,
      splits: (plot, _, min, max) => axisSplits(model.zone, min, max, axisStep_min(max - min, plot.width, LABEL_PX)),
      values: (_, splits) => {
        const texts = splits.map((split) => tickText(model.language, model.zone, split));
        onTicks(texts);
        return texts;
      },
    },
    { ...common, size: 40, gap: 6, space: 34, values: (_, splits) => splits.map((split) => `${split}°`) },
  ];
}

function seriesOptions(curve: Curve): uPlot.Series {
  return {
    label: curve.label,
    show: curve.visible,
    stroke: curve.color,
    width: curve.width,
    dash: curve.dash,
    spanGaps: false,
    points: { show: (plot, i) => fewPoints(plot, i), size: 4, fill: curve.color, stroke: curve.color },
  };
}

/** A reading without neighbours makes no line; dots are drawn while there is room for them. */
function fewPoints(plot: uPlot, series: number): boolean {
  const [from, to] = plot.series[0]?.idxs ?? [0, 0];
  const column = plot.data[series] ?? [];
  let count = 0;
  for (let i = from; i <= to; i += 1) if (typeof column[i] === "number") count += 1;
  return count > 0 && count * 9 < plot.width;
}
