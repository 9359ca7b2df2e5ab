import { describe, expect, it } from "vitest";
import type { Look } from "../data/presentation";
import { PLAIN_LOOK } from "../data/presentation";
import { layerOf } from "../testing/layers";
import { drawing } from "./kind_satellite";
import { legendOf } from "./layer_legend";
import type { DrawFeature } from "./layer_style";
import { changesWithTime, colorOf, objectLook } from "./layer_styles";
import { byKind, isMoving, valuesOf } from "./layer_values";

const NOW_MS = Date.parse("2026-05-25T12:00:00Z");
const SATELLITES = layerOf("satellites").look;
const QUAKES = layerOf("earthquakes").look;
const STATIONS = layerOf("weather_stations").look;

function feature(kind: string, data: Record<string, unknown>, observed_at: string | null = null): DrawFeature {
  return { id: "x:1", kind, lat: 1, lon: 2, observed_at, data };
}

const colorIn = (look: Look, key: string) => look.color?.classes.find((each) => each.key === key)?.color;
const counts = (look: Look, features: readonly DrawFeature[]) =>
  legendOf(look, features, NOW_MS).map(({ of, count }) => [of.key, count]);

describe("satellites", () => {
  it("are coloured by regime, low ones smaller and fainter; one without an orbit is drawn as a low one", () => {
    const look = (data: Record<string, unknown>) => objectLook(SATELLITES, feature("satellite", data), NOW_MS);
    const low = { color: colorIn(SATELLITES, "LEO"), alpha: 0.78, size_px: 2, fill_alpha: null };
    expect([look({ MEAN_MOTION: 15.5, ECCENTRICITY: 0 }), look({})]).toEqual([low, low]);
    const high = { color: colorIn(SATELLITES, "GEO"), alpha: 0.95, size_px: 3, fill_alpha: null };
    expect(look({ MEAN_MOTION: 1.0027, ECCENTRICITY: 0 })).toEqual(high);
  });
});

describe("quakes", () => {
  it("grow with magnitude, within bounds, and an unknown magnitude is small", () => {
    const size = (mag: unknown) => objectLook(QUAKES, feature("earthquake", { mag }), NOW_MS).size_px;
    const sizes = [-1, 0, 2, 4, 6, 9].map(size);
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect([sizes[0], sizes.at(-1), size(null), size("5"), size(Number.NaN), size(40)]).toEqual([3, 29.7, 4, 4, 4, 30]);
  });

  it("change colour an hour, a day and a week after", () => {
    const color = (at: string | null) => objectLook(QUAKES, feature("earthquake", {}, at), NOW_MS).color;
    const colors = ["11:30", "10:00"].map((time) => color(`2026-05-25T${time}:00Z`));
    const older = ["2026-05-20T12:00:00Z", "2026-04-20T12:00:00Z", null].map(color);
    expect(new Set([...colors, ...older]).size).toBe(4);
    expect(older[1]).toBe(older[2]);
    expect(color("2026-05-25T11:00:00Z")).toBe(colors[0]);
  });
});

describe("weather stations", () => {
  const at = "2026-05-25T11:30:00Z";
  const look = (data: Record<string, unknown>, observed_at: string | null = at) =>
    objectLook(STATIONS, feature("weather_station", data, observed_at), NOW_MS);

  it.each([
    [-0.5, "freezing"],
    [0, "cold"],
    [9.99, "cold"],
    [10, "mild"],
    [25, "warm"],
    [60, "hot"],
  ])("%d °C is %s", (temp_c, key) => {
    expect(look({ temp_c }).color).toBe(colorIn(STATIONS, key));
  });

  it.each([null, "12", Number.NaN, undefined])("no temperature in %s: no colour of the scale", (temp_c) => {
    expect(look({ temp_c }).color).toBe(STATIONS.color?.unknown?.color);
    expect(STATIONS.color?.classes.map(({ color }) => color)).not.toContain(look({ temp_c }).color);
  });

  it("are faint once they are later than their source ever is, whatever they were called last", () => {
    const late = (stale_s: unknown, observed_at: string | null) =>
      look({ temp_c: 1, stale_s, freshness: "fresh" }, observed_at).alpha < 0.5;
    expect([late(1_800, at), late(1_799, at), late(undefined, at), late(7_200, null)]).toEqual([
      false,
      true,
      false,
      true,
    ]);
    expect(look({ temp_c: 1 }, "2026-05-25T10:00:00Z").alpha).toBeLessThan(look({ temp_c: 1 }).alpha);
  });
});

