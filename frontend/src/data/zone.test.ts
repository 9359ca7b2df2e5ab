import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  addDays,
  dayBounds_ms,
  dayStart_ms,
  instantOf_ms,
  isZone,
  localDate,
  wallClock_ms,
  zoneOffset_ms,
} from "./zone";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);
const length_h = (zone: string, noon: string) => {
  const [start, end] = dayBounds_ms(zone, at(noon));
  return (end - start) / HOUR;
};

afterEach(() => vi.unstubAllEnvs());

/** F29, S102: the day of a city is its own, whatever clock the browser has. */
describe.each(["UTC", "America/New_York", "Europe/Paris", "Asia/Shanghai", "Pacific/Apia"])("browser in %s", (host) => {
  it("gives days of 23, 24.5, 25 and 23.5 hours when clocks change", () => {
    vi.stubEnv("TZ", host);
    expect(length_h("America/New_York", "2026-03-08T17:00:00Z")).toBe(23);
    expect(length_h("America/New_York", "2026-11-01T17:00:00Z")).toBe(25);
    expect(length_h("Australia/Lord_Howe", "2026-04-05T02:00:00Z")).toBe(24.5);
    expect(length_h("Australia/Lord_Howe", "2026-10-04T02:00:00Z")).toBe(23.5);
    expect(length_h("Pacific/Auckland", "2026-04-05T00:00:00Z")).toBe(25);
    expect(length_h("Pacific/Auckland", "2026-09-27T00:00:00Z")).toBe(23);
    expect(length_h("Asia/Kolkata", "2026-06-01T06:30:00Z")).toBe(24);
  });

  it("starts a day at the first instant of its date, also where midnight is skipped", () => {
    vi.stubEnv("TZ", host);
    expect(dayStart_ms("America/New_York", "2026-03-08")).toBe(at("2026-03-08T05:00:00Z"));
    expect(dayStart_ms("Asia/Kolkata", "2026-06-01")).toBe(at("2026-05-31T18:30:00Z"));
    // Cairo goes from 23:59:59 straight to 01:00 on the last Friday of April.
    expect(dayStart_ms("Africa/Cairo", "2026-04-24")).toBe(at("2026-04-23T22:00:00Z"));
    expect(localDate("Pacific/Auckland", at("2026-01-01T10:59:59Z"))).toBe("2026-01-01");
    expect(localDate("Pacific/Auckland", at("2026-01-01T11:00:00Z"))).toBe("2026-01-02");
  });
});

it("knows no instant for a clock reading that was skipped, and the first of two for one that came twice", () => {
  expect(instantOf_ms("America/New_York", at("2026-03-08T02:30:00Z"))).toBeNull();
  expect(instantOf_ms("Australia/Lord_Howe", at("2026-10-04T02:15:00Z"))).toBeNull();
  expect(instantOf_ms("America/New_York", at("2026-11-01T01:30:00Z"))).toBe(at("2026-11-01T05:30:00Z"));
});

it("finds back any instant from its wall clock", () => {
  const zones = fc.constantFrom("America/New_York", "Australia/Lord_Howe", "Pacific/Auckland", "Asia/Kathmandu");
  fc.assert(
    fc.property(zones, fc.integer({ min: at("2020-01-01"), max: at("2030-01-01") }), (zone, instant) => {
      const wall = wallClock_ms(zone, instant);
      const found = instantOf_ms(zone, wall);
      expect(found).not.toBeNull();
      expect(found ?? Number.NaN).toBeLessThanOrEqual(instant);
      expect(wallClock_ms(zone, found ?? 0)).toBe(wall);
      expect(zoneOffset_ms(zone, instant)).toBe(wall - instant);
    }),
  );
});

it("counts days over month and year ends and refuses unknown zones", () => {
  expect(addDays("2026-12-31", 1)).toBe("2027-01-01");
  expect(addDays("2028-03-01", -1)).toBe("2028-02-29");
  expect(isZone("Mars/Olympus")).toBe(false);
  expect(isZone("Asia/Taipei")).toBe(true);
});
