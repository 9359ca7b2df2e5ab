import i18next from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import { resources } from "../i18n";
import { intervalText, percentText, spanText, splitInterval, tickText, timeZones, tookText } from "./job_format";

beforeAll(async () => {
  await i18next.init({ lng: "en", ns: ["common", "earth"], resources, interpolation: { escapeValue: false } });
});

const en = () => i18next.getFixedT("en", "earth");
const zh = () => i18next.getFixedT("zh", "earth");

describe("durations", () => {
  it.each([
    [0, "1 s", "1 秒"],
    [45_400, "45 s", "45 秒"],
    [119_000, "119 s", "119 秒"],
    [119_600, "2 min", "2 分钟"],
    [7_200_000, "2 h", "2 小时"],
    [172_800_000, "2 d", "2 天"],
  ])("%i ms is one number and one unit", (ms, english, chinese) => {
    expect([spanText(en(), ms), spanText(zh(), ms)]).toEqual([english, chinese]);
  });

  it.each([
    [-5, "0.0 s"],
    [240, "0.2 s"],
    [41_700, "42 s"],
    [61_000, "1:01"],
  ])("what took %i ms is told by what matters", (ms, text) => {
    expect(tookText(en(), ms, "en")).toBe(text);
  });

  it.each([
    [90, 90, "s"],
    [600, 10, "min"],
    [7_200, 2, "h"],
    [86_400, 1, "d"],
    [1.5, 1.5, "s"],
  ])("an interval of %d s is not rounded", (interval_s, amount, unit) => {
    expect(splitInterval(interval_s)).toEqual({ amount, unit });
  });

  it("intervals read in the language's own unit", () => {
    expect([intervalText(en(), 7_200), intervalText(zh(), 90)]).toEqual(["2 h", "90 秒"]);
  });
});

describe("shares and times", () => {
  it("a share is a whole percentage", () => {
    expect([percentText(0.404, "en"), percentText(1, "zh")]).toEqual(["40%", "100%"]);
  });

  it("a tick is told in its zone; a zone that is none gives nothing", () => {
    expect(tickText("2026-06-01T04:15:00Z", "Europe/Berlin", "en")).toMatch(/06:15/);
    expect(tickText("2026-06-01T04:15:00Z", null, "en")).toMatch(/04:15.*UTC/);
    expect([tickText("soon", "UTC", "en"), tickText("2026-06-01T04:15:00Z", "Mars/Base", "en")]).toEqual([null, null]);
  });

  it("zones to choose from begin with UTC and name it once", () => {
    const zones = timeZones();
    expect([zones[0], zones.filter((zone) => zone === "UTC").length, zones.includes("Asia/Shanghai")]).toEqual([
      "UTC",
      1,
      true,
    ]);
  });
});
