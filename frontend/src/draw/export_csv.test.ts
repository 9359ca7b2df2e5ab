import { describe, expect, it } from "vitest";
import { emptySeries, withPoints } from "../data/series";
import { csvText, localIso } from "./export_csv";

const DAY = Date.UTC(2026, 4, 25, 16); // midnight in Shanghai
const MINUTE = 60_000;
const metar = withPoints(emptySeries("metar", "awc_metar"), [
  [DAY - MINUTE, 9],
  [DAY, 0],
  [DAY + 2 * MINUTE, -0.001],
  [DAY + 24 * 60 * MINUTE, 9],
]);
const runway = withPoints(emptySeries("runway", "amos"), [[DAY + MINUTE, 20.456]]);
const shanghai = { window: [DAY, DAY + 24 * 60 * MINUTE] as const, zone: "Asia/Shanghai" };

describe("the table", () => {
  it("has a row a time within the window, a column a curve, and nothing where there is no reading", () => {
    const text = csvText({ ...shanghai, series: [metar, runway], labels: ["METAR", "跑道"], unit: "celsius" });
    expect(text.charCodeAt(0)).toBe(0xfeff);
    expect(text.slice(1).split("\r\n")).toEqual([
      "time_utc,time_local,METAR (°C),跑道 (°C)",
      "2026-05-25T16:00:00Z,2026-05-26T00:00:00+08:00,0,",
      "2026-05-25T16:01:00Z,2026-05-26T00:01:00+08:00,,20.46",
      "2026-05-25T16:02:00Z,2026-05-26T00:02:00+08:00,0,",
      "",
    ]);
  });

  it("is in the unit that is shown", () => {
    const text = csvText({ ...shanghai, series: [runway], labels: ["R"], unit: "fahrenheit" });
    expect(text).toContain("R (°F)\r\n");
    expect(text).toContain(",68.82\r\n");
  });

  it("neither splits nor runs a name that a station gave itself", () => {
    const text = csvText({ ...shanghai, series: [runway, metar], labels: ['=A1,"x"', "@b"], unit: "celsius" });
    expect(text.split("\r\n")[0]).toBe(`\ufefftime_utc,time_local,"'=A1,""x"" (°C)",'@b (°C)`);
  });
});

describe("local times", () => {
  it.each([
    ["America/New_York", "2026-07-01T12:00:00Z", "2026-07-01T08:00:00-04:00"],
    ["America/New_York", "2026-01-01T12:00:00Z", "2026-01-01T07:00:00-05:00"],
    ["Asia/Kolkata", "2026-01-01T12:00:00Z", "2026-01-01T17:30:00+05:30"],
    ["UTC", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00+00:00"],
  ])("in %s of %s are %s", (zone, utc, local) => {
    expect(localIso(zone, Date.parse(utc))).toBe(local);
  });
});
