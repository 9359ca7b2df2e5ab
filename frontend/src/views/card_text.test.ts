import { describe, expect, it } from "vitest";
import type { CardRow } from "../client/presentation_wire";
import { valuesOf } from "../draw/layer_values";
import { layerOf } from "../testing/layers";
import { rowShown } from "./card_text";

const ROW: CardRow = {
  key: "ash",
  label: "Ash",
  label_zh: "火山灰",
  values: ["ash"],
  format: "text",
  join: null,
  decimals: null,
  unit: "",
  unit_from: null,
  choices: [],
  otherwise: null,
};

function shown(row: Partial<CardRow>, data: Record<string, unknown>, language = "en") {
  return rowShown({ ...ROW, ...row }, (name) => data[name], language);
}

describe("formats", () => {
  it("text is what is written, a number too; anything else is nothing", () => {
    const values = ["thick", 7, 0, "", null, undefined, true, {}, [], Number.NaN];
    expect(values.map((ash) => shown({}, { ash }))).toEqual(["thick", "7", "0", ...Array(7).fill(null)]);
  });

  it("a number has the digits that were asked for, or those that mean something", () => {
    const number = (ash: unknown, row: Partial<CardRow> = {}) => shown({ format: "number", ...row }, { ash });
    expect([number(9.96), number(12_345.6), number(0)]).toEqual(["10.0", "12,346", "0.0"]);
    expect([number(5.35, { decimals: 1 }), number(12_345.6, { decimals: 0 })]).toEqual(["5.3", "12,346"]);
    expect(["5", null, Number.POSITIVE_INFINITY].map((ash) => number(ash))).toEqual([null, null, null]);
  });

  it("a unit stands behind a space, a sign of angle does not, and the data may name it", () => {
    const unit = (row: Partial<CardRow>, data = {}) => shown({ format: "number", ...row }, { ash: 51.6, ...data });
    expect([unit({ unit: "km" }), unit({ unit: "°" }), unit({ unit: "% of it" })]).toEqual([
      "52 km",
      "52°",
      "52% of it",
    ]);
    const named = { unit_from: "of" };
    expect([unit(named, { of: "mww" }), unit(named), unit(named, { of: 5 })]).toEqual(["52 mww", "52", "52"]);
  });

  it("a temperature is of °C, with a true minus and no negative zero", () => {
    const values = [-3.25, 0, -0.01, "3"].map((ash) => shown({ format: "temperature" }, { ash }));
    expect(values).toEqual(["−3.3°C", "0.0°C", "0.0°C", null]);
  });

  it("a time is the first that can be read", () => {
    const time = (data: Record<string, unknown>) => shown({ format: "time", values: ["ash", "later"] }, data);
    const at_ms = Date.UTC(2026, 4, 25, 10, 20, 30);
    expect(time({ ash: "2026-05-25T10:20:30", later: "2020-01-01T00:00:00Z" })).toEqual({ at_ms });
    expect(time({ ash: "soon", later: "2026-05-25T12:20:30+02:00" })).toEqual({ at_ms });
    expect([time({}), time({ ash: 5 })]).toEqual([null, null]);
  });

  it("a flag says what it has a word for", () => {
    const yes = { equals: "yes", label: "issued", label_zh: "已发布" };
    const no = { equals: "no", label: "none", label_zh: "无" };
    const flag = (ash: unknown, choices = [yes]) => shown({ format: "flag", choices }, { ash });
    expect([1, true, "x", 0, false, "", null, undefined].map((ash) => flag(ash))).toEqual([
      ...Array(3).fill("issued"),
      ...Array(5).fill(null),
    ]);
    expect([1, 0, false, null].map((ash) => flag(ash, [yes, no]))).toEqual(["issued", "none", "none", null]);
  });

  it("a choice is called by its name in the language, and one that is not known by itself", () => {
    const choices = [{ equals: "red", label: "red alert", label_zh: "红色警报" }];
    const choice = (ash: unknown, language: string) => shown({ format: "choice", choices }, { ash }, language);
    expect([choice("red", "en"), choice("red", "zh"), choice("mauve", "zh"), choice(null, "en")]).toEqual([
      "red alert",
      "红色警报",
      "mauve",
      null,
    ]);
  });
});

