import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { connected, EPOCH, patch, testStream } from "../testing/stream";
import { streamUrl } from "./sse";
import { parseSseFrame } from "./sse_frames";
import { hasSource, STREAM_SIGNALS, STREAM_STATES, STREAM_TABLE, type StreamState } from "./sse_states";

function live(city = "shanghai", revision = 5) {
  const test = testStream();
  test.stream.want([city]);
  test.stream.snapshot(city, EPOCH, revision);
  test.timers.advance(200);
  test.last().send(connected({ [city]: revision }, revision));
  return test;
}

// S106, S172: the address names the cities and the position.
describe("the address", () => {
  // S172
  it("names the cities sorted and the cursor as epoch and revision", () => {
    expect(streamUrl(["tokyo", "hong kong"], { epoch: EPOCH, revision: 7 }, 500)).toBe(
      `/api/events?cities=hong%20kong,tokyo&since_revision=${EPOCH}-7&replay_limit=500`,
    );
    expect(streamUrl(["tokyo"], null, 10)).toBe("/api/events?cities=tokyo&replay_limit=10");
  });
});

describe("the table", () => {
  it("has an answer to every signal in every state", () => {
    for (const state of STREAM_STATES)
      for (const signal of STREAM_SIGNALS) expect(STREAM_STATES).toContain(STREAM_TABLE[state][signal]);
  });

  it("lets every walk end, go live, and never open a source without a new beginning", () => {
    const walk = fc.array(fc.constantFrom(...STREAM_SIGNALS), { maxLength: 40 });
    fc.assert(
      fc.property(walk, (signals) => {
        let state: StreamState = "idle";
        for (const signal of signals) {
          const next: StreamState = STREAM_TABLE[state][signal];
          if (hasSource(next) && !hasSource(state)) expect(["begin", "retry"]).toContain(signal);
          if (next === "live" && state !== "live") expect([state, signal]).toEqual(["connecting", "connected"]);
          state = next;
        }
        expect(STREAM_TABLE[state].stop).toBe("idle");
        const back = STREAM_TABLE[STREAM_TABLE[STREAM_TABLE[state].want].begin].connected;
        expect(back).toBe("live");
      }),
    );
  });
});

describe("a stream that carries no city", () => {
  // S229: as when something on the way dropped the query.
  it("lives, is told of, and makes nobody believe that its cities are quiet", () => {
    const test = testStream();
    test.stream.want(["shanghai"]);
    test.stream.snapshot("shanghai", EPOCH, 5);
    test.timers.advance(200);
    const hint = { code: "no_cities", text: "name cities" };
    test.last().send({ ...connected({}, 9), hint });
    expect(test.stream.state).toBe("live");
    expect([test.heard.resyncs, test.heard.debug]).toEqual([[], ["events.hint name cities"]]);
    test.last().send({ type: "heartbeat", cursor: `${EPOCH}-9` });
    expect(test.stream.cursors.since(["shanghai"])).toEqual({ epoch: EPOCH, revision: 5 });
  });

  it.each([null, 7, "words", [], {}, { text: 3 }])("reads a hint that is none (%j) as none", (hint) => {
    expect(parseSseFrame(JSON.stringify({ ...connected({}, 9), hint }))).toMatchObject({
      kind: "connected",
      hint: null,
    });
  });
});

