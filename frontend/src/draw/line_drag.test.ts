// @vitest-environment happy-dom
import type uPlot from "uplot";
import { expect, it } from "vitest";
import { LineDrag } from "./line_drag";

/** A plot of 100 pixels from 30° at its top to 10° at its bottom. */
function plot(): uPlot {
  const over = document.createElement("div");
  over.getBoundingClientRect = () => ({ top: 0, height: 100 }) as DOMRect;
  return {
    over,
    valToPos: (value: number) => (30 - value) * 5,
    posToVal: (at: number) => 30 - at / 5,
  } as unknown as uPlot;
}

function at(type: string, clientY: number): MouseEvent {
  return new MouseEvent(type, { clientY, button: 0 });
}

it("a line follows the pointer in half degrees, and is moved where it is let go", () => {
  const moved: [number, number][] = [];
  const lines = [{ temp_c: 20, text: "20°", reached: false }];
  const drag = new LineDrag({
    model: () => ({ lines, unit: "celsius" }),
    redraw: () => {},
    onMoved: (index, temp_c) => moved.push([index, temp_c]),
  });
  expect(drag.press(plot(), at("mousedown", 70))).toBe(false);
  expect(drag.press(plot(), at("mousedown", 52))).toBe(true);
  window.dispatchEvent(at("mousemove", 31));
  expect(drag.lines(lines)[0]?.temp_c).toBe(24);
  expect(moved).toEqual([]);
  window.dispatchEvent(at("mouseup", 31));
  expect(moved).toEqual([[0, 24]]);
  window.dispatchEvent(at("mousemove", 90));
  expect([drag.isDragging, drag.lines(lines)[0]?.temp_c]).toEqual([false, 20]);
});

it("Escape lets a line go where it was", () => {
  const moved: number[] = [];
  const lines = [{ temp_c: 20, text: "20°", reached: false }];
  const drag = new LineDrag({
    model: () => ({ lines, unit: "celsius" }),
    redraw: () => {},
    onMoved: (_, temp_c) => moved.push(temp_c),
  });
  drag.press(plot(), at("mousedown", 50));
  window.dispatchEvent(at("mousemove", 20));
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  window.dispatchEvent(at("mouseup", 20));
  expect([moved, drag.isDragging]).toEqual([[], false]);
});
