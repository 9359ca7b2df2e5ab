/**
 * The observation stream: one connection for the visible cities, resumed where it was lost.
 *
 * Invariant: at most one source is open; steps are passed on once, in order, without a gap (see `city_cursors`).
 */
import { type Backoff, createBackoff } from "./backoff";
import { CityCursors } from "./city_cursors";
import { type Cursor, formatCursor } from "./cursor";
import { type CityStep, parseSseFrame, type SseFrame } from "./sse_frames";
import { hasSource, STREAM_TABLE, type StreamSignal, type StreamState } from "./sse_states";
import type { OpenSource, Source } from "./sse_transport";
import { browserTimers, type Timers } from "./timers";

const DEBOUNCE_MS = 150;
const PREPARE_MS = 2_000;
const CONNECT_MS = 15_000;
const SILENT_HEARTBEATS = 2.5;
const HEALTHY_MS = 60_000;
const FAILING_AFTER = 4;
const REPLAY_LIMIT = 500;

export interface StreamListener {
  onState(state: StreamState): void;
  /** In order, each once. */
  onSteps(city: string, steps: readonly CityStep[]): void;
  /** The cities must be fetched again; `mark` when something was certainly missed. */
  onResync(cities: readonly string[], reason: string, mark: boolean): void;
}

export interface StreamOptions {
  open: OpenSource;
  listener: StreamListener;
  timers?: Timers;
  backoff?: Backoff;
  replay_limit?: number;
  debug?: (message: string, detail: string) => void;
}

/** The address of a stream; cities sorted, so that the same set is the same address. */
export function streamUrl(cities: readonly string[], since: Cursor | null, replay_limit: number): string {
  const parts = [`cities=${[...cities].sort().map(encodeURIComponent).join(",")}`];
  if (since) parts.push(`since_revision=${since.epoch ? formatCursor(since) : since.revision}`);
  return `/api/events?${parts.join("&")}&replay_limit=${replay_limit}`;
}

export class ObservationStream {
  readonly cursors = new CityCursors();
  readonly #open: OpenSource;
  readonly #listener: StreamListener;
  readonly #timers: Timers;
  readonly #backoff: Backoff;
  readonly #replayLimit: number;
  readonly #debug: (message: string, detail: string) => void;
  #state: StreamState = "idle";
  #cities: readonly string[] = [];
  #source: Source | null = null;
  #since: Cursor | null = null;
  #heartbeat_s = 30;
  #lastFrame_ms = 0;
  /** Debounce, preparation, retry and watchdog never run at once. */
  #cancelTimer: () => void = () => {};
  #cancelHealthy: () => void = () => {};

  constructor({ open, listener, timers = browserTimers, backoff = createBackoff(), ...rest }: StreamOptions) {
    this.#open = open;
    this.#listener = listener;
    this.#timers = timers;
    this.#backoff = backoff;
    this.#replayLimit = rest.replay_limit ?? REPLAY_LIMIT;
    this.#debug = rest.debug ?? ((message, detail) => console.debug(message, detail));
  }

  get state(): StreamState {
    return this.#state;
  }

  get cities(): readonly string[] {
    return this.#cities;
  }

  /** Subscribes to exactly these cities; several changes within 150 ms open one stream. */
  want(cities: readonly string[]): void {
    const next = [...new Set(cities)].sort();
    if (next.join() === this.#cities.join()) return;
    this.#cities = next;
    if (next.length === 0) this.#signal("stop");
    else this.#signal("want");
  }

  /** A snapshot of the city was fetched. The caller shows it if `take`, then applies `steps`. */
  snapshot(city: string, epoch: string, revision: number) {
    const arrival = this.cursors.snapshot(city, epoch, revision);
    // The server has a new log: only a new connection shows which of the two is the present one.
    if (arrival.foreign) this.#foreign(epoch);
    if (this.#state === "preparing" && this.#debounced && this.#prepared()) this.#signal("begin");
    return arrival;
  }

  /** The network is back, or the page is visible again: a silent stream is reopened at once. */
  wake(): void {
    if (this.#state === "waiting" || this.#state === "offline") this.#signal("retry");
    else if (hasSource(this.#state) && this.#timers.now() - this.#lastFrame_ms > this.#heartbeat_s * 1_000 * 1.2) {
      this.#reconnect();
    }
  }

  stop(): void {
    this.#cities = [];
    this.#signal("stop");
  }

  #debounced = false;

  #prepared(): boolean {
    return this.#cities.every((city) => this.cursors.isKnown(city));
  }

  #reconnect(): void {
    this.#signal("lost");
    this.#signal("retry");
  }

  #foreign(epoch: string): void {
    if (hasSource(this.#state)) {
      this.#reconnect();
      return;
    }
    this.cursors.reset(epoch);
    this.#refetch(this.#cities, "epoch_changed");
  }

  #signal(signal: StreamSignal): void {
    const from = this.#state;
    const to = STREAM_TABLE[from][signal];
    // `want` starts over even from `preparing`: the wait counts from the last change.
    if (to === from && signal !== "want") return;
    this.#state = to;
    this.#leave();
    this.#enter(to);
    if (to !== from) this.#listener.onState(to);
  }

  #leave(): void {
    this.#cancelTimer();
    if (this.#state === "live") return;
    this.#cancelHealthy();
    this.#source?.close();
    this.#source = null;
    this.cursors.leave();
  }

  #enter(state: StreamState): void {
    switch (state) {
      case "preparing":
        this.#prepare();
        break;
      case "connecting":
        this.#connect();
        break;
      case "live":
        this.#watch();
        this.#cancelHealthy = this.#timers.after(HEALTHY_MS, () => this.#backoff.reset());
        break;
      case "waiting":
      case "offline":
        this.#cancelTimer = this.#timers.after(this.#backoff.next(), () => this.#signal("retry"));
        break;
      case "idle":
        break;
    }
  }

