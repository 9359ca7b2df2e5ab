import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Strategy } from "../client/earth_types";
import { type LayerEffect, type LayerInput, type LayerModel, NEW_LAYER, STALE_TRIES, step } from "./layer_core";

const EPOCH = "abcdefghijkl";

function run(inputs: readonly LayerInput[], from: LayerModel = NEW_LAYER) {
  const effects: LayerEffect[] = [];
  let model = from;
  for (const input of inputs) {
    const [next, more] = step(model, input);
    model = next;
    effects.push(...more);
  }
  return { model, effects, types: effects.map((effect) => effect.type) };
}

const event = (revision: number, strategy: Strategy = "reload", prev_revision = revision - 1): LayerInput => ({
  type: "event",
  epoch: EPOCH,
  revision,
  prev_revision,
  strategy,
});

const loaded = (flight: number, revision: number, epoch = EPOCH): LayerInput => ({
  type: "loaded",
  flight,
  epoch,
  revision,
});

/** Shown and up to date at revision 5; one flight was flown. */
const READY = run([{ type: "show" }, loaded(1, 5)]).model;

describe("the strategies", () => {
  // S62
  it("clear_then_reload drops the objects at once and asks past every cache", () => {
    const { types, effects, model } = run([event(6, "clear_then_reload")], READY);
    expect(types).toEqual(["clear", "fetch"]);
    expect(effects[1]).toMatchObject({ bypass: true });
    expect(model.shown).toBeNull();
  });

  // S64
  it("reload keeps the old objects until the new ones are there", () => {
    const { types, effects, model } = run([event(6)], READY);
    expect(types).toEqual(["fetch"]);
    expect(effects[0]).toMatchObject({ bypass: false });
    expect(model.shown).toBe(5);
    expect(run([loaded(2, 6)], model).types).toEqual(["apply", "settle"]);
  });

  it("delta without ids is a reload", () => {
    expect(run([event(6, "delta")], READY).types).toEqual(["fetch"]);
  });

  // S62, S64, S68–S70
  it("after a clear whose refetch fails the layer stays empty, complains once a try, and never restores", () => {
    const failed = run([event(6, "clear_then_reload"), { type: "failed", flight: 2, code: "unreachable" }], READY);
    expect(failed.types).toEqual(["clear", "fetch", "complain", "retry"]);
    const again = run([{ type: "due" }, loaded(3, 5)], failed.model);
    expect(again.types).not.toContain("apply");
    const good = run([{ type: "due" }, loaded(3, 6)], failed.model);
    expect(good.types).toEqual(["fetch", "apply", "settle"]);
    expect(good.effects[0]).toMatchObject({ bypass: true });
  });
});

// S65
describe("deltas by id", () => {
  const delta = { upsert: ["a"], remove: ["b"] };
  const patch = (revision: number, prev_revision = revision - 1): LayerInput => ({
    type: "event",
    epoch: EPOCH,
    revision,
    prev_revision,
    strategy: "delta",
    delta,
  });

  it("fetch the named objects alone and leave the rest", () => {
    const begun = run([patch(6)], READY);
    expect(begun.effects).toEqual([{ type: "fetch_delta", flight: 2, delta }]);
    const done = run([{ type: "patched", flight: 2 }], begun.model);
    expect(done.types).toEqual(["patch", "settle"]);
    expect(done.model.shown).toBe(6);
    expect(run([patch(7)], done.model).types).toEqual(["fetch_delta"]);
  });

  it("reload when the picture is not the one they follow", () => {
    expect(run([patch(8, 7)], READY).effects).toMatchObject([{ type: "fetch", bypass: true }]);
    expect(run([{ ...patch(6), epoch: "zzzzzzzzzzzz" } as LayerInput], READY).types).toEqual(["fetch"]);
    expect(run([patch(6)], { ...READY, visible: false }).types).toEqual([]);
  });

  it("that cross a fetch make one trailing fetch, of everything", () => {
    expect(run([patch(6), patch(7), { type: "patched", flight: 2 }], READY).types).toEqual([
      "fetch_delta",
      "patch",
      "fetch",
    ]);
    expect(run([event(6), patch(7), loaded(2, 6)], READY).types).toEqual(["fetch", "apply", "fetch"]);
  });

  it("of before a clear put nothing back", () => {
    const { types, model } = run([patch(6), event(7, "clear_then_reload"), { type: "patched", flight: 2 }], READY);
    expect(types).toEqual(["fetch_delta", "clear", "fetch"]);
    expect(model.shown).toBeNull();
  });

  it("that fail end in a full fetch", () => {
    const failed = run([patch(6), { type: "failed", flight: 2, code: "unreachable" }], READY);
    expect(failed.types).toEqual(["fetch_delta", "complain", "retry"]);
    expect(run([{ type: "due" }], failed.model).types).toEqual(["fetch"]);
  });
});

