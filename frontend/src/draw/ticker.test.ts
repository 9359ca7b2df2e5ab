import { describe, expect, it } from "vitest";
import { manualTimers } from "../testing/clock";
import { createTicker } from "./ticker";

function setUp(start_ms = 1_700_000_000_250) {
  const timers = manualTimers(start_ms);
  const cancels = new Map<number, () => void>();
  const ticks: number[] = [];
  let hidden = false;
  const ticker = createTicker({
    now: timers.now,
    setTimer: (callback, delay_ms) => {
      const id = cancels.size + 1;
      cancels.set(id, timers.after(delay_ms, callback));
      return id;
    },
    clearTimer: (id) => cancels.get(id)?.(),
    isHidden: () => hidden,
    onTick: (at_ms) => ticks.push(at_ms),
  });
  const hide = (value: boolean) => {
    hidden = value;
    ticker.visibilityChanged();
  };
  return { timers, ticker, ticks, hide };
}

describe("the beat", () => {
  it("falls on whole seconds", () => {
    const { timers, ticks } = setUp();
    timers.advance(3_000);
    expect(ticks).toEqual([1_700_000_001_000, 1_700_000_002_000, 1_700_000_003_000]);
  });

  it("is silent while paused, holds its time, and jumps to now when it goes on", () => {
    const { timers, ticker, ticks } = setUp();
    ticker.setPaused(true);
    timers.advance(10_000);
    expect([ticks.length, ticker.at_ms, timers.pending]).toEqual([0, 1_700_000_000_250, 0]);
    ticker.poke();
    expect(ticks).toEqual([1_700_000_000_250]);
    ticker.setPaused(false);
    expect(ticks.at(-1)).toBe(1_700_000_010_250);
  });

  it("is silent in a hidden tab and catches up at once", () => {
    const { timers, ticks, hide } = setUp();
    hide(true);
    timers.advance(60_000);
    expect(ticks).toEqual([]);
    hide(false);
    expect(ticks).toEqual([1_700_000_060_250]);
  });

  it("stays paused through hiding and showing", () => {
    const { timers, ticker, ticks, hide } = setUp();
    ticker.setPaused(true);
    hide(true);
    hide(false);
    timers.advance(5_000);
    expect(ticks).toEqual([]);
  });

  it("stops for good", () => {
    const { timers, ticker, ticks } = setUp();
    ticker.stop();
    timers.advance(5_000);
    expect([ticks.length, timers.pending]).toEqual([0, 0]);
  });
});
