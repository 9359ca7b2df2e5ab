import { afterEach, describe, expect, it, vi } from "vitest";
import { dayBounds_ms } from "../data/zone";
import { axisSplits, axisStep_min, clockText, tickText } from "./time_axis";

const at = (text: string) => Date.parse(text);

function labels(zone: string, noon: string, step_min: number): string[] {
  const [start, end] = dayBounds_ms(zone, at(noon));
  return axisSplits(zone, start, end, step_min).map((split) => clockText("en", zone, split));
}

const EVERY_THREE = ["00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "00:00"];
const HOSTS = ["UTC", "America/New_York", "Europe/Paris", "Australia/Lord_Howe", "Asia/Shanghai"];

afterEach(() => vi.unstubAllEnvs());

/** S102, F29, frontend.md row 34: labels are the city's hours on days of 23 to 25 hours, in any browser. */
describe.each(HOSTS)("browser in %s", (host) => {
  it.each([
    ["America/New_York", "2026-03-08T17:00:00Z"],
    ["America/New_York", "2026-11-01T17:00:00Z"],
    ["Australia/Lord_Howe", "2026-04-05T02:00:00Z"],
    ["Australia/Lord_Howe", "2026-10-04T02:00:00Z"],
    ["Pacific/Auckland", "2026-04-05T00:00:00Z"],
    ["Pacific/Auckland", "2026-09-27T00:00:00Z"],
    ["Asia/Kolkata", "2026-06-01T06:30:00Z"],
  ])("labels whole local hours of %s on %s", (zone, noon) => {
    vi.stubEnv("TZ", host);
    expect(labels(zone, noon, 180)).toEqual(EVERY_THREE);
  });

  it("leaves out an hour that was skipped and keeps the distance in real time", () => {
    vi.stubEnv("TZ", host);
    const zone = "America/New_York";
    const [start, end] = dayBounds_ms(zone, at("2026-03-08T17:00:00Z"));
    const splits = axisSplits(zone, start, end, 60);
    expect(splits.map((split) => clockText("en", zone, split))).not.toContain("02:00");
    expect(splits).toHaveLength(24);
    expect(new Set(splits.slice(1).map((split, i) => split - (splits[i] ?? 0)))).toEqual(new Set([3_600_000]));
    expect(
      axisSplits("Australia/Lord_Howe", ...dayBounds_ms("Australia/Lord_Howe", at("2026-10-04T02:00:00Z")), 60),
    ).toHaveLength(24);
  });
});

it("names the day where a day begins, in the language of the page", () => {
  const midnight = at("2026-08-20T16:00:00Z");
  expect(tickText("en", "Asia/Shanghai", midnight)).toContain("21");
  expect(tickText("zh-CN", "Asia/Shanghai", midnight)).toMatch(/21.*周五/);
  expect(tickText("en", "Asia/Shanghai", midnight + 3_600_000)).toBe("01:00");
});

it("gives each label its room", () => {
  expect(axisStep_min(24 * 3_600_000, 600, 60)).toBe(180);
  expect(axisStep_min(24 * 3_600_000, 300, 60)).toBe(360);
  expect(axisStep_min(2 * 3_600_000, 600, 60)).toBe(15);
  expect(axisStep_min(24 * 3_600_000, 10, 60)).toBe(1_440);
});
