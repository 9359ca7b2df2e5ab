/** Throttles calls that follow each other closely: the first runs at once, the next ones together, `every_ms` later. */
import type { Timers } from "../client/timers";

export class Pace {
  readonly #timers: Timers;
  readonly #every_ms: number;
  readonly #run: () => void;
  #ran_ms = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | null = null;

  constructor(timers: Timers, every_ms: number, run: () => void) {
    this.#timers = timers;
    this.#every_ms = every_ms;
    this.#run = run;
  }

  ask(): void {
    if (this.#cancel) return;
    const left_ms = this.#ran_ms + this.#every_ms - this.#timers.now();
    // A clock that was set back must not delay calls.
    if (left_ms <= 0 || left_ms > this.#every_ms) this.now();
    else this.#cancel = this.#timers.after(left_ms, () => this.now());
  }

  /** Runs at once, instead of whatever was waiting. */
  now(): void {
    this.#cancel?.();
    this.#cancel = null;
    this.#ran_ms = this.#timers.now();
    this.#run();
  }
}
