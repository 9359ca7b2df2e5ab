// @vitest-environment happy-dom
import { expect, it } from "vitest";
import { PLAIN_LOOK } from "../data/presentation";
import { createShapeLayer, type DrawnShape } from "./globe_shapes";
import type { Position } from "./sphere";

const MANY = 400;

/** A line of so many degrees along a meridian, as a fresh answer of the server has it. */
function line(id: string, lon: number, long = 10): DrawnShape {
  const lines: Position[][] = [
    [
      [lon, 0],
      [lon, long],
    ],
  ];
  const feature = { id, kind: "cable", lat: long / 2, lon, observed_at: null, data: {} };
  return { feature, shape: { kind: "line", lines } };
}

const all = () => Array.from({ length: MANY }, (_, at) => line(`line ${at}`, at / 4));

// S64: a reload costs what changed.
it("what stayed as it was is left alone: one more, one less, one changed is one or two groups", () => {
  const layer = createShapeLayer("cables");
  layer.setShapes(all(), PLAIN_LOOK, 0);
  const groups = layer.builds;
  expect([layer.count, layer.strokes.length]).toEqual([MANY, groups]);
  expect(groups).toBeGreaterThan(4);

  layer.setShapes(all(), PLAIN_LOOK, 0);
  expect(layer.builds).toBe(groups);

  const more = [...all(), line("one more", 1)];
  const steps = [more, more.slice(1), [line("line 1", 0, 20), ...more.slice(2)]];
  for (const shapes of steps) {
    const before = layer.builds;
    layer.setShapes(shapes, PLAIN_LOOK, 0);
    expect(layer.count).toBe(shapes.length);
    expect(layer.builds - before).toBeGreaterThan(0);
    expect(layer.builds - before).toBeLessThan(3);
  }
});

it("an id that is there twice is drawn once, and none are drawn once all are gone", () => {
  const layer = createShapeLayer("cables");
  layer.setShapes([line("twice", 0), line("twice", 1)], PLAIN_LOOK, 0);
  expect(layer.count).toBe(1);
  layer.setShapes([], PLAIN_LOOK, 0);
  expect([layer.count, layer.strokes.length, layer.fills.length]).toEqual([0, 0, 0]);
});

it("a shape lies where its fact does, and reaches as far as its farthest end", () => {
  const layer = createShapeLayer("cables");
  layer.setShapes([line("a", 0, 10)], PLAIN_LOOK, 0);
  const found = layer.placeOf("a");
  expect((found?.extent_m ?? 0) / 1_000).toBeCloseTo(553, -1);
  expect([layer.placeOf("b"), layer.markOf("b")]).toEqual([null, null]);
  expect(layer.markOf("a")).not.toBeNull();
});
