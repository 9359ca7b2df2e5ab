// What a chart shows equals a fresh snapshot, whatever happened on the way.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createBackoff } from "../client/backoff";
import { readDetail } from "../client/city_wire";
import { createHttp } from "../client/http";
import { manualTimers, settle } from "../testing/clock";
import { LogServer } from "../testing/log_server";
import { type CityState, cityFromDetail } from "./city";
import { Terminal } from "./terminal";

const NOON = Date.UTC(2026, 4, 26, 6); // 14:00 in Shanghai
const CITIES = ["a", "b", "c"];

const city = fc.constantFrom(...CITIES);
const moves = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("append" as const), city, minute: fc.nat(5), temp: fc.nat(9) }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("deliver" as const), count: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("answer" as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(50, 200, 2_000, 40_000) }),
  },
  fc.record({ do: fc.constant("fail" as const) }),
  fc.record({ do: fc.constant("lose" as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("cut" as const) }) },
  fc.record({ do: fc.constant("prune" as const) }),
  fc.record({ do: fc.constant("begin" as const) }),
  fc.record({ do: fc.constant("wake" as const) }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant("show" as const), cities: fc.subarray(CITIES) }) },
);
type Move = typeof moves extends fc.Arbitrary<infer T> ? T : never;

class World {
  readonly server = new LogServer();
  readonly timers = manualTimers(NOON);
  readonly terminal = new Terminal({
    http: createHttp(this.server.fetch),
    open: this.server.open,
    timers: this.timers,
    backoff: createBackoff({ random: () => 0.5 }),
    debug: () => {},
  });
  shown: readonly string[] = CITIES;

  async run(script: readonly Move[]): Promise<void> {
    void this.terminal.start();
    this.terminal.show(this.shown);
    for (const move of script) {
      this.#act(move);
      await settle();
    }
  }

  #act(move: Move): void {
    if (move.do === "append") this.server.append(move.city, NOON - 3_600_000 + move.minute * 60_000, move.temp);
    if (move.do === "deliver") this.server.deliver(move.count);
    if (move.do === "answer") this.server.answer();
    if (move.do === "fail") this.server.fail();
    if (move.do === "lose") this.server.lose();
    if (move.do === "cut") this.server.cut();
    if (move.do === "prune") this.server.prune();
    if (move.do === "begin") this.server.begin();
    if (move.do === "wake") this.terminal.wake();
    if (move.do === "wait") this.timers.advance(move.ms);
    if (move.do !== "show") return;
    this.shown = move.cities;
    this.terminal.show(move.cities);
  }

  /** Lets everything arrive, for as long as a page may need at worst. */
  async calm(): Promise<void> {
    for (let round = 0; round < 40; round += 1) {
      this.server.beat();
      for (let turn = 0; turn < 20 && this.server.asked + this.server.queued > 0; turn += 1) {
        this.server.deliver(1_000);
        this.server.answer();
        await settle();
      }
      this.timers.advance(20_000);
      await settle();
    }
  }

  /** One reading more of each city: what was lost without a word shows by it. */
  news(): void {
    for (const one of CITIES) this.server.append(one, NOON, 20);
  }

  state(name: string): CityState | null | undefined {
    return this.terminal.store.getState().cities[name]?.state;
  }

  expected(name: string): CityState {
    return cityFromDetail(readDetail(this.server.detail(name)), this.timers.now());
  }
}

const values = (state: CityState | null | undefined) => ({
  curves: state?.series.map(({ id, x, y }) => ({ id, x, y })).filter(({ x }) => x.length > 0),
  headline: state?.headline && [state.headline.observed_ms, state.headline.temp_c],
  high: state?.high && [state.high.observed_ms, state.high.temp_c],
});

/** Points that are shown and were never read by any station. */
function invented(world: World): string[] {
  return world.shown.flatMap((name) => {
    const ever = world.expected(name).series[0];
    const shown = world.state(name)?.series[0];
    return (shown?.x ?? []).filter((time) => !ever?.x.includes(time)).map((time) => `${name} ${time}`);
  });
}

describe("a page's law: snapshot and events give what the next snapshot gives", () => {
  it("holds for every visible city after any order of events, losses, cuts, prunes, new logs and late answers", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(moves, { maxLength: 60 }), async (script) => {
        const world = new World();
        await world.run(script);
        expect(invented(world)).toEqual([]);
        await world.calm();
        world.news();
        await world.calm();
        expect(world.terminal.stream.cities).toEqual([...world.shown].sort());
        for (const name of world.shown) {
          expect(values(world.state(name))).toEqual(values(world.expected(name)));
          expect(world.terminal.store.getState().cities[name]).toMatchObject({ phase: "ready", mark: "none" });
        }
        world.terminal.stop();
        expect(world.timers.pending).toBe(0);
      }),
      { numRuns: Number(import.meta.env.VITE_LAW_RUNS ?? 150) },
    );
  }, 900_000);
});
