/**
 * Polls cities that got no event for long: first only the headline, and the curves only if that is newer than what is
 * shown. This detects a stream that lost events silently.
 */

import { instant } from "../client/city_values";
import type { Http } from "../client/http";
import { record } from "../client/parse";
import type { Timers } from "../client/timers";
import { type CityState, isReference } from "./city";
import { cadence_s } from "./series";

const SILENT_MS = 120_000;

/** How long a city may be silent: two minutes, or twice the distance of its most frequent readings. */
export function silence_ms(state: CityState | null): number {
  const counted = state?.series.filter(({ series_key, x }) => !isReference(series_key) && x.length > 0) ?? [];
  const cadence_ms = counted.length > 0 ? Math.min(...counted.map(cadence_s)) * 1_000 : 0;
  return Math.max(SILENT_MS, 2 * cadence_ms);
}

export interface SilenceDeps {
  http: Http;
  timers: Timers;
  stateOf: (city: string) => CityState | null;
  /** Whether nothing is known to be missing from what is shown. */
  isWhole: (city: string) => boolean;
  /** The city's curves have to be fetched; past every cache if `fresh`. */
  load: (city: string, fresh: boolean) => void;
}

export class SilenceWatch {
  readonly #deps: SilenceDeps;
  readonly #newest_ms = new Map<string, number>();
  readonly #asking = new Map<string, AbortController>();

  constructor(deps: SilenceDeps) {
    this.#deps = deps;
  }

  /** An event of the city arrived, or it was polled: silence counts from now. */
  note(city: string): void {
    this.#newest_ms.set(city, this.#deps.timers.now());
  }

  forget(city: string): void {
    this.#newest_ms.delete(city);
    this.#asking.get(city)?.abort(new DOMException("no longer shown", "AbortError"));
    this.#asking.delete(city);
  }

  /** Polls those of the cities that have been silent for too long. */
  check(cities: readonly string[]): void {
    const now_ms = this.#deps.timers.now();
    for (const city of cities) {
      const newest_ms = this.#newest_ms.get(city);
      const state = this.#deps.stateOf(city);
      if (newest_ms === undefined || now_ms - newest_ms <= silence_ms(state)) continue;
      this.note(city);
      // A city that never came has nothing to compare with, and a hole does not show in its newest reading.
      if (state === null) this.#deps.load(city, false);
      else if (!this.#deps.isWhole(city)) this.#deps.load(city, true);
      else void this.#ask(city);
    }
  }

  async #ask(city: string): Promise<void> {
    this.#asking.get(city)?.abort(new DOMException("asked again", "AbortError"));
    const stop = new AbortController();
    this.#asking.set(city, stop);
    try {
      const path = `/api/city/${encodeURIComponent(city)}/summary`;
      const body = await this.#deps.http.get<unknown>(path, { cache: "no-cache", signal: stop.signal });
      if (stop.signal.aborted) return;
      const told_ms = instant(record(record(body)?.current)?.obs_time);
      if (told_ms === null || told_ms <= (this.#deps.stateOf(city)?.headline?.observed_ms ?? -Infinity)) return;
      this.#deps.load(city, true);
    } catch {
      // What is shown stays as it is; the badge tells its age, and the next silence asks again.
    } finally {
      if (this.#asking.get(city) === stop) this.#asking.delete(city);
    }
  }
}
