/** Time that stands still until a test moves it. */
import type { Timers } from "../client/timers";

export interface ManualTimers extends Timers {
  /** Runs what is due within the next `ms`, in order, the callbacks' own timers included. */
  advance(ms: number): void;
  /** Timers that are set and not yet due. */
  readonly pending: number;
}

export function manualTimers(start_ms = 1_700_000_000_000): ManualTimers {
  let now_ms = start_ms;
  let last = 0;
  const waiting = new Map<number, { at_ms: number; callback: () => void }>();

  function next(until_ms: number): number | null {
    let found: number | null = null;
    for (const [id, { at_ms }] of waiting) {
      if (at_ms > until_ms) continue;
      if (found === null || at_ms < (waiting.get(found)?.at_ms ?? 0)) found = id;
    }
    return found;
  }

  return {
    now: () => now_ms,
    after(delay_ms, callback) {
      last += 1;
      const id = last;
      waiting.set(id, { at_ms: now_ms + Math.max(0, delay_ms), callback });
      return () => void waiting.delete(id);
    },
    advance(ms) {
      const until_ms = now_ms + ms;
      for (let id = next(until_ms); id !== null; id = next(until_ms)) {
        const due = waiting.get(id);
        waiting.delete(id);
        now_ms = Math.max(now_ms, due?.at_ms ?? now_ms);
        due?.callback();
      }
      now_ms = until_ms;
    },
    get pending() {
      return waiting.size;
    },
  };
}

/** Lets every promise go on that waits for nothing outside; see `jsonResponse`. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn += 1) await Promise.resolve();
}

/** An answer whose body is there at once: a real `Response` reads it outside the microtask queue. */
export function jsonResponse(body: unknown, status = 200): Response {
  const text = JSON.stringify(body);
  return {
    ok: status < 400,
    status,
    statusText: "",
    headers: new Headers(),
    text: async () => text,
    json: async () => JSON.parse(text),
  } as unknown as Response;
}
