import { describe, expect, it } from "vitest";
import { readLimits } from "../client/city_limits";
import { freshnessOf } from "./freshness";

const USUAL = readLimits({
  default: { fresh_s: 900, wait_s: 1_200, stale_s: 2_700 },
  awc_metar: { fresh_s: 600, wait_s: 2_700, stale_s: 4_500 },
});
const HOURLY = readLimits({ awc_metar: { fresh_s: 600, wait_s: 4_500, stale_s: 8_100 } }, USUAL);

describe("how late a reading is (S178)", () => {
  it.each([
    [0, "fresh"],
    [600, "fresh"],
    [601, "expected_wait"],
    [2_700, "expected_wait"],
    [2_701, "delayed"],
    [4_501, "stale"],
  ])("after %i s at an airport that reports twice an hour is %s", (age_s, state) => {
    expect(freshnessOf(USUAL, "awc_metar", 0, age_s * 1_000)).toBe(state);
  });

  it("follows the station: an hourly report is on time for an hour", () => {
    expect(freshnessOf(HOURLY, "awc_metar", 0, 59 * 60_000)).toBe("expected_wait");
    expect(freshnessOf(HOURLY, "somebody", 0, 20 * 60_000)).toBe("expected_wait");
    expect(freshnessOf(HOURLY, "somebody", 0, 21 * 60_000)).toBe("delayed");
  });

  it("is unknown without a reading, and without limits", () => {
    expect(freshnessOf(USUAL, null, 0, 0)).toBe("unknown");
    expect(freshnessOf(USUAL, "awc_metar", null, 0)).toBe("unknown");
    expect(freshnessOf({}, "awc_metar", 0, 0)).toBe("unknown");
  });

  it("leaves out limits that cannot be read, and keeps the rest", () => {
    const read = readLimits({ a: { fresh_s: 1, wait_s: "2", stale_s: 3 }, b: null, default: USUAL.default }, {});
    expect(Object.keys(read)).toEqual(["default"]);
    expect(readLimits("nothing", USUAL)).toBe(USUAL);
  });
});
