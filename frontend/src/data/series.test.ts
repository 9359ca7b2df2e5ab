import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cadence_s, columns, emptySeries, highest, withPoints } from "./series";

const MINUTE = 60_000;
const series = (points: readonly (readonly [number, number])[], more = {}) =>
  withPoints(emptySeries("metar", "unheard_of", more), points);

describe("points of a curve", () => {
  it("stay ascending and unique, whatever order they come in; the last word on a time counts (F26)", () => {
    const times = fc.integer({ min: 0, max: 500 }).map((n) => n * MINUTE);
    fc.assert(
      fc.property(fc.array(fc.tuple(times, fc.integer({ min: -50, max: 50 }))), (points) => {
        const one = points.reduce((made, point) => withPoints(made, [point]), emptySeries("metar", "m"));
        const truth = [...new Map(points)].sort((a, b) => a[0] - b[0]);
        expect(one.x.map((x, i) => [x, one.y[i]])).toEqual(truth);
        expect(withPoints(emptySeries("metar", "m"), points)).toEqual(one);
      }),
    );
  });

  it("are cut by time and not by arrival", () => {
    const day = 86_400_000;
    const one = series([
      [10 * day, 1],
      [0, 2],
      [10 * day - MINUTE, 3],
    ]);
    expect(one.x).toEqual([10 * day - MINUTE, 10 * day]);
  });

  it("are no more than a chart can draw, the newest of them", () => {
    const many = Array.from({ length: 6_500 }, (_, i) => [i * 20_000, i] as const);
    const { x, y } = series(many);
    expect([x.length, y[0], y.at(-1)]).toEqual([6_000, 500, 6_499]);
  });

  it("leave the given curve as it was", () => {
    const before = series([[1, 1]]);
    withPoints(before, [[2, 2]]);
    expect(before.x).toEqual([1]);
  });
});

describe("the distance between readings", () => {
  it("is the source's own unless its readings are rarer", () => {
    const hourly = [0, 60, 120, 180, 240].map((minute) => [minute * MINUTE, 1] as const);
    expect(cadence_s(series(hourly, { cadence_s: 1_800 }))).toBe(3_600);
    const minutely = [0, 1, 2, 3, 4].map((minute) => [minute * MINUTE, 1] as const);
    expect(cadence_s(series(minutely, { cadence_s: 1_800 }))).toBe(1_800);
    expect(cadence_s(series(minutely))).toBe(60);
    const broken = [0, 1, 2, 3, 100, 101, 102].map((minute) => [minute * MINUTE, 1] as const);
    expect(cadence_s(series(broken))).toBe(60);
    expect(cadence_s(series([[0, 1]]))).toBe(600);
    expect(cadence_s(emptySeries("runway", "amos", { cadence_s: 60 }))).toBe(60);
  });
});

describe("columns", () => {
  it("break a line where more than twice the cadence is missing, and only there", () => {
    const at = (minutes: number[]) => minutes.map((minute) => [minute * MINUTE, minute] as const);
    const exact = columns([series(at([0, 1, 2, 3, 5]), { cadence_s: 60 })]);
    expect(exact.y[0]).toEqual([0, 1, 2, 3, 5]);
    const hole = columns([series(at([0, 1, 2, 3, 6]), { cadence_s: 60 })]);
    expect(hole.y[0]).toEqual([0, 1, 2, 3, null, 6]);
    expect(hole.x[4]).toBe(4.5 * MINUTE);
  });

  it("pass over times that only another curve has", () => {
    const a = series([
      [0, 1],
      [2 * MINUTE, 3],
    ]);
    const b = series([[MINUTE, 5]]);
    const { x, y } = columns([a, b]);
    expect(x).toEqual([0, MINUTE, 2 * MINUTE]);
    expect(y).toEqual([
      [1, undefined, 3],
      [undefined, 5, undefined],
    ]);
    expect(columns([])).toEqual({ x: [], y: [] });
  });
});

it("finds the first highest point of a span, its end not included", () => {
  const one = series([
    [0, 5],
    [1, -0.5],
    [2, 0],
    [3, 0],
    [4, 9],
  ]);
  expect(highest(one, 1, 4)).toEqual([2, 0]);
  expect(highest(one, 5, 9)).toBeNull();
});