// S179–S181, S184–S187: visible cities only, rebuilt when they change, resumed where it was lost.
describe("one stream", () => {
  // F10: a city that joins never begins behind its own snapshot.
  // S179
  it("begins at the least of the visible cities' snapshots", () => {
    const { stream, timers, sources } = testStream();
    stream.want(["tokyo", "shanghai"]);
    stream.snapshot("tokyo", EPOCH, 9);
    stream.snapshot("shanghai", EPOCH, 4);
    timers.advance(200);
    expect(sources.map((source) => source.url)).toEqual([
      `/api/events?cities=shanghai,tokyo&since_revision=${EPOCH}-4&replay_limit=500`,
    ]);
  });

  // S181
  it("is opened once for several changes of the cities, and the old one is closed", () => {
    const test = live();
    test.stream.want(["tokyo"]);
    test.stream.want(["tokyo", "seoul"]);
    test.stream.snapshot("tokyo", EPOCH, 5);
    test.stream.snapshot("seoul", EPOCH, 5);
    test.timers.advance(1_000);
    expect(test.sources).toHaveLength(2);
    expect(test.open().map((source) => source.url)).toEqual([
      `/api/events?cities=seoul,tokyo&since_revision=${EPOCH}-5&replay_limit=500`,
    ]);
  });

  it("waits for the cities to stay as they are, and is not opened anew for the same ones", () => {
    const { stream, timers, sources } = testStream();
    for (const city of ["tokyo", "seoul"]) stream.snapshot(city, EPOCH, 5);
    stream.want(["tokyo"]);
    timers.advance(100);
    stream.want(["tokyo", "seoul"]);
    timers.advance(149);
    expect(sources).toEqual([]);
    timers.advance(1);
    expect(sources).toHaveLength(1);
    stream.want(["seoul", "tokyo", "seoul"]);
    timers.advance(1_000);
    expect(sources).toHaveLength(1);
  });

  it("is closed when nothing is wanted", () => {
    const test = live();
    test.stream.want([]);
    expect(test.open()).toEqual([]);
    expect(test.stream.state).toBe("idle");
  });

  // S171, S184, S186, S226, S222
  it("is opened again at the last revision that was handled", () => {
    const test = live();
    test.last().send(patch("shanghai", 6, 5));
    test.last().onLost();
    expect(test.stream.state).toBe("waiting");
    test.timers.advance(3_000);
    expect(test.last().url).toContain(`since_revision=${EPOCH}-6`);
    expect(test.open()).toHaveLength(1);
  });

  // F15: a connection that is half open says nothing.
  it("counts as lost after two and a half heartbeats of silence", () => {
    const test = live();
    test.timers.advance(74_000);
    expect(test.stream.state).toBe("live");
    test.timers.advance(2_000);
    expect(test.stream.state).not.toBe("live");
    expect(test.sources[0]?.closed).toBe(true);
  });

  // F14, F36.
  it("stays while heartbeats come, and takes their cursor", () => {
    const test = live();
    for (let beat = 0; beat < 10; beat += 1) {
      test.timers.advance(30_000);
      test.last().send({ type: "heartbeat", cursor: `${EPOCH}-${50 + beat}`, revision: 50 + beat, ts: 0 });
    }
    expect(test.sources).toHaveLength(1);
    test.last().onLost();
    test.timers.advance(3_000);
    expect(test.last().url).toContain(`since_revision=${EPOCH}-59`);
  });

  it("lives by the heartbeat that the server announces", () => {
    const test = live();
    test.last().send({ ...connected({ shanghai: 5 }, 5), heartbeat_s: 10 });
    test.timers.advance(10_000);
    test.last().send({ type: "heartbeat", cursor: `${EPOCH}-5` });
    test.timers.advance(24_900);
    expect(test.stream.state).toBe("live");
    test.timers.advance(200);
    expect(test.stream.state).not.toBe("live");
  });

  it.each([
    [undefined, 75_000],
    [0, 2_500],
  ])("takes %s for no heartbeat's distance", (heartbeat_s, silent_ms) => {
    const test = live();
    test.last().send({ ...connected({ shanghai: 5 }, 5), heartbeat_s });
    test.last().send({ type: "heartbeat", cursor: `${EPOCH}-5` });
    test.timers.advance(silent_ms - 1);
    expect(test.stream.state).toBe("live");
    test.timers.advance(1);
    expect(test.stream.state).toBe("waiting");
  });

  it("takes a heartbeat's cursor without an epoch, and none of another epoch", () => {
    const test = live();
    test.last().send({ type: "heartbeat", cursor: 9 });
    test.last().send({ type: "heartbeat", cursor: "zzzzzzzzzzzz-70" });
    test.last().onLost();
    test.timers.advance(3_000);
    expect(test.last().url).toContain(`since_revision=${EPOCH}-9&`);
  });

  it("is given up when the server accepts it and then says nothing", () => {
    const test = testStream();
    test.stream.want(["shanghai"]);
    test.stream.snapshot("shanghai", EPOCH, 5);
    test.timers.advance(15_100);
    expect(test.stream.state).toBe("connecting");
    test.timers.advance(100);
    expect([test.stream.state, test.sources[0]?.closed]).toEqual(["waiting", true]);
  });

  // S185
  it("is tried at once when the network or the reader is back, and left alone while it is well", () => {
    const test = live();
    test.timers.advance(30_000);
    test.stream.wake();
    expect([test.stream.state, test.sources.length]).toEqual(["live", 1]);
    test.timers.advance(10_000);
    test.stream.wake();
    expect([test.stream.state, test.sources.length]).toEqual(["connecting", 2]);
    test.last().onLost();
    test.stream.wake();
    expect([test.stream.state, test.sources.length]).toEqual(["connecting", 3]);
    expect(test.open()).toHaveLength(1);
  });

  // F17.
  it("is quick again after a healthy minute, and not after less", () => {
    const firstWait = (healthy_ms: number) => {
      const test = live();
      for (let attempt = 0; attempt < 5; attempt += 1) {
        test.last().onLost();
        test.timers.advance(31_000 - (test.stream.state === "connecting" ? 0 : 1_000));
      }
      while (test.stream.state !== "connecting") test.timers.advance(100);
      test.last().send(connected({ shanghai: 5 }, 5));
      test.timers.advance(healthy_ms);
      const before = test.timers.now();
      const count = test.sources.length;
      test.last().onLost();
      while (test.sources.length === count) test.timers.advance(50);
      return test.timers.now() - before;
    };
    expect(firstWait(61_000)).toBeLessThanOrEqual(2_000);
    expect(firstWait(59_000)).toBeGreaterThan(5_000);
  });

  // S185
  it("waits longer after each failure and says offline after some", () => {
    const test = live();
    const waits: number[] = [];
    for (let attempt = 0; attempt < 6; attempt += 1) {
      const before = test.timers.now();
      test.last().onLost();
      const count = test.sources.length;
      while (test.sources.length === count) test.timers.advance(100);
      waits.push(test.timers.now() - before);
    }
    expect(waits[0]).toBeLessThan(waits[3] as number);
    expect(Math.max(...waits)).toBeLessThanOrEqual(30_100);
    expect(test.heard.states).toContain("offline");
  });
});

