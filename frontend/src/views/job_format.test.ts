import { describe, expect, it } from "vitest";
import { intervalText, percentText, spanText, splitInterval, tickText, timeZones } from "./job_format";

describe("durations", () => {
  it.each([
    [0, "1 sec", "1秒"],
    [45_400, "45 sec", "45秒"],
    [119_000, "119 sec", "119秒"],
    [119_600, "2 min", "2分钟"],
    [120_000, "2 min", "2分钟"],
    [7_200_000, "2 hr", "2小时"],
    [172_800_000, "2 days", "2天"],
  ])("%i ms is one number and one unit", (ms, en, zh) => {
    expect([spanText(ms, "en"), spanText(ms, "zh")]).toEqual([en, zh]);
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
    expect([intervalText(7_200, "en"), intervalText(90, "zh")]).toEqual(["2 hr", "90秒"]);
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
