import { expect, it } from "vitest";
import { windowOf } from "./window";

const at = (text: string) => Date.parse(text);
const HOUR_MS = 3_600_000;

it.each([
  ["Asia/Shanghai", "2026-05-26T06:00:00Z", "2026-05-25T16:00:00Z", 24],
  ["America/New_York", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", 23],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z", "2026-04-04T13:00:00Z", 24.5],
  ["Pacific/Auckland", "2026-04-04T20:00:00Z", "2026-04-04T11:00:00Z", 25],
])("shows the whole local day in %s, however long it is", (zone, now, from, hours) => {
  expect(windowOf("day", zone, at(now))).toEqual([at(from), at(from) + hours * HOUR_MS]);
});

it("shows the last hours, and a little room for what comes next", () => {
  const now_ms = at("2026-05-26T06:00:00Z");
  for (const [name, hours] of [
    ["24h", 24],
    ["6h", 6],
  ] as const) {
    const [from, to] = windowOf(name, "Asia/Shanghai", now_ms);
    expect(from).toBe(now_ms - hours * HOUR_MS);
    expect(to).toBeGreaterThan(now_ms);
    expect(to).toBeLessThan(now_ms + 0.1 * hours * HOUR_MS);
  }
});
