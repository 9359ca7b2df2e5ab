/** Waiting times between attempts: exponential with full jitter, between a floor and a ceiling. */

export interface BackoffOptions {
  floor_ms?: number;
  ceiling_ms?: number;
  random?: () => number;
}

export interface Backoff {
  /** The next wait; grows with each call. */
  next(): number;
  reset(): void;
  readonly attempts: number;
}

/** Full jitter spreads the clients of a lost server over the whole interval, which avoids a thundering herd. */
export function createBackoff({
  floor_ms = 1_000,
  ceiling_ms = 30_000,
  random = Math.random,
}: BackoffOptions = {}): Backoff {
  let attempts = 0;
  return {
    next() {
      const top = Math.min(ceiling_ms, floor_ms * 2 ** Math.min(attempts + 1, 20));
      attempts += 1;
      return Math.round(floor_ms + random() * Math.max(0, top - floor_ms));
    },
    reset() {
      attempts = 0;
    },
    get attempts() {
      return attempts;
    },
  };
}
