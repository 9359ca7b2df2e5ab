import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EPOCH } from "../testing/stream";
import { CityCursors } from "./city_cursors";
import type { CityStep } from "./sse_frames";

const OTHER_EPOCH = "zzzzzzzzzzzz";

const step = (city: string, revision: number, prev: number): CityStep => {
  return { city, revision, prev_revision: prev, epoch: EPOCH, patch: null };
};
const revisions = (steps: readonly CityStep[]) => steps.map(({ revision }) => revision);

function known(city: string, revision: number): CityCursors {
  const cursors = new CityCursors();
  cursors.snapshot(city, EPOCH, revision);
  return cursors;
}

describe("gaps", () => {
  it("are no jumps of the common counter (Q1, F1)", () => {
    const cursors = known("a", 10);
    expect(cursors.receive(step("a", 20, 10))).toMatchObject({ gap: false, steps: [{ revision: 20 }] });
    expect(cursors.receive(step("a", 31, 20))).toMatchObject({ gap: false, steps: [{ revision: 31 }] });
  });

  it("are events whose predecessor is missing: one gap, nothing shown until it is closed (S194)", () => {
    const cursors = known("a", 10);
    expect(cursors.receive(step("a", 30, 20))).toEqual({ gap: true, steps: [] });
    expect(cursors.receive(step("a", 40, 30))).toEqual({ gap: false, steps: [] });
    expect(cursors.required("a")).toBe(20);
    // A snapshot from before the missing event is shown if newer, but is not enough.
    expect(cursors.snapshot("a", EPOCH, 15)).toMatchObject({ take: true, enough: false, steps: [] });
    const arrival = cursors.snapshot("a", EPOCH, 33);
    expect(arrival).toMatchObject({ take: true, enough: true });
    expect(revisions(arrival.steps)).toEqual([40]);
  });

  it("are closed by the missing event itself, e.g. by the replay after a reconnect", () => {
    const cursors = known("a", 10);
    cursors.receive(step("a", 30, 20));
    expect(cursors.since(["a"])).toEqual({ epoch: EPOCH, revision: 10 });
    expect(revisions(cursors.receive(step("a", 20, 10)).steps)).toEqual([20, 30]);
    expect(cursors.isKnown("a")).toBe(true);
  });

  it("are looked for anew after a reconnect: what the replay is about to send is not missing", () => {
    const cursors = known("a", 0);
    cursors.receive(step("a", 2, 1));
    cursors.receive(step("a", 4, 3));
    cursors.leave();
    const replay = [step("a", 1, 0), step("a", 2, 1), step("a", 3, 2), step("a", 4, 3)];
    const released = replay.map((one) => cursors.receive(one));
    expect(released.map(({ gap }) => gap)).toEqual([false, false, false, false]);
    expect(revisions(released.flatMap(({ steps }) => steps))).toEqual([1, 2, 3, 4]);
  });

  it("do not come from what is known already (S193)", () => {
    const cursors = known("a", 10);
    expect(cursors.receive(step("a", 9, 8))).toEqual({ gap: false, steps: [] });
    expect(cursors.receive(step("a", 10, 8))).toEqual({ gap: false, steps: [] });
  });
});