describe("kinds", () => {
  it("a layer without a look has plain points of a lasting colour", () => {
    expect(isMoving("volcano")).toBe(false);
    const look = objectLook(PLAIN_LOOK, feature("volcano", {}), NOW_MS);
    expect(look).toEqual({ color: colorOf("volcano"), alpha: 0.9, size_px: 5, fill_alpha: null });
  });

  it("a file of its own gives a kind its values", () => {
    expect([...byKind({ "./kind_volcano.ts": { drawing } })]).toEqual([["volcano", drawing]]);
  });

  it("a quake of unusual type is drawn as a quake", () => {
    const [quake, explosion] = ["earthquake", "explosion"].map((kind) =>
      objectLook(QUAKES, feature(kind, { mag: 2 }, "2026-05-25T11:30:00Z"), NOW_MS),
    );
    expect(explosion).toEqual(quake);
  });

  it("only satellites move", () => {
    expect([isMoving("satellite"), isMoving("earthquake"), isMoving("constructor")]).toEqual([true, false, false]);
  });

  it("only looks that depend on an age change by themselves", () => {
    expect([SATELLITES, QUAKES, STATIONS, PLAIN_LOOK].map(changesWithTime)).toEqual([false, true, true, false]);
  });
});

describe("values", () => {
  it("are the feature's own, then what its kind works out, then its data, and never what every object has", () => {
    const data = { MEAN_MOTION: 16, ECCENTRICITY: 0, regime: "typed in", kind: "typed in", observed_at: "typed in" };
    const values = valuesOf(feature("satellite", data));
    const names = ["kind", "observed_at", "regime", "MEAN_MOTION", "constructor", "toString"];
    expect(names.map(values)).toEqual(["satellite", null, "LEO", 16, undefined, undefined]);
    expect(valuesOf(feature("volcano", data))("regime")).toBe("typed in");
  });
});

describe("legends", () => {
  it("count every object once, in the scale's order", () => {
    const low = feature("satellite", { MEAN_MOTION: 15.5, ECCENTRICITY: 0 });
    const high = feature("satellite", { MEAN_MOTION: 1.0027, ECCENTRICITY: 0 });
    expect(legendOf(SATELLITES, [high, low, low], NOW_MS)).toEqual([
      { of: SATELLITES.color?.classes[0], count: 2 },
      { of: SATELLITES.color?.classes[2], count: 1 },
    ]);
    const quakes = ["11:30", "10:00", "09:00"].map((time) =>
      feature("earthquake", { mag: 1 }, `2026-05-25T${time}:00Z`),
    );
    expect(counts(QUAKES, quakes)).toEqual([
      ["hour", 1],
      ["day", 2],
    ]);
  });

  it("count stations by temperature, and those without one not at all", () => {
    const stations = [31, -1, 0, "?"].map((temp_c) => feature("weather_station", { temp_c }));
    expect(counts(STATIONS, stations)).toEqual([
      ["freezing", 1],
      ["cold", 1],
      ["hot", 1],
    ]);
  });

  it("are of the colours that are drawn, class by class", () => {
    const quakes = ["11:59", "11:30", "10:00"].map((time) => feature("earthquake", {}, `2026-05-25T${time}:00Z`));
    for (const each of [...quakes, feature("earthquake", {})]) {
      const [entry] = legendOf(QUAKES, [each], NOW_MS);
      expect(entry?.of.color).toBe(objectLook(QUAKES, each, NOW_MS).color);
    }
  });

  it("layers without a scale have none", () => {
    expect(counts(PLAIN_LOOK, [feature("volcano", {})])).toEqual([]);
  });
});

describe("scales with gaps", () => {
  const shades = ["low", "high"].map((key, index) => ({
    key,
    label: key,
    label_zh: key,
    color: `#00000${index}`,
    alpha: 0.5,
    up_to_s: null,
    below: index + 1,
    equals: null,
    size_px: null,
  }));
  const look: Look = { ...PLAIN_LOOK, color: { by: "value", value: "ash_km", classes: shades, unknown: null } };

  it("what is in no class has the kind's own colour and is not counted", () => {
    const [inside, beyond, none] = [1.5, 2, "?"].map((ash_km) => feature("volcano", { ash_km }));
    expect(objectLook(look, inside as DrawFeature, NOW_MS).color).toBe("#000001");
    for (const out of [beyond, none])
      expect(objectLook(look, out as DrawFeature, NOW_MS).color).toBe(colorOf("volcano"));
    expect(counts(look, [inside, beyond, none] as DrawFeature[])).toEqual([["high", 1]]);
  });
});
