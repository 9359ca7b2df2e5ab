/** S146, S203, S206, S229: the v1 schema, the subscription by city and the resuming address exist, and do what they are for. */
import { describe, expect, it } from "vitest";
import { readLegacyPatch, readPatch } from "../client/city_wire";
import { streamUrl } from "../client/sse";
import { parseSseFrame } from "../client/sse_frames";
import { connected, EPOCH, patch, testStream } from "../testing/stream";

interface Golden {
  event: { city: string; revision: number; prev_revision: number; payload: Record<string, unknown> };
}

// The same examples that the server's tests run.
const golden = Object.entries(
  import.meta.glob<Golden>("../../../spec/examples/city_observation_patch*.json", { eager: true }),
);

describe("the v1 schema", () => {
  it("has examples", () => {
    expect(golden.length).toBeGreaterThan(3);
  });

  it.each(golden)("%s is read into one patch in °C", (_, { event }) => {
    const frame = parseSseFrame(JSON.stringify(event));
    expect(frame.kind).toBe("step");
    const read = frame.kind === "step" ? frame.step : null;
    expect([read?.city, read?.revision, read?.prev_revision]).toEqual([
      event.city,
      event.revision,
      event.prev_revision,
    ]);
    expect(read?.patch?.temp_c ?? null).toBe(event.payload.temp ?? null);
    expect(read?.patch?.runway_points.map((point) => point.runway)).toEqual(
      (event.payload.runway_points as { runway: string }[]).map((point) => point.runway),
    );
  });

  // S146, S229
  it("is what an older patch becomes", () => {
    const old = {
      type: "city_patch",
      city: "Seoul",
      ts: 1_779_789_720_000,
      changes: { temp: "31.25", source: "amos" },
    };
    expect(readLegacyPatch(old)).toMatchObject({ city: "seoul", temp_c: 31.25, source: "amos", revision: null });
    expect(readPatch({ ...patch("seoul", 3, 2), payload: { temp: 0 } })).toMatchObject({ temp_c: 0 });
  });
});

describe("the subscription", () => {
  // S203, S226, S220, S104
  it("asks for exactly the visible cities, and again when they change", () => {
    const test = testStream();
    test.stream.want(["tokyo", "hong kong", "tokyo"]);
    test.stream.snapshot("tokyo", EPOCH, 3);
    test.stream.snapshot("hong kong", EPOCH, 2);
    test.timers.advance(500);
    expect(test.last().url).toContain("cities=hong%20kong,tokyo&");
    test.stream.want(["tokyo"]);
    test.timers.advance(500);
    expect(test.last().url).toContain("cities=tokyo&");
    expect(test.open()).toHaveLength(1);
  });

  it("drops events of cities that are not shown", () => {
    const test = testStream();
    test.stream.want(["tokyo"]);
    test.stream.snapshot("tokyo", EPOCH, 3);
    test.timers.advance(500);
    test.last().send(connected({ tokyo: 3 }, 3));
    test.last().send(patch("moscow", 4, 0));
    expect(test.heard.steps).toEqual([]);
  });
});

describe("the address", () => {
  // S203, S226
  it("carries since_revision", () => {
    expect(streamUrl(["tokyo"], { epoch: EPOCH, revision: 12 }, 500)).toContain(`since_revision=${EPOCH}-12`);
  });
});