// S157, S170, S171, S173, S188, S192, S193, S194, S223: gaps and resyncs ask for the snapshot, the rest is ignored.
describe("what is handed on", () => {
  // S170, S193, S226
  it("is each event once, in order, whatever else the server repeats", () => {
    const test = live();
    test.last().send(patch("shanghai", 6, 5));
    test.last().send(patch("shanghai", 6, 5));
    test.last().send(patch("shanghai", 4, 3));
    test.last().send(patch("shanghai", 9, 6));
    expect(test.heard.steps.map((step) => step.revision)).toEqual([6, 9]);
    expect(test.heard.resyncs).toEqual([]);
  });

  // S194, S226
  it("is nothing behind a hole until the city was fetched again", () => {
    const test = live();
    test.last().send(patch("shanghai", 8, 7));
    expect(test.heard.steps).toEqual([]);
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai"], reason: "gap", mark: true }]);
    const arrival = test.stream.snapshot("shanghai", EPOCH, 7);
    expect([arrival.take, arrival.enough, arrival.steps.map((step) => step.revision)]).toEqual([true, true, [8]]);
  });

  it("is nothing that the next stream will bring: a snapshot between two of them is enough", () => {
    const test = testStream();
    test.stream.want(["shanghai"]);
    test.timers.advance(3_000);
    test.last().send(connected({ shanghai: 45 }, 50));
    test.last().onLost();
    expect(test.stream.snapshot("shanghai", EPOCH, 40)).toMatchObject({ take: true, enough: true });
    test.timers.advance(3_000);
    expect(test.last().url).toContain(`since_revision=${EPOCH}-40&`);
  });

  // S157, S173, S223
  it("asks for the cities that the server names when it cannot replay", () => {
    const test = live();
    test.last().send({
      type: "resync_required",
      reason: "replay_window_exceeded",
      latest_revision: 40,
      cities: ["shanghai"],
    });
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai"], reason: "replay_window_exceeded", mark: true }]);
    expect(test.stream.snapshot("shanghai", EPOCH, 39).enough).toBe(false);
    expect(test.stream.snapshot("shanghai", EPOCH, 40).enough).toBe(true);
  });

  it("asks for all cities when the server names none, and for no others", () => {
    const test = live();
    const resync = { type: "resync_required", reason: "slow_consumer", latest_revision: 40 };
    test.last().send({ ...resync, cities: ["moscow"] });
    expect(test.heard.resyncs).toEqual([]);
    test.last().send(resync);
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai"], reason: "slow_consumer", mark: true }]);
  });

  // F6.
  it("goes back to a server that is behind what was asked for", () => {
    const test = live();
    test.last().send(patch("shanghai", 30, 20));
    test.last().onLost();
    test.timers.advance(3_000);
    test.last().send(connected({ shanghai: 3 }, 3));
    const behind = { type: "resync_required", reason: "revision_ahead", latest_revision: 3, cities: ["shanghai"] };
    test.last().send(behind);
    expect(test.stream.snapshot("shanghai", EPOCH, 3)).toMatchObject({ take: true, enough: true, steps: [] });
  });

  it("asks for everything when an event of another log comes in between", () => {
    const test = live();
    test.last().send({ ...patch("shanghai", 6, 5), epoch: "zzzzzzzzzzzz" });
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai"], reason: "epoch_changed", mark: true }]);
    expect(test.heard.steps).toEqual([]);
  });

  it("is joined anew when a snapshot shows that the server began another log", () => {
    const test = live();
    const arrival = test.stream.snapshot("shanghai", "zzzzzzzzzzzz", 1);
    expect([arrival.take, arrival.foreign]).toEqual([false, true]);
    expect([test.stream.state, test.sources.length, test.open().length]).toEqual(["connecting", 2, 1]);
    test.last().send(connected({ shanghai: 1 }, 1, "zzzzzzzzzzzz"));
    expect(test.stream.snapshot("shanghai", "zzzzzzzzzzzz", 1)).toMatchObject({ take: true, enough: true });
  });

  it("of a log that a snapshot alone tells of, while no stream is open, leaves no city with what it had of the old one", () => {
    const test = live();
    test.stream.want(["shanghai", "tokyo"]);
    expect(test.stream.snapshot("tokyo", "zzzzzzzzzzzz", 1)).toMatchObject({ take: false, foreign: true });
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai", "tokyo"], reason: "epoch_changed", mark: true }]);
    for (const city of ["tokyo", "shanghai"]) {
      expect(test.stream.snapshot(city, "zzzzzzzzzzzz", 1)).toMatchObject({ take: true, enough: true });
    }
  });

  it("is nothing of a city that is not shown, also from servers older than revisions", () => {
    const test = live();
    const old = { type: "city_patch", ts: 1_779_789_720_000, changes: { temp: 20 } };
    test.last().send({ ...old, city: "moscow" });
    expect(test.heard.steps).toEqual([]);
    test.last().send({ ...old, city: "Shanghai" });
    expect(test.heard.steps).toMatchObject([{ city: "shanghai", revision: null, patch: { temp_c: 20 } }]);
  });

  it("starts from nothing when the log began a new life", () => {
    const test = live();
    test.last().onLost();
    test.timers.advance(3_000);
    test.last().send(connected({ shanghai: 1 }, 1, "zzzzzzzzzzzz"));
    expect(test.heard.resyncs).toEqual([{ cities: ["shanghai"], reason: "epoch_changed", mark: true }]);
  });

  // S192, S226
  it("leaves out a schema that is not known, but counts its revision", () => {
    const test = live();
    test.last().send({ ...patch("shanghai", 6, 5), schema_version: 2 });
    test.last().send(patch("shanghai", 7, 6));
    expect(test.heard.debug.some((line) => line.includes("schema 2"))).toBe(true);
    expect(test.heard.resyncs).toEqual([]);
    expect(test.heard.steps.map((step) => [step.revision, step.patch === null])).toEqual([
      [6, true],
      [7, false],
    ]);
  });

  it("never comes from a source that was replaced", () => {
    const test = live();
    const old = test.last();
    old.onLost();
    test.timers.advance(3_000);
    old.send(patch("shanghai", 6, 5));
    expect(test.heard.steps).toEqual([]);
  });
});

