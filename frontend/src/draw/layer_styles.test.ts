import { describe, expect, it } from "vitest";
import { legendOf } from "./layer_legend";
import { ageLook, magnitudeSize_px } from "./layer_quakes";
import { orbitOf, REGIME_COLOR } from "./layer_satellites";
import type { DrawFeature } from "./layer_style";
import { byKind, colorOf, styleOf } from "./layer_styles";
import { isLate, TEMPERATURE_STEPS, temperatureStep, UNKNOWN_COLOR } from "./layer_weather";

const NOW_MS = Date.parse("2026-05-25T12:00:00Z");

function feature(kind: string, data: Record<string, unknown>, observed_at: string | null = null): DrawFeature {
  return { id: "x:1", kind, lat: 1, lon: 2, observed_at, data };
}

describe("regimes", () => {
  it.each([
    ["a space station", 15.5, 0.0004, "LEO", 400, 430],
    ["a navigation satellite", 2.0056, 0.005, "MEO", 20_000, 20_400],
    ["a geostationary one", 1.0027, 0.0002, "GEO", 35_700, 35_900],
    ["Molniya", 2.006, 0.7, "HEO", 38_500, 40_500],
  ])("%s", (_, MEAN_MOTION, ECCENTRICITY, regime, least_km, most_km) => {
    const orbit = orbitOf({ MEAN_MOTION, ECCENTRICITY, INCLINATION: 51.6 });
    expect(orbit?.regime).toBe(regime);
    expect(orbit?.apogee_km).toBeGreaterThan(least_km);
    expect(orbit?.apogee_km).toBeLessThan(most_km);
  });

  it("period follows from turns a day", () => {
    expect(orbitOf({ MEAN_MOTION: 16, ECCENTRICITY: 0 })?.period_min).toBe(90);
  });

  it.each([{}, { MEAN_MOTION: 0, ECCENTRICITY: 0 }, { MEAN_MOTION: 15, ECCENTRICITY: 1 }, { MEAN_MOTION: null }])(
    "elements that say nothing have no orbit: %j",
    (data) => {
      expect(orbitOf(data)).toBeNull();
    },
  );
});

describe("quakes", () => {
  it("grow with magnitude, within bounds, and an unknown magnitude is small", () => {
    const sizes = [-1, 0, 2, 4, 6, 9].map((magnitude) => magnitudeSize_px(magnitude));
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect([sizes[0], sizes.at(-1), magnitudeSize_px(null)]).toEqual([3, 29.7, 4]);
  });

  it("change colour an hour, a day and a week after", () => {
    const colors = ["11:30", "10:00"].map((time) => ageLook(`2026-05-25T${time}:00Z`, NOW_MS).color);
    const older = ["2026-05-20T12:00:00Z", "2026-04-20T12:00:00Z", null].map((at) => ageLook(at, NOW_MS).color);
    expect(new Set([...colors, ...older]).size).toBe(4);
    expect(older[1]).toBe(older[2]);
  });
});

describe("weather stations", () => {
  const at = "2026-05-25T11:30:00Z";

  it.each([
    [-0.5, "freezing"],
    [0, "cold"],
    [9.99, "cold"],
    [10, "mild"],
    [25, "warm"],
    [60, "hot"],
  ])("%d °C is %s", (temp_c, key) => {
    expect(temperatureStep({ temp_c })?.key).toBe(key);
    const look = styleOf("weather_station", {}).look(feature("weather_station", { temp_c }, at), NOW_MS);
    expect(look.color).toBe(TEMPERATURE_STEPS.find((step) => step.key === key)?.color);
  });

  it.each([null, "12", Number.NaN, undefined])("no temperature in %s: no colour of the scale", (temp_c) => {
    expect(styleOf("weather_station", {}).look(feature("weather_station", { temp_c }, at), NOW_MS).color).toBe(
      UNKNOWN_COLOR,
    );
  });

  it("are faint once they are later than their source ever is, whatever they were called last", () => {
    const late = (stale_s: unknown, observed_at: string | null) =>
      isLate(feature("weather_station", { temp_c: 1, stale_s, freshness: "fresh" }, observed_at), NOW_MS);
    expect([late(1_800, at), late(1_799, at), late(undefined, at), late(7_200, null)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    const look = (observed_at: string) =>
      styleOf("weather_station", {}).look(feature("weather_station", { temp_c: 1 }, observed_at), NOW_MS).alpha;
    expect(look("2026-05-25T10:00:00Z")).toBeLessThan(look(at));
  });
});

describe("kinds", () => {
  it("a kind without an entry is a plain point of a lasting colour", () => {
    const style = styleOf("volcano", {});
    expect(style.moving).toBe(false);
    expect(style.look(feature("volcano", {}), NOW_MS).color).toBe(colorOf("volcano"));
  });

  it("a file of its own gives a kind its look", () => {
    const style = styleOf("satellite", {});
    expect(byKind({ "./kind_volcano.ts": { style } })).toEqual({ volcano: style });
  });

  it("a quake of unusual type is drawn as a quake", () => {
    expect(styleOf("explosion", { mag: 2 })).toBe(styleOf("earthquake", {}));
  });

  it("only satellites move", () => {
    expect([styleOf("satellite", {}).moving, styleOf("earthquake", {}).moving]).toEqual([true, false]);
  });
});

describe("legends", () => {
  it("count every object once, in the scale's order", () => {
    const low = feature("satellite", { MEAN_MOTION: 15.5, ECCENTRICITY: 0 });
    const high = feature("satellite", { MEAN_MOTION: 1.0027, ECCENTRICITY: 0 });
    expect(legendOf([high, low, low], NOW_MS)).toEqual([
      { key: "LEO", color: REGIME_COLOR.LEO, count: 2 },
      { key: "GEO", color: REGIME_COLOR.GEO, count: 1 },
    ]);
    const quakes = ["11:30", "10:00", "09:00"].map((time) =>
      feature("earthquake", { mag: 1 }, `2026-05-25T${time}:00Z`),
    );
    expect(legendOf(quakes, NOW_MS).map(({ key, count }) => [key, count])).toEqual([
      ["hour", 1],
      ["day", 2],
    ]);
  });

  it("count stations by temperature, and those without one not at all", () => {
    const stations = [31, -1, 0, "?"].map((temp_c) => feature("weather_station", { temp_c }));
    expect(legendOf(stations, NOW_MS).map(({ key, count }) => [key, count])).toEqual([
      ["freezing", 1],
      ["cold", 1],
      ["hot", 1],
    ]);
  });

  it("kinds without a scale have none", () => {
    expect(legendOf([feature("volcano", {})], NOW_MS)).toEqual([]);
  });
});
