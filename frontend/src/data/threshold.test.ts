import { describe, expect, it } from "vitest";
import { readDetail } from "../client/city_wire";
import { detailBody } from "../testing/observations";
import { cityFromDetail } from "./city";
import { parseArrangement } from "./slots";
import {
  movedThreshold,
  parseValue,
  reachedAt,
  readThresholds,
  THRESHOLDS_MAX,
  threshold_c,
  thresholdAt,
  withoutThreshold,
  withThreshold,
} from "./threshold";

const c = (value: number) => ({ value, unit: "celsius" }) as const;
const f = (value: number) => ({ value, unit: "fahrenheit" }) as const;

describe("a threshold", () => {
  it("keeps its number and unit", () => {
    expect(threshold_c(f(80))).toBeCloseTo(26.6667, 4);
    expect(thresholdAt(threshold_c(f(80)), "fahrenheit")).toEqual(f(80));
    expect(thresholdAt(-0.01, "celsius")).toEqual(c(0));
  });

  it.each([
    ["21", 21],
    [" 21,5 ", 21.5],
    ["−3.04", -3],
    ["0", 0],
    ["-0", 0],
    ["", null],
    ["warm", null],
    ["1e9", null],
    ["NaN", null],
  ])("typed as %j is %s", (text, value) => {
    expect(parseValue(text)).toBe(value);
  });

  it("is not drawn twice at one level, whatever its unit, and there are never too many", () => {
    const one = withThreshold([], c(10));
    expect(withThreshold(one, f(50))).toBe(one);
    const many = Array.from({ length: 20 }, (_, i) => c(i)).reduce(
      withThreshold,
      [] as readonly ReturnType<typeof c>[],
    );
    expect(many).toHaveLength(THRESHOLDS_MAX);
  });

  it("moves and goes; moved onto another it becomes that one", () => {
    const two = [c(10), c(20)];
    expect(movedThreshold(two, 1, c(21))).toEqual([c(10), c(21)]);
    expect(movedThreshold(two, 1, c(10))).toEqual([c(10)]);
    expect(movedThreshold(two, 7, c(10))).toBe(two);
    expect(withoutThreshold(two, 0)).toEqual([c(20)]);
  });

  it("is read back from what was kept, and nothing else is", () => {
    expect(readThresholds([c(1), { value: "2", unit: "celsius" }, { value: 3 }, null, f(50), c(1)])).toEqual([
      c(1),
      f(50),
    ]);
    expect(readThresholds("none")).toEqual([]);
    const kept = parseArrangement(JSON.stringify({ thresholds: { shanghai: [c(30)], tokyo: [], london: 5 } }));
    expect(kept.thresholds).toEqual({ shanghai: [c(30)] });
    expect(parseArrangement(null).thresholds).toEqual({});
  });
});

describe("whether the day reached it", () => {
  const DAY = Date.UTC(2026, 4, 25, 16); // midnight in Shanghai
  const at = (minutes: number, temp: number) => [DAY + minutes * 60_000, temp];

  function city(points: number[][], more: Record<string, unknown> = {}) {
    const series = [{ series_key: "metar", source: "awc_metar", label: null, points }];
    const body = detailBody("shanghai", 1, { timeseries: { series }, local_date: "2026-05-26", ...more });
    return cityFromDetail(readDetail(body), DAY + 3_600_000);
  }

  it("is told with the first reading at or above it, of today", () => {
    const state = city([at(-10, 40), at(10, 19.9), at(20, 20), at(30, 25)]);
    expect(reachedAt(state, c(20))).toEqual({ observed_ms: DAY + 20 * 60_000 });
    expect(reachedAt(state, c(25.1))).toBeNull();
  });

  it("compares in the threshold's own unit: 80 °F that came as °C is 80 °F", () => {
    expect(reachedAt(city([at(10, ((80 - 32) * 5) / 9)]), f(80))).not.toBeNull();
    expect(reachedAt(city([at(10, 26.67)]), f(80))).not.toBeNull();
    expect(reachedAt(city([at(10, 26.66)]), f(80))).toBeNull();
  });

  it("counts a reported maximum, whose time nobody knows", () => {
    const day_high = { temp: 31, obs_time: null };
    expect(reachedAt(city([at(10, 20)], { day_high }), c(30))).toEqual({ observed_ms: null });
  });

  it("does not count what stands beside the others", () => {
    const series = [{ series_key: "reference", source: "cowin_obs", label: null, points: [at(10, 50)] }];
    expect(reachedAt(city([], { timeseries: { series } }), c(30))).toBeNull();
  });
});
