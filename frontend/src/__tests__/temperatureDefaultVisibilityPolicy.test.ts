/** S176, S177, S204, S205, S206: a patch appends its minute point; a runway patch updates its own series. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readDetail, readPatch } from "../client/city_wire";
import { applyPatch, type CityState, cityFromDetail, findSeries } from "../data/city";
import { patch } from "../testing/stream";

const NOW = Date.UTC(2026, 4, 26, 10, 30);

function shanghai(points: [number, number][] = []): CityState {
  return cityFromDetail(
    readDetail({
      city: "shanghai",
      display_name: "Shanghai",
      timezone: "Asia/Shanghai",
      unit: "celsius",
      local_date: "2026-05-26",
      revision: 1,
      epoch: "abcdef012345",
      airport_primary: null,
      timeseries: { series: [{ series_key: "metar", source: "awc_metar", label: "ZSPD", points }] },
      runway_plate_history: {},
      errors: [],
    }),
    NOW,
  );
}

function patched(state: CityState, ...frames: ReturnType<typeof patch>[]): CityState {
  return frames.reduce((city, frame) => {
    const read = readPatch(frame);
    return read ? applyPatch(city, read, NOW) : city;
  }, state);
}

describe("a patch", () => {
  // S176, S204, S226
  it("appends a minute point and becomes the headline", () => {
    const state = patched(shanghai(), patch("shanghai", 2, 1), patch("shanghai", 3, 2));
    const series = findSeries(state, "metar");
    expect(series?.y).toEqual([22, 23]);
    expect((series?.x[1] ?? 0) - (series?.x[0] ?? 0)).toBe(60_000);
    expect(state.headline?.temp_c).toBe(23);
    expect(state.high?.temp_c).toBe(23);
  });

  it("that is late joins the curve and changes no headline", () => {
    const late = { ...patch("shanghai", 9, 3), obs_time: "2026-05-26T09:00:00Z" };
    const state = patched(shanghai(), patch("shanghai", 3, 1), late);
    expect(findSeries(state, "metar")?.y).toEqual([29, 23]);
    expect(state.headline?.temp_c).toBe(23);
    expect(state.high?.temp_c).toBe(29);
  });

  it("of another source is another line", () => {
    const state = patched(shanghai(), patch("shanghai", 2, 1), { ...patch("shanghai", 3, 2), source: "hko_obs" });
    expect(state.series.map((series) => series.y)).toEqual([[22], [23]]);
  });

  it("with zero degrees is a point", () => {
    const state = patched(shanghai(), patch("shanghai", 2, 1, { temp: 0 }), patch("shanghai", 3, 2, { temp: -0.5 }));
    expect(findSeries(state, "metar")?.y).toEqual([0, -0.5]);
  });
});

describe("a runway patch", () => {
  const runway_points = [
    { runway: "17L/35R", temp: 30.8, is_settlement: true },
    { runway: "16R/34L", temp: 30.1 },
  ];

  // S177, S205, S226
  it("updates the series of its runways and shows a new one without a reload", () => {
    const state = patched(
      shanghai(),
      patch("shanghai", 2, 1, { runway_points }),
      patch("shanghai", 3, 2, { runway_points }),
    );
    expect(findSeries(state, "runway:17L/35R")?.y).toEqual([30.8, 30.8]);
    expect(findSeries(state, "runway:17L/35R")?.is_settlement).toBe(true);
    expect(findSeries(state, "runway:16R/34L")?.x).toHaveLength(2);
  });

  it("never counts for the headline or the high", () => {
    const state = patched(shanghai(), patch("shanghai", 2, 1, { temp: 20, runway_points }));
    expect([state.headline?.temp_c, state.high?.temp_c]).toEqual([20, 20]);
  });
});

describe("snapshot and patches", () => {
  it("give what a later snapshot gives, whatever order the points came in", () => {
    const point = fc.tuple(fc.integer({ min: 0, max: 59 }), fc.integer({ min: -40, max: 45 }));
    fc.assert(
      fc.property(fc.uniqueArray(point, { selector: ([minute]) => minute, maxLength: 30 }), fc.nat(30), (all, cut) => {
        const at = (minute: number) => Date.UTC(2026, 4, 26, 9, minute);
        const first = all.slice(0, cut).map(([minute, temp]): [number, number] => [at(minute), temp]);
        const frames = all.slice(cut).map(([minute, temp], i) => ({
          ...patch("shanghai", i + 2, i + 1, { temp }),
          obs_time: new Date(at(minute)).toISOString(),
        }));
        const grown = patched(shanghai(first), ...frames);
        const whole = shanghai(all.map(([minute, temp]): [number, number] => [at(minute), temp]));
        const shown = (state: CityState) => [findSeries(state, "metar")?.x, findSeries(state, "metar")?.y];
        if (all.length > 0) expect(shown(grown)).toEqual(shown({ ...whole, series: whole.series }));
        expect(grown.high?.temp_c).toBe(whole.high?.temp_c);
      }),
      { numRuns: 300 },
    );
  });
});