  #prepare(): void {
    this.#debounced = false;
    this.#cancelTimer = this.#timers.after(DEBOUNCE_MS, () => {
      this.#debounced = true;
      if (this.#prepared()) this.#signal("begin");
      // A missing snapshot must not delay the other cities.
      else this.#cancelTimer = this.#timers.after(PREPARE_MS, () => this.#signal("begin"));
    });
  }

  #connect(): void {
    this.#since = this.cursors.since(this.#cities);
    const url = streamUrl(this.#cities, this.#since, this.#replayLimit);
    this.#cancelTimer = this.#timers.after(CONNECT_MS, () => this.#lost());
    this.#lastFrame_ms = this.#timers.now();
    let mine: Source | null = null;
    // A source that was replaced may still deliver what it had queued.
    const current = () => mine !== null && mine === this.#source;
    mine = this.#open(url, {
      onMessage: (data) => current() && this.#receive(data),
      onLost: () => current() && this.#lost(),
    });
    this.#source = mine;
  }

  #lost(): void {
    this.#signal(this.#backoff.attempts + 1 >= FAILING_AFTER ? "failing" : "lost");
  }

  #watch(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#timers.after(this.#heartbeat_s * SILENT_HEARTBEATS * 1_000, () => this.#lost());
  }

  #receive(data: string): void {
    this.#lastFrame_ms = this.#timers.now();
    if (this.#state === "live") this.#watch();
    this.#handle(parseSseFrame(data));
  }

  #handle(frame: SseFrame): void {
    switch (frame.kind) {
      case "connected":
        this.#joined(frame);
        break;
      case "step":
        this.#step(frame.step, frame.label);
        break;
      case "heartbeat":
        this.#beat(frame.cursor);
        break;
      case "resync":
        this.#resync(frame);
        break;
      case "unknown":
        this.#debug("events.frame.ignored", frame.label);
    }
  }

  #joined(frame: Extract<SseFrame, { kind: "connected" }>): void {
    this.#heartbeat_s = frame.heartbeat_s;
    if (frame.hint !== null) this.#debug("events.hint", frame.hint);
    const changed = this.cursors.epoch !== null && this.cursors.epoch !== frame.epoch;
    const missing = this.cursors.join(frame.epoch, frame.revision, this.#since, frame.cities, this.#cities);
    this.#signal("connected");
    if (missing.length > 0) this.#refetch(missing, changed ? "epoch_changed" : "missed_before_join");
  }

  #step(step: CityStep, label: string): void {
    if (step.epoch !== null && this.cursors.epoch !== null && step.epoch !== this.cursors.epoch) {
      this.cursors.reset(step.epoch);
      this.#refetch(this.#cities, "epoch_changed");
    }
    if (step.patch === null) this.#debug("events.patch.ignored", label);
    if (!this.#cities.includes(step.city)) return;
    const { steps, gap } = this.cursors.receive(step);
    if (steps.length > 0) this.#listener.onSteps(step.city, steps);
    if (gap) this.#refetch([step.city], "gap");
  }

  #beat(cursor: Cursor | number | null): void {
    const revision =
      typeof cursor === "number" ? cursor : cursor?.epoch === this.cursors.epoch ? cursor?.revision : null;
    if (typeof revision === "number") this.cursors.heartbeat(revision, this.#cities);
  }

  #resync(frame: Extract<SseFrame, { kind: "resync" }>): void {
    const named = frame.cities.filter((city) => this.#cities.includes(city));
    const cities = frame.cities.length === 0 ? this.#cities : named;
    for (const city of cities) {
      if (frame.reason === "revision_ahead") this.cursors.forget(city);
      this.cursors.invalidate(city, frame.latest_revision ?? 0);
    }
    if (cities.length > 0) this.#refetch(cities, frame.reason);
  }

  #refetch(cities: readonly string[], reason: string): void {
    this.#debug("events.resync", `${reason} ${cities.join()}`);
    this.#listener.onResync(cities, reason, true);
  }
}
