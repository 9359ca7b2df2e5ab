/** Takes a chart's lines by the pointer and moves them; the keyboard has its own fields for the same. */
import type uPlot from "uplot";
import type { ChartLine } from "./chart_marks";
import { fromShown, shown, type Unit } from "./unit";

const NEAR_PX = 5;

export interface DragModel {
  lines: readonly ChartLine[];
  unit: Unit;
}

export interface DragDeps {
  model: () => DragModel | null;
  /** Draws again; a dragged line has moved. */
  redraw: () => void;
  /** The line was let go at this temperature. */
  onMoved: (index: number, temp_c: number) => void;
}

export class LineDrag {
  readonly #deps: DragDeps;
  #dragged: { index: number; temp_c: number } | null = null;
  #release: () => void = () => {};

  constructor(deps: DragDeps) {
    this.#deps = deps;
  }

  get isDragging(): boolean {
    return this.#dragged !== null;
  }

  /** The lines as they are drawn now, the dragged one where the pointer is. */
  lines(all: readonly ChartLine[]): readonly ChartLine[] {
    const dragged = this.#dragged;
    if (!dragged) return all;
    return all.map((line, i) => (i === dragged.index ? { ...line, temp_c: dragged.temp_c } : line));
  }

  /** Index of the line under the pointer, or -1. */
  near(plot: uPlot, event: MouseEvent): number {
    const model = this.#deps.model();
    const y = event.clientY - plot.over.getBoundingClientRect().top;
    const away = model?.lines.map(({ temp_c }) => Math.abs(plot.valToPos(shown(temp_c, model.unit), "y") - y)) ?? [];
    const least = Math.min(...away);
    return least <= NEAR_PX ? away.indexOf(least) : -1;
  }

  /** Whether the press grabbed a line; then no other handler gets it. */
  press(plot: uPlot, event: MouseEvent): boolean {
    const index = event.button === 0 ? this.near(plot, event) : -1;
    const model = this.#deps.model();
    const line = model?.lines[index];
    if (!model || !line) return false;
    this.#dragged = { index, temp_c: line.temp_c };
    const move = (at: MouseEvent) => this.#move(plot, at, model.unit);
    const drop = () => this.#drop(line.temp_c);
    const cancel = (key: KeyboardEvent) => {
      if (key.key === "Escape") this.end();
    };
    window.addEventListener("mousemove", move);
    window.addEventListener("mouseup", drop);
    window.addEventListener("keydown", cancel);
    this.#release = () => {
      window.removeEventListener("mousemove", move);
      window.removeEventListener("mouseup", drop);
      window.removeEventListener("keydown", cancel);
    };
    return true;
  }

  #move(plot: uPlot, event: MouseEvent, unit: Unit): void {
    if (!this.#dragged) return;
    const { top, height } = plot.over.getBoundingClientRect();
    const value = plot.posToVal(Math.min(Math.max(event.clientY - top, 0), height), "y");
    this.#dragged.temp_c = fromShown(Math.round(value * 2) / 2, unit);
    this.#deps.redraw();
  }

  #drop(from_c: number): void {
    const dragged = this.#dragged;
    this.end();
    if (dragged && dragged.temp_c !== from_c) this.#deps.onMoved(dragged.index, dragged.temp_c);
  }

  /** Lets go where it was; also when the chart goes. */
  end(): void {
    this.#release();
    this.#release = () => {};
    if (!this.#dragged) return;
    this.#dragged = null;
    this.#deps.redraw();
  }
}