describe("events and fetches that cross", () => {
  it("any number of events during a fetch make exactly one more fetch", () => {
    const { types } = run([event(6), event(7), event(8), event(9), loaded(2, 6), loaded(3, 9)], READY);
    expect(types.filter((type) => type === "fetch")).toHaveLength(2);
    expect(types.at(-1)).toBe("settle");
  });

  it("no further fetch when the snapshot under way already holds the events", () => {
    const { types } = run([event(6), event(7), loaded(2, 7)], READY);
    expect(types).toEqual(["fetch", "apply", "settle"]);
  });

  it("an event that the shown snapshot already holds costs nothing, a late delete included", () => {
    expect(run([event(5), event(4, "clear_then_reload")], READY).types).toEqual([]);
  });

  it("the same event twice is the same as once", () => {
    expect(run([event(6), event(6)], READY).types).toEqual(["fetch"]);
  });

  it("a snapshot from before the clear is thrown away, and fetched again past caches", () => {
    const { types, effects } = run([event(6), event(7, "clear_then_reload"), loaded(2, 6)], READY);
    expect(types).toEqual(["fetch", "clear", "fetch"]);
    expect(effects[2]).toMatchObject({ bypass: true });
  });

  it("a filling layer is shown as it fills: newer than the clear is enough", () => {
    const filling = run([event(6, "clear_then_reload"), event(7), event(8), loaded(2, 7)], READY);
    expect(filling.types).toEqual(["clear", "fetch", "apply", "fetch"]);
    expect(filling.model.shown).toBe(7);
  });

  it("a gap means that a delete may have been missed: no cache may answer", () => {
    expect(run([event(9, "reload", 8)], READY).effects).toEqual([{ type: "fetch", flight: 2, bypass: true }]);
    expect(run([event(9, "reload", 5)], READY).effects).toEqual([{ type: "fetch", flight: 2, bypass: false }]);
  });

  it("a late answer of an aborted flight changes nothing", () => {
    const { model } = run([event(6), { type: "hide" }], READY);
    expect(run([loaded(2, 6)], model)).toMatchObject({ types: [], model });
  });
});

describe("a server that is behind its own events", () => {
  it("is asked again quickly a bounded number of times, then counts as failing", () => {
    let state = run([event(9, "clear_then_reload")], READY);
    const seen: string[] = [];
    for (let tries = 0; tries <= STALE_TRIES; tries += 1) {
      state = run([loaded(state.model.flights, 5)], state.model);
      seen.push(...state.types);
      state = run([{ type: "due" }], state.model);
    }
    expect(seen.filter((type) => type === "retry")).toHaveLength(STALE_TRIES + 1);
    expect(seen.filter((type) => type === "complain")).toHaveLength(1);
    expect(seen).not.toContain("apply");
  });
});

describe("another life of the log", () => {
  const OTHER = "zzzzzzzzzzzz";

  it("an answer of another epoch is believed only past every cache", () => {
    const asked = run([event(6), loaded(2, 1, OTHER)], READY);
    expect(asked.effects.at(-1)).toEqual({ type: "fetch", flight: 3, bypass: true });
    const believed = run([loaded(3, 1, OTHER)], asked.model);
    expect(believed.types).toEqual(["apply", "settle"]);
    expect(believed.model).toMatchObject({ epoch: OTHER, shown: 1, need: 0 });
  });

  it("an event of a new epoch counts from anew, however small its revision", () => {
    const { types, model } = run([{ ...event(1), epoch: OTHER } as LayerInput], READY);
    expect(types).toEqual(["fetch"]);
    expect(model).toMatchObject({ epoch: OTHER, need: 1 });
  });
});

describe("visibility", () => {
  it("a hidden layer fetches nothing, clears at once, and catches up when shown", () => {
    const hidden = run([{ type: "hide" }, event(6, "clear_then_reload"), event(7)], READY);
    expect(hidden.types).toEqual(["clear"]);
    expect(run([{ type: "show" }], hidden.model).effects).toEqual([{ type: "fetch", flight: 2, bypass: true }]);
  });

  it("showing an up-to-date layer again costs nothing", () => {
    expect(run([{ type: "hide" }, { type: "show" }], READY).types).toEqual([]);
  });

  it("hiding ends the fetch and the back-off", () => {
    expect(run([event(6), { type: "hide" }], READY).types).toEqual(["fetch", "abort"]);
    const failed = run([event(6), { type: "failed", flight: 2, code: "x" }, { type: "hide" }], READY);
    expect(failed.types.at(-1)).toBe("cancel_retry");
  });

  it("events during a back-off do not become a storm; a person's wish cuts it short", () => {
    const failed = run([event(6), { type: "failed", flight: 2, code: "x" }], READY);
    expect(run([event(7), event(8)], failed.model).types).toEqual([]);
    expect(run([{ type: "refresh", bypass: true }], failed.model).types).toEqual(["cancel_retry", "fetch"]);
  });
});

