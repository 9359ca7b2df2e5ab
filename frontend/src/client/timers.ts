/** Time as the wire clients see it, so that tests can hold it still. */

export interface Timers {
  now(): number;
  /** Calls once after the delay; the returned function cancels. */
  after(delay_ms: number, callback: () => void): () => void;
}

export const browserTimers: Timers = {
  now: () => Date.now(),
  after(delay_ms, callback) {
    const id = setTimeout(callback, delay_ms);
    return () => clearTimeout(id);
  },
};
