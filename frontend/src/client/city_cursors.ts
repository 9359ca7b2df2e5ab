/**
 * Tracks the revision known of each city, and holds back events until a gap before them is closed.
 *
 * Invariant: what is released for a city is a snapshot followed by an unbroken run of its events. An event whose
 * predecessor is missing is held until a snapshot, or the missing event, closes the gap.
 */
import type { Cursor } from "./cursor";
import type { CityStep } from "./sse_frames";

/** Steps held for one city; beyond it the oldest is dropped and the snapshot must be newer. */
const HELD_MAX = 2_000;

interface Place {
  /** Everything up to here is known; null before the first snapshot. */
  through: number | null;
  /** The revision shown, also while nothing is known: no older snapshot replaces it. */
  shown: number;
  /** A snapshot must reach at least this revision. */
  required: number | null;
  /** Ascending by revision, none of them released. */
  held: CityStep[];
}

export interface Release {
  /** To be applied, in this order. */
  steps: readonly CityStep[];
  /** Whether this call found that something is missing. */
  gap: boolean;
}

/** What to do with a snapshot that came in. */
export interface Arrival {
  /** Show it; it is not older than what is shown. */
  take: boolean;
  /** False: something is still missing, fetch again. */
  enough: boolean;
  /** It is of a log that is neither the stream's nor an abandoned one. */
  foreign: boolean;
  /** To be applied after it, in this order. */
  steps: readonly CityStep[];
}

const NOTHING: Release = { steps: [], gap: false };

export class CityCursors {
  epoch: string | null = null;
  readonly #places = new Map<string, Place>();
  /** Abandoned logs: late answers from them do not mean a new log. Only a stream can return to one. */
  readonly #left = new Set<string>();
  /** What the present connection covers: every event after `from`, and each city's last revision when it joined. */
  #cover: { from: number; last: ReadonlyMap<string, number> } | null = null;

  #place(city: string): Place {
    let place = this.#places.get(city);
    if (!place) {
      place = { through: null, shown: 0, required: null, held: [] };
      this.#places.set(city, place);
    }
    return place;
  }

  /** The minimum revision of a snapshot of the city; 0: any. */
  required(city: string): number {
    return this.#places.get(city)?.required ?? 0;
  }

  isKnown(city: string): boolean {
    const place = this.#places.get(city);
    return place !== undefined && place.through !== null && place.required === null;
  }

  /** Where a stream over these cities has to begin, or null when none of them is known yet. */
  since(cities: readonly string[]): Cursor | null {
    const known = cities
      .map((city) => this.#places.get(city)?.through ?? null)
      .filter((through): through is number => through !== null);
    if (known.length === 0) return null;
    return { epoch: this.epoch ?? "", revision: Math.min(...known) };
  }

  /** A stream joined. Returns the cities of `asked` that must be fetched again. */
  join(epoch: string, head: number, since: Cursor | null, last: ReadonlyMap<string, number>, asked: readonly string[]) {
    if (this.epoch !== null && this.epoch !== epoch) {
      this.reset(epoch);
      this.#cover = { from: head, last };
      return [...asked];
    }
    this.epoch = epoch;
    this.#cover = { from: since?.revision ?? head, last };
    return asked.filter((city) => this.#missedBeforeJoin(city));
  }

  #missedBeforeJoin(city: string): boolean {
    const place = this.#place(city);
    const last = this.#cover?.last.get(city);
    if (!this.#cover || last === undefined || place.through === null) return false;
    if (place.through >= this.#cover.from || last <= place.through) return false;
    place.required = Math.max(place.required ?? 0, last);
    return true;
  }

  /** The connection is lost: held steps are dropped, since the next one sends them again in order. */
  leave(): void {
    this.#cover = null;
    for (const place of this.#places.values()) place.held = [];
  }

  /** A new log began: revisions of the old one are meaningless. */
  reset(epoch: string): void {
    if (this.epoch !== null) this.#left.add(this.epoch);
    this.#left.delete(epoch);
    this.epoch = epoch;
    this.#places.clear();
  }

  /** The server cannot replay: the city is unknown until a snapshot reaches `revision`. */
  invalidate(city: string, revision: number): void {
    const place = this.#place(city);
    place.shown = place.through ?? place.shown;
    place.through = null;
    place.required = Math.max(place.required ?? 0, revision);
  }

  receive(step: CityStep): Release {
    // Events without a position come from servers older than revisions: applied in order of arrival.
    if (step.revision === null) return { steps: [step], gap: false };
    const place = this.#place(step.city);
    if (step.revision <= (place.through ?? -1)) return NOTHING;
    if (!hold(place, step)) return NOTHING;
    const before = place.required;
    const steps = drain(place);
    return { steps, gap: place.required !== null && place.required !== before };
  }

  /** Everything for this connection up to `revision` was sent; cities with something missing stay where they are. */
  heartbeat(revision: number, asked: readonly string[]): void {
    for (const city of asked) {
      const place = this.#place(city);
      if (place.through === null || place.required !== null || place.held.length > 0) continue;
      // Not covered by what the stream has sent: a city that it does not name, or that joined behind its beginning.
      if (this.#cover?.last.has(city) && place.through >= this.#cover.from)
        place.through = Math.max(place.through, revision);
    }
  }

  snapshot(city: string, epoch: string, revision: number): Arrival {
    if (this.epoch !== null && this.epoch !== epoch) {
      return { take: false, enough: false, foreign: !this.#left.has(epoch), steps: [] };
    }
    this.epoch = epoch;
    const place = this.#place(city);
    if (revision < (place.through ?? place.shown)) {
      // Older than the stream's state, which stays.
      return { take: false, enough: place.required === null, foreign: false, steps: [] };
    }
    place.through = revision;
    if (revision >= (place.required ?? 0)) place.required = null;
    this.#missedBeforeJoin(city);
    const steps = drain(place);
    return { take: true, enough: place.required === null, foreign: false, steps };
  }

  forget(city: string): void {
    this.#places.delete(city);
  }
}

/** False for a duplicate. */
function hold(place: Place, step: CityStep): boolean {
  const revision = step.revision ?? 0;
  let at = place.held.length;
  while (at > 0 && (place.held[at - 1]?.revision ?? 0) > revision) at -= 1;
  if (at > 0 && place.held[at - 1]?.revision === revision) return false;
  place.held.splice(at, 0, step);
  if (place.held.length > HELD_MAX) {
    const lost = place.held.shift();
    place.required = Math.max(place.required ?? 0, lost?.revision ?? 0);
  }
  return true;
}

/** Releases the held steps that follow without a gap, and records what is missing before the rest. */
function drain(place: Place): CityStep[] {
  if (place.through === null) return [];
  const run: CityStep[] = [];
  let through = place.through;
  while (place.held.length > 0) {
    const next = place.held[0] as CityStep;
    const revision = next.revision ?? 0;
    if (revision > through && next.prev_revision !== null && next.prev_revision > through) break;
    place.held.shift();
    if (revision <= through) continue;
    through = revision;
    run.push(next);
  }
  place.through = through;
  const missing = place.held[0]?.prev_revision ?? null;
  if (missing !== null) place.required = Math.max(place.required ?? 0, missing);
  else if (through >= (place.required ?? 0) && run.every((step) => step.prev_revision !== null)) place.required = null;
  return run;
}