/**
 * snapshot(t0) + events(t0..t1) = snapshot(t1): a server with a log, an unreliable way to it, and our model between.
 * `cache` is a shared cache that may answer with an old body unless it is bypassed.
 */
describe("the law", () => {
  type Body = { epoch: string; revision: number; objects: readonly number[] };

  class World {
    log: { revision: number; prev: number; strategy: Strategy }[] = [];
    history: Body[] = [{ epoch: EPOCH, revision: 0, objects: [1, 2, 3] }];
    cached: Body = this.now();
    model = NEW_LAYER;
    screen: readonly number[] = [];
    flying: { flight: number; body: Body }[] = [];
    due = false;
    lost = false;
    cleared_at = 0;
    violations: string[] = [];

    now(): Body {
      return this.history[this.history.length - 1] as Body;
    }

    write(objects: readonly number[], clears: boolean): void {
      const { revision } = this.now();
      this.history.push({ epoch: EPOCH, revision: revision + 1, objects });
      this.log.push({ revision: revision + 1, prev: revision, strategy: clears ? "clear_then_reload" : "reload" });
    }

    input(input: LayerInput, body?: Body): void {
      const [next, effects] = step(this.model, input);
      this.model = next;
      for (const effect of effects) this.carryOut(effect, body);
      if (this.flying.length > 1) this.violations.push("two fetches at once");
    }

    carryOut(effect: LayerEffect, body?: Body): void {
      switch (effect.type) {
        case "clear":
          this.screen = [];
          this.cleared_at = this.model.floor;
          break;
        case "abort":
          this.flying = [];
          break;
        case "retry":
          this.due = true;
          break;
        case "cancel_retry":
          this.due = false;
          break;
        case "fetch":
          if (effect.bypass) this.cached = this.now();
          this.flying.push({ flight: effect.flight, body: this.cached });
          break;
        case "apply":
          this.show(body as Body);
          break;
      }
    }

    show(body: Body): void {
      if (body.revision < this.cleared_at) this.violations.push(`showed ${body.revision} after a clear`);
      this.screen = body.objects;
    }

    ring(): void {
      if (!this.due) return;
      this.due = false;
      this.input({ type: "due" });
    }

    land(fails: boolean): void {
      const landed = this.flying.shift();
      if (!landed) return;
      const { flight, body } = landed;
      if (fails) this.input({ type: "failed", flight, code: "unreachable" });
      else this.input({ type: "loaded", flight, epoch: body.epoch, revision: body.revision }, body);
    }

    deliver(count: number): void {
      for (const entry of this.log.splice(0, count)) {
        this.input({
          type: "event",
          epoch: EPOCH,
          revision: entry.revision,
          prev_revision: entry.prev,
          strategy: entry.strategy,
        });
      }
    }

    lose(count: number): void {
      this.lost ||= this.log.splice(0, count).length > 0;
    }

    fillCache(): void {
      this.cached = this.now();
    }

    settleDown(): void {
      // A client that missed events is told so when it joins again.
      if (this.lost) this.input({ type: "refresh", bypass: true });
      this.input({ type: "show" });
      this.deliver(this.log.length);
      for (let turn = 0; turn < 50 && (this.flying.length > 0 || this.due); turn += 1) {
        if (this.flying.length > 0) this.land(false);
        else this.ring();
      }
    }
  }

  type Action = (world: World) => void;

  const action: fc.Arbitrary<Action> = fc.oneof(
    fc.tuple(fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }), fc.boolean()).map(
      ([objects, clears]): Action =>
        (world) =>
          world.write(clears ? [] : objects, clears),
    ),
    fc.integer({ min: 1, max: 3 }).map(
      (count): Action =>
        (world) =>
          world.deliver(count),
    ),
    fc.integer({ min: 1, max: 2 }).map(
      (count): Action =>
        (world) =>
          world.lose(count),
    ),
    fc.boolean().map(
      (fails): Action =>
        (world) =>
          world.land(fails),
    ),
    fc.constantFrom<Action>(
      (world) => world.ring(),
      (world) => world.input({ type: "hide" }),
      (world) => world.input({ type: "show" }),
      (world) => world.input({ type: "refresh", bypass: true }),
      (world) => world.fillCache(),
    ),
  );

  it("whatever is delayed, lost, cached or failing, the screen ends as the server is", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
        const world = new World();
        world.input({ type: "show" });
        for (const act of actions) act(world);
        world.settleDown();
        expect(world.violations).toEqual([]);
        expect(world.screen).toEqual(world.now().objects);
      }),
      { numRuns: 1_000 },
    );
  });
});
