/** The once-a-second beat of moving layers: stopped while paused or while the page is hidden. */

export interface TickerDeps {
  now(): number;
  setTimer(callback: () => void, delay_ms: number): number;
  clearTimer(timer: number): void;
  isHidden(): boolean;
  onTick(at_ms: number): void;
}

export interface Ticker {
  /** The time shown: now, or the moment of the pause. */
  readonly at_ms: number;
  readonly paused: boolean;
  setPaused(paused: boolean): void;
  /** Tick at once for the time shown, e.g. when new elements came while paused. */
  poke(): void;
  /** The page was hidden or shown. */
  visibilityChanged(): void;
  stop(): void;
}

const BEAT_MS = 1_000;

export function createTicker(deps: TickerDeps): Ticker {
  let timer: number | null = null;
  let paused_at_ms: number | null = null;

  const time = () => paused_at_ms ?? deps.now();

  function halt(): void {
    if (timer !== null) deps.clearTimer(timer);
    timer = null;
  }

  /** Beats fall on whole seconds, so that the clock on the page and the picture change together. */
  function schedule(): void {
    halt();
    if (paused_at_ms !== null || deps.isHidden()) return;
    timer = deps.setTimer(beat, BEAT_MS - (deps.now() % BEAT_MS));
  }

  function beat(): void {
    timer = null;
    deps.onTick(time());
    schedule();
  }

  schedule();
  return {
    get at_ms() {
      return time();
    },
    get paused() {
      return paused_at_ms !== null;
    },
    setPaused(paused) {
      if (paused === (paused_at_ms !== null)) return;
      paused_at_ms = paused ? deps.now() : null;
      if (!paused) deps.onTick(time());
      schedule();
    },
    poke: () => deps.onTick(time()),
    visibilityChanged() {
      if (!deps.isHidden() && paused_at_ms === null) deps.onTick(time());
      schedule();
    },
    stop: halt,
  };
}