describe("positions", () => {
  it("are kept per city; a stream begins at the lowest (Q37)", () => {
    const cursors = known("a", 10);
    cursors.snapshot("b", EPOCH, 25);
    expect(cursors.since(["a", "b", "c"])).toEqual({ epoch: EPOCH, revision: 10 });
    expect(cursors.since(["c"])).toBeNull();
    cursors.receive(step("a", 30, 10));
    expect(cursors.since(["a", "b"])?.revision).toBe(25);
  });

  it("follow heartbeats, but not past something missing (F14)", () => {
    const cursors = known("a", 10);
    cursors.snapshot("b", EPOCH, 10);
    cursors.join(
      EPOCH,
      10,
      { epoch: EPOCH, revision: 10 },
      new Map([
        ["a", 0],
        ["b", 0],
      ]),
      ["a", "b"],
    );
    cursors.receive(step("b", 30, 20));
    cursors.heartbeat(40, ["a", "b"]);
    expect(cursors.since(["a"])?.revision).toBe(40);
    expect(cursors.since(["b"])?.revision).toBe(10);
  });

  it("do not follow the heartbeat of a stream that began after them", () => {
    const cursors = new CityCursors();
    cursors.join(EPOCH, 50, null, new Map([["a", 45]]), ["a"]);
    // Fetched before the stream joined, arrived after: 45 is in neither of them.
    expect(cursors.snapshot("a", EPOCH, 40)).toMatchObject({ take: true, enough: false });
    cursors.heartbeat(60, ["a"]);
    expect(cursors.since(["a"])?.revision).toBe(40);
    expect(cursors.snapshot("a", EPOCH, 46)).toMatchObject({ take: true, enough: true });
    // A server that does not tell how far the city was: 41 to 50 may be missing.
    const untold = known("a", 40);
    untold.join(EPOCH, 50, null, new Map(), ["a"]);
    untold.heartbeat(60, ["a"]);
    expect(untold.since(["a"])?.revision).toBe(40);
  });

  it("owe nothing to a stream that was left: the next one begins where they are", () => {
    const cursors = new CityCursors();
    cursors.join(EPOCH, 50, null, new Map([["a", 45]]), ["a"]);
    cursors.leave();
    expect(cursors.snapshot("a", EPOCH, 40)).toMatchObject({ take: true, enough: true });
  });

  it("are void in another epoch (Q4)", () => {
    const cursors = known("a", 10);
    expect(cursors.join(OTHER_EPOCH, 3, null, new Map(), ["a"])).toEqual(["a"]);
    expect(cursors.since(["a"])).toBeNull();
    expect(cursors.snapshot("a", OTHER_EPOCH, 3)).toMatchObject({ take: true, enough: true });
    expect(cursors.snapshot("a", "cccccccccccc", 11)).toMatchObject({ take: false, foreign: true });
  });

  it("never go back to a log that was left because an answer of it is late, but do when a stream says so", () => {
    const cursors = known("a", 10);
    cursors.join(OTHER_EPOCH, 3, null, new Map(), ["a"]);
    expect(cursors.snapshot("a", EPOCH, 11)).toMatchObject({ take: false, enough: false, foreign: false });
    expect(cursors.join(EPOCH, 12, null, new Map(), ["a"])).toEqual(["a"]);
    expect(cursors.snapshot("a", EPOCH, 12)).toMatchObject({ take: true, enough: true });
  });

  it("count for nothing once the server cannot replay: events wait for a snapshot that reaches far enough", () => {
    const cursors = known("a", 10);
    cursors.invalidate("a", 12);
    expect(cursors.since(["a"])).toBeNull();
    expect(cursors.receive(step("a", 13, 12)).steps).toEqual([]);
    // Asked for before, and older than what is shown, or only newer than that.
    expect(cursors.snapshot("a", EPOCH, 9)).toMatchObject({ take: false, enough: false });
    expect(cursors.snapshot("a", EPOCH, 11)).toMatchObject({ take: true, enough: false, steps: [] });
    const arrival = cursors.snapshot("a", EPOCH, 12);
    expect(arrival).toMatchObject({ take: true, enough: true });
    expect(revisions(arrival.steps)).toEqual([13]);
  });

  it("go back when the server says that it is behind them", () => {
    const cursors = known("a", 12_345);
    cursors.forget("a");
    cursors.invalidate("a", 101);
    expect(cursors.snapshot("a", EPOCH, 101)).toMatchObject({ take: true, enough: true });
    expect(revisions(cursors.receive(step("a", 102, 90)).steps)).toEqual([102]);
  });
});

it("gives up the oldest of what it holds, and asks for a snapshot beyond it", () => {
  const cursors = new CityCursors();
  for (let revision = 1; revision <= 2_001; revision += 1) cursors.receive(step("a", revision, revision - 1));
  expect(cursors.required("a")).toBe(1);
  expect(cursors.snapshot("a", EPOCH, 0)).toMatchObject({ take: true, enough: false });
  expect(cursors.snapshot("a", EPOCH, 1).steps).toHaveLength(2_000);
});

/** What a page shows that follows the rules: the events a snapshot stands for, and those released after it. */
class Shown {
  revisions: number[] | null = null;
  readonly cursors = new CityCursors();
  constructor(readonly log: readonly CityStep[]) {}

  get all(): number[] {
    return this.log.map(({ revision }) => revision as number);
  }
  deliver(at: number): void {
    const { steps } = this.cursors.receive(this.log[at] as CityStep);
    if (this.revisions === null) expect(steps).toEqual([]);
    else this.revisions = [...this.revisions, ...revisions(steps).map(Number)];
  }
  snapshot(revision: number): boolean {
    const { take, enough, steps } = this.cursors.snapshot("a", EPOCH, revision);
    if (take) this.revisions = [...this.all.filter((each) => each <= revision), ...revisions(steps).map(Number)];
    return enough;
  }
}

/**
 * The law: whatever is lost, doubled or late on the wire, what is released after the last taken snapshot is exactly
 * the run of events after it, in order; and once a far enough snapshot came, everything is there.
 */
it("releases exactly the unbroken run after each snapshot, under any loss, doubling and order", () => {
  const move = fc.tuple(fc.integer({ min: 0, max: 19 }), fc.option(fc.integer({ min: 0, max: 20 }), { nil: null }));
  const distances = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 20, maxLength: 20 });
  fc.assert(
    fc.property(distances, fc.array(move, { maxLength: 60 }), (gaps, moves) => {
      const ends = gaps.map((_, i) => gaps.slice(0, i + 1).reduce((sum, gap) => sum + gap, 0));
      const shown = new Shown(ends.map((end, i) => step("a", end, ends[i - 1] ?? 0)));
      for (const [deliver, snapshot] of moves) {
        shown.deliver(deliver);
        if (snapshot !== null) shown.snapshot(ends[snapshot - 1] ?? 0);
        if (shown.revisions) expect(shown.revisions).toEqual(ends.slice(0, shown.revisions.length));
      }
      expect(shown.snapshot(ends[19] as number)).toBe(true);
      expect(shown.revisions).toEqual(ends);
    }),
  );
});