const answers = fc.oneof(
  fc.record({
    kind: fc.constant("patch" as const),
    revision: fc.nat(12),
    prev: fc.nat(12),
    city: fc.constantFrom("a", "b", "c"),
  }),
  fc.record({ kind: fc.constant("lost" as const) }),
  fc.record({ kind: fc.constant("wait" as const), ms: fc.nat(90_000) }),
  fc.record({ kind: fc.constant("junk" as const), text: fc.oneof(fc.string(), fc.json()) }),
  fc.record({ kind: fc.constant("connected" as const), revision: fc.nat(12) }),
  fc.record({ kind: fc.constant("snapshot" as const), city: fc.constantFrom("a", "b"), revision: fc.nat(12) }),
  fc.record({ kind: fc.constant("want" as const), cities: fc.subarray(["a", "b"]) }),
);
type Answer = typeof answers extends fc.Arbitrary<infer T> ? T : never;
type Test = ReturnType<typeof testStream>;

function play(test: Test, last: Map<string, number>, answer: Answer): void {
  const source = test.sources[test.sources.length - 1];
  if (answer.kind === "want") test.stream.want(answer.cities);
  if (answer.kind === "wait") test.timers.advance(answer.ms);
  if (answer.kind === "lost") source?.onLost();
  if (answer.kind === "junk") source?.onMessage(answer.text);
  if (answer.kind === "connected") source?.send(connected({ a: answer.revision }, answer.revision));
  if (answer.kind === "patch") source?.send(patch(answer.city, answer.revision, answer.prev));
  if (answer.kind !== "snapshot") return;
  if (test.stream.snapshot(answer.city, EPOCH, answer.revision).take) last.set(answer.city, answer.revision);
}

function check(test: Test, last: Map<string, number>, told: number): void {
  const { state, cities } = test.stream;
  expect(test.open()).toHaveLength(hasSource(state) ? 1 : 0);
  // Nothing runs on while nothing is wanted, and nothing stands still while something is.
  if (state === "idle") expect([cities, test.timers.pending]).toEqual([[], 0]);
  else expect(test.timers.pending).toBeGreaterThan(0);
  for (const { city, revision } of test.heard.steps.slice(told)) {
    expect(["a", "b"]).toContain(city);
    if (revision === null) continue;
    expect(revision).toBeGreaterThan(last.get(city) ?? -1);
    last.set(city, revision);
  }
}

describe("whatever a server answers", () => {
  it("keeps one source at most, and hands on rising revisions of wanted cities", () => {
    fc.assert(
      fc.property(fc.array(answers, { maxLength: 60 }), (script) => {
        const test = testStream();
        const last = new Map<string, number>();
        test.stream.want(["a", "b"]);
        for (const answer of script) {
          const told = test.heard.steps.length;
          play(test, last, answer);
          check(test, last, told);
        }
      }),
      { numRuns: 500 },
    );
  });
});
