import { describe, expect, it } from "vitest";
import { isEqual, shapeOf } from "./shape";

const line = (coordinates: unknown) => ({ geometry: { type: "LineString", coordinates } });
const area = (coordinates: unknown) => ({ geometry: { type: "Polygon", coordinates } });
const RING = [
  [0, 0],
  [1, 0],
  [1, 1],
  [0, 0],
];

describe("a geometry", () => {
  it("is read by the kind of its layer, one part or several", () => {
    const path = RING.slice(0, 2);
    expect(shapeOf("line", line(path))).toEqual({ kind: "line", lines: [path] });
    expect(shapeOf("area", area([RING]))).toEqual({ kind: "area", polygons: [[RING]] });
    const several = { geometry: { type: "MultiLineString", coordinates: [path, path] } };
    expect(shapeOf("line", several)).toEqual({ kind: "line", lines: [path, path] });
    const areas = { geometry: { type: "MultiPolygon", coordinates: [[RING], [RING]] } };
    expect(shapeOf("area", areas)).toEqual({ kind: "area", polygons: [[RING], [RING]] });
  });

  it("that was typed in without its last position is closed", () => {
    expect(shapeOf("area", area([RING.slice(0, 3)]))).toEqual({ kind: "area", polygons: [[RING]] });
  });

  it.each([
    ["nothing", {}],
    ["null", { geometry: null }],
    ["a text", { geometry: "LineString" }],
    ["another kind", area([RING])],
    ["a point", { geometry: { type: "Point", coordinates: [1, 2] } }],
    ["no list", line("0,0 1,1")],
    ["an empty list", line([])],
    ["one position", line([[0, 0]])],
    [
      "a text among numbers",
      line([
        [0, 0],
        ["1", 1],
      ]),
    ],
    ["a null", line([[0, 0], null])],
    ["half a position", line([[0, 0], [1]])],
    [
      "a latitude that is none",
      line([
        [0, 0],
        [1, 91],
      ]),
    ],
    ["more than can be drawn", line(Array.from({ length: 20_001 }, (_, at) => [at % 2, 0]))],
    ["lists without end", line([[[[[[[0]]]]]]])],
  ])("that holds %s is none", (_, data) => {
    expect(shapeOf("line", data)).toBeNull();
  });
});

describe("equal", () => {
  it.each([
    [1, 1, true],
    [[1, [2, 3]], [1, [2, 3]], true],
    [{ a: [1], b: "x" }, { a: [1], b: "x" }, true],
    [[1, 2], [1, 3], false],
    [[1, 2], [1, 2, 3], false],
    [{ a: 1 }, { b: 1 }, false],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [[1], { 0: 1 }, false],
    [{ a: 1 }, null, false],
    [{ a: 1 }, undefined, false],
  ])("%j and %j: %s", (a, b, same) => {
    expect(isEqual(a, b)).toBe(same);
    expect(isEqual(b, a)).toBe(same);
  });
});
