import { describe, expect, it } from "vitest";
import type { EarthEvent, Feature, Snapshot, Strategy } from "../client/earth_types";
import { HttpError, NetworkError } from "../client/http";
import { manualTimers, settle } from "../testing/clock";
import { createLayer, errorCode, retryDelay } from "./layer";

const EPOCH = "abcdefghijkl";
const NOTHING = { upsert: [], remove: [] };

function features(count: number): Feature[] {
  return Array.from({ length: count }, (_, index) => ({
    id: `s:${index}`,
    source: "s",
    kind: "satellite",
    title: `object ${index}`,
    lat: null,
    lon: null,
    observed_at: null,
    data: {},
  }));
}

function snapshot(revision: number, count: number, extra: Partial<Snapshot> = {}): Snapshot {
  return {
    layer: "satellites",
    epoch: EPOCH,
    revision,
    generated_at: `at ${revision}`,
    state: "live",
    count,
    total: count,
    truncated: false,
    features: features(count),
    ...extra,
  };
}

function changed(revision: number, refresh_strategy: Strategy): EarthEvent {
  return {
    epoch: EPOCH,
    revision,
    prev_revision: revision - 1,
    change: {
      layers: ["satellites"],
      refresh_strategy,
      action: "database_changed",
      source: null,
      operation: null,
      records_processed: 0,
      occurred_at: "",
      delta: NOTHING,
    },
  };
}

function setUp() {
  const timers = manualTimers();
  const asked: { bypass: boolean; signal: AbortSignal }[] = [];
  const answers: { resolve: (snapshot: Snapshot) => void; reject: (error: unknown) => void }[] = [];
  const notices: (string | null)[] = [];
  const layer = createLayer("satellites", {
    fetch: (_, options) => {
      asked.push(options);
      return new Promise<Snapshot>((resolve, reject) => answers.push({ resolve, reject }));
    },
    timers,
    random: () => 0.5,
    onNotice: (_, code) => notices.push(code),
  });
  const answer = async (value: Snapshot | Error) => {
    const waiting = answers.shift();
    if (value instanceof Error) waiting?.reject(value);
    else waiting?.resolve(value);
    await settle();
  };
  const view = () => layer.store.getState();
  return { layer, timers, asked, answer, notices, view };
}

async function shown(count: number) {
  const rig = setUp();
  rig.layer.setVisible(true);
  await rig.answer(snapshot(5, count));
  return rig;
}

describe("a layer that changes by id", () => {
  it("puts new and changed objects in, takes removed and vanished ones out, and leaves the rest", async () => {
    const asked: (readonly string[])[] = [];
    const fresh = features(5).slice(2);
    const layer = createLayer("interactables", {
      fetch: async () => snapshot(5, 4),
      fetchObjects: async (ids) => {
        asked.push(ids);
        return fresh.filter(({ id }) => id !== "s:3").map((feature) => ({ ...feature, title: "new" }));
      },
      timers: manualTimers(),
      random: () => 0.5,
      onNotice: () => undefined,
    });
    layer.setVisible(true);
    await settle();
    const before = layer.store.getState();
    const event = changed(6, "delta");
    layer.apply({
      ...event,
      change: { ...event.change, delta: { upsert: ["s:2", "s:3", "s:4"], remove: ["s:0"] } },
    });
    await settle();
    const view = layer.store.getState();
    expect(asked).toEqual([["s:2", "s:3", "s:4"]]);
    expect(view.features.map(({ id, title }) => [id, title])).toEqual([
      ["s:1", "object 1"],
      ["s:2", "new"],
      ["s:4", "new"],
    ]);
    expect(view.features[0]).toBe(before.features[1]);
    expect([view.count, view.revision, view.phase]).toEqual([3, 6, "ready"]);
    expect(view.version).toBe(before.version + 1);
  });
});

describe("a layer", () => {
  it("does not know its count before the first snapshot, and zero is a count", async () => {
    const { layer, view, answer } = setUp();
    layer.setVisible(true);
    expect([view().count, view().phase]).toEqual([null, "loading"]);
    await answer(snapshot(5, 0, { state: "empty" }));
    expect([view().count, view().phase, view().state]).toEqual([0, "ready", "empty"]);
  });

  // S68-S70
  it("is empty the moment a clear arrives, and stays so through failures, with one notice and growing waits", async () => {
    const { layer, view, answer, timers, notices, asked } = await shown(3);
    const before = notices.length;
    layer.apply(changed(6, "clear_then_reload"));
    expect(view().features).toEqual([]);
    expect(asked[1]?.bypass).toBe(true);
    await answer(new NetworkError("refused"));
    expect([view().phase, view().error, view().count]).toEqual(["failed", "unreachable", 0]);
    expect(notices.slice(before)).toEqual(["unreachable"]);
    timers.advance(2_000);
    await answer(new HttpError(503, "overloaded", "later"));
    expect([view().error, view().count]).toEqual(["overloaded", 0]);
    timers.advance(4_000);
    await answer(snapshot(6, 1));
    expect([view().phase, view().count, notices.at(-1)]).toEqual(["ready", 1, null]);
  });

  it("keeps what it shows during a reload and after one that failed", async () => {
    const { layer, view, answer } = await shown(3);
    layer.apply(changed(6, "reload"));
    expect([view().count, view().phase]).toEqual([3, "loading"]);
    await answer(new HttpError(500, "broken", "broken"));
    expect([view().count, view().phase]).toEqual([3, "failed"]);
  });

  it("does not draw again what has not changed", async () => {
    const { layer, view, answer } = await shown(3);
    const { version } = view();
    layer.refresh(false);
    await answer(snapshot(5, 3));
    expect(view().version).toBe(version);
  });

  it("aborts its request when hidden, and shows neither spinner nor failure then", async () => {
    const { layer, view, asked, notices } = await shown(3);
    layer.apply(changed(6, "reload"));
    layer.setVisible(false);
    expect(asked[1]?.signal.aborted).toBe(true);
    expect([view().phase, view().count, notices.at(-1)]).toEqual(["ready", 3, null]);
  });

  it("leaves no timer behind when stopped during a back-off", async () => {
    const { layer, answer, timers } = await shown(3);
    layer.apply(changed(6, "reload"));
    await answer(new NetworkError("refused"));
    expect(timers.pending).toBe(1);
    layer.stop();
    expect(timers.pending).toBe(0);
  });

  it("says how many there are when the body was cut", async () => {
    const { layer, view, answer } = setUp();
    layer.setVisible(true);
    await answer(snapshot(5, 2, { total: 9, truncated: true }));
    expect([view().count, view().total]).toEqual([2, 9]);
  });
});

describe("waits and codes", () => {
  it("waits double up to half a minute, with jitter over the upper half", () => {
    expect([1, 2, 3, 10].map((attempt) => retryDelay(attempt, false, 1))).toEqual([2_000, 4_000, 8_000, 30_000]);
    expect(retryDelay(1, false, 0)).toBe(1_000);
    expect(retryDelay(1, true, 1)).toBe(200);
  });

  it("every failure has a code", () => {
    const errors = [new HttpError(404, "unknown_layer", ""), new NetworkError(""), new NetworkError("", true), "odd"];
    expect(errors.map(errorCode)).toEqual(["unknown_layer", "unreachable", "timeout", "failed"]);
  });
});
