import { describe, expect, it } from "vitest";
import { connectionWord } from "./EarthConnection";
import { coordinateText, decimalText, durationText, radiusText, timeOf, utcText } from "./earth_format";
import { freshnessOf, type LookInput, lookOf } from "./earth_freshness";

describe("texts", () => {
  it("durations", () => {
    expect([0, 59_999, 60_000, 3_661_000, -5].map(durationText)).toEqual(["0:00", "0:59", "1:00", "1:01:01", "0:00"]);
  });

  it("places name their hemispheres", () => {
    expect(coordinateText(-12.345, 170)).toBe("12.35° S 170.00° E");
    expect(coordinateText(0, -0.5)).toBe("0.00° N 0.50° W");
  });

  it("how far off a place may be", () => {
    expect([800, 1_000, 16_500, 0].map((radius_m) => radiusText(radius_m, "en"))).toEqual([
      "± 800 m",
      "± 1.0 km",
      "± 17 km",
      "± 0 m",
    ]);
  });

  it("times without a zone are UTC, as CelesTrak writes its epochs", () => {
    expect(timeOf("2026-05-25T10:20:30.123456")).toBe(Date.UTC(2026, 4, 25, 10, 20, 30, 123));
    expect(timeOf("2026-05-25T12:20:30+02:00")).toBe(Date.UTC(2026, 4, 25, 10, 20, 30));
    expect([timeOf(null), timeOf("soon"), timeOf("")]).toEqual([null, null, null]);
    expect(utcText(Date.UTC(2026, 4, 25, 10, 20, 30))).toBe("2026-05-25 10:20:30");
  });

  it("digits that mean something", () => {
    expect([decimalText(9.96, "en"), decimalText(96.4, "en")]).toEqual(["10.0", "96"]);
  });
});

describe("freshness", () => {
  it("turns amber at the layer's own limit and red at three", () => {
    const ages = [0, 1_800_000, 1_800_001, 5_400_000, 5_400_001];
    expect(ages.map((age) => freshnessOf(age, 1_800))).toEqual(["dim", "dim", "is-stale", "is-stale", "is-old"]);
    expect(freshnessOf(1e12, null)).toBe("dim");
  });

  const base: LookInput = {
    view: { phase: "ready", count: 5, state: "live" },
    info: { state: "live", stale_after_s: 1_800 },
    age_ms: 1_000,
    live: true,
  };
  const look = (change: Partial<LookInput>) => lookOf({ ...base, ...change });

  it("an empty layer and a failed one never look the same", () => {
    const empty = look({ view: { phase: "ready", count: 0, state: "empty" } });
    const failed = look({ view: { phase: "failed", count: 0, state: null } });
    expect([empty.word, failed.word]).toEqual(["empty", "failed"]);
    expect(empty.tone).not.toBe(failed.tone);
  });

  it("the worst news comes first", () => {
    expect(look({}).word).toBe("live");
    expect(look({ info: { state: "simulated", stale_after_s: 1_800 } }).word).toBe("simulated");
    expect(look({ info: { state: "simulated", stale_after_s: 1_800 }, age_ms: 2_000_000 }).word).toBe("stale");
    expect(look({ info: { state: "unavailable", stale_after_s: 1_800 } }).word).toBe("unavailable");
    expect(look({ view: { phase: "loading", count: null, state: null } }).word).toBe("loading");
  });

  it("is not green while changes do not arrive", () => {
    expect(look({}).tone).toBe("badge--ok");
    expect(look({ live: false }).tone).toBe("");
  });
});

describe("the connection in a word", () => {
  it("reconnects only what was connected", () => {
    expect(connectionWord("connecting", false)).toBe("connecting");
    expect(connectionWord("connecting", true)).toBe("waiting");
    expect(connectionWord("waiting", false)).toBe("waiting");
    expect(connectionWord("joining", false)).toBe("connecting");
    expect([connectionWord("live", true), connectionWord("offline", true)]).toEqual(["live", "offline"]);
  });
});