describe("several values", () => {
  it("the first that can be shown is, or all that can with what joins them", () => {
    const values = ["a", "b", "c"];
    const data = { a: "", b: "two", c: "three" };
    expect(shown({ values }, data)).toBe("two");
    expect(shown({ values, join: " · " }, data)).toBe("two · three");
    expect(shown({ values, join: " · " }, {})).toBeNull();
  });

  it("where none can be shown stands what is said otherwise", () => {
    const otherwise = { label: "nothing known", label_zh: "未知" };
    expect([shown({ otherwise }, {}), shown({ otherwise }, {}, "zh")]).toEqual(["nothing known", "未知"]);
    expect(shown({ otherwise }, { ash: "thick" })).toBe("thick");
  });
});

describe("the shipped cards", () => {
  const feature = (kind: string, data: Record<string, unknown>) => {
    return { id: "x:1", kind, lat: 1, lon: 2, observed_at: "2026-05-25T10:20:30Z", data };
  };
  const lines = (layer: string, data: Record<string, unknown>, language: string, altitude_m: number | null = null) => {
    const values = valuesOf(feature(layer.replace(/s$/, ""), data), altitude_m === null ? null : { altitude_m });
    return layerOf(layer).card.flatMap((row) => {
      const text = rowShown(row, values, language);
      if (text === null) return [];
      const label = language === "zh" ? row.label_zh : row.label;
      return [`${label}: ${typeof text === "string" ? text : new Date(text.at_ms).toISOString()}`];
    });
  };
  const observed = "2026-05-25T10:20:30.000Z";

  it("of a satellite: who it is, where it is, its orbit", () => {
    const data = {
      NORAD_CAT_ID: 25544,
      OBJECT_ID: "1998-067A",
      MEAN_MOTION: 15.5,
      ECCENTRICITY: 0.0004,
      INCLINATION: 51.64,
    };
    expect(lines("satellites", { ...data, EPOCH: "2026-05-25T04:00:00.5" }, "en", 417_600)).toEqual([
      "NORAD id: 25544",
      "Designator: 1998-067A",
      "Altitude: 418 km",
      "Regime: LEO · low Earth orbit",
      "Perigee × apogee: 414 km × 419 km",
      "Inclination: 52°",
      "Period: 93 min",
      "Elements: 2026-05-25T04:00:00.500Z",
    ]);
    expect(lines("satellites", { NORAD_CAT_ID: "25544" }, "zh")).toEqual([
      "NORAD 编号: 25544",
      "高度: 没有位置",
      `轨道根数: ${observed}`,
    ]);
  });

  it("of a quake: how strong, how deep, when, and what was made known", () => {
    const data = { mag: 5.35, mag_type: "mww", depth_km: 9.96, status: "reviewed", tsunami: 1 };
    expect(lines("earthquakes", data, "en")).toEqual([
      "Magnitude: 5.3 mww",
      "Depth: 10.0 km",
      `Time: ${observed}`,
      "Review: reviewed",
      "Tsunami: message issued",
    ]);
    expect(lines("earthquakes", { mag: 4, tsunami: 0 }, "zh")).toEqual(["震级: 4.0", `时间: ${observed}`]);
  });

  it("of a weather station: how warm, when, where, and who says so", () => {
    const data = { temp_c: -3.25, station_label: "", station_code: "ZSPD", observed_by: "awc_metar", icao: "ZSPD" };
    expect(lines("weather_stations", { ...data, airport: "Pudong" }, "en")).toEqual([
      "Temperature: −3.3°C",
      `Observed: ${observed}`,
      "Station: ZSPD",
      "Observed by: awc_metar",
      "Airport: Pudong · ZSPD",
    ]);
  });
});
