/**
 * The one socket of the Earth page, and of the Sources page: joins, detects silence, reconnects, and resumes from its cursor.
 * Revisions passed on rise strictly within an epoch; there is never a second open socket.
 */
import { type Backoff, createBackoff } from "./backoff";
import { type Cursor, formatCursor } from "./cursor";
import type { EarthEvent, JobRow } from "./earth_types";
import type { Timers } from "./timers";
import { type Frame, parseFrame } from "./websocket_frames";
import { SOCKET_TABLE, type SocketSignal, type SocketState } from "./websocket_states";

/** Two and a half heartbeats: one may be late, two may not. */
export const SILENCE_MS = 75_000;
/** From the first byte out to `subscribed`. */
export const JOIN_MS = 15_000;
/** After a return to the tab: how long a ping may stay without any answer. */
export const PROBE_MS = 5_000;
/** After this long live, the connection counts as healthy and the back-off is reset. */
export const HEALTHY_MS = 60_000;
/** Failures in a row after which the page shows offline instead of reconnecting. */
export const OFFLINE_AFTER = 3;

/** The part of the browser's WebSocket that is used. */
export interface SocketLike {
  send(text: string): void;
  close(): void;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
}

export interface SocketHandlers {
  onState(state: SocketState): void;
  /** Subscribed. `resumed` is false when nothing before this moment was promised: what is shown must be checked. */
  onJoined(resumed: boolean): void;
  onEvent(event: EarthEvent): void;
  onJob(job: JobRow): void;
  /** Sources were declared otherwise: the list of layers of this revision is another one. */
  onLayers(revision: number): void;
  /** The unbroken run ended; everything shown must be fetched again. */
  onResync(reason: string): void;
}

export interface SocketDeps {
  open(): SocketLike;
  timers: Timers;
  handlers: SocketHandlers;
  /** All of them unless said otherwise. */
  channels?: readonly Channel[];
  backoff?: Backoff;
  debug?: (message: string, detail: unknown) => void;
}

export interface EarthSocket {
  start(): void;
  stop(): void;
  /** The tab is visible again, or the network is back: check now whether the connection is alive. */
  wake(): void;
  readonly state: SocketState;
  readonly cursor: Cursor | null;
}

export const CHANNELS = ["earth_updates", "datasource_tasks"] as const;
export type Channel = (typeof CHANNELS)[number];

export function createEarthSocket(deps: SocketDeps): EarthSocket {
  const { timers, handlers, channels = CHANNELS } = deps;
  const backoff = deps.backoff ?? createBackoff();
  const debug = deps.debug ?? ((message, detail) => console.debug(message, detail));
  let state: SocketState = "idle";
  let socket: SocketLike | null = null;
  let cancelRetry: () => void = () => undefined;
  let cancelWatch: () => void = () => undefined;
  let deadline = 0;
  let liveSince: number | null = null;
  let failures = 0;
  let epoch: string | null = null;
  let cursor: Cursor | null = null;
  let asked: Cursor | null = null;

  function move(signal: SocketSignal): void {
    const next = SOCKET_TABLE[state][signal];
    if (next === state) return;
    state = next;
    handlers.onState(state);
  }

  function drop(gently = false): void {
    cancelWatch();
    const old = socket;
    socket = null;
    if (old === null) return;
    old.onmessage = old.onclose = null;
    // Browsers report an error when a socket is closed before it opened: a page left that early lets it open first.
    const early = gently && state === "connecting";
    old.onopen = early ? () => old.close() : null;
    if (!early) old.close();
  }

  /** One timer for all deadlines: it is moved by comparing, not by being set again with each frame. */
  function watch(limit_ms: number): void {
    deadline = timers.now() + limit_ms;
    cancelWatch();
    cancelWatch = timers.after(limit_ms, check);
  }

  function check(): void {
    const left = deadline - timers.now();
    if (left > 0) cancelWatch = timers.after(left, check);
    else lost();
  }

  function lost(): void {
    drop();
    if (liveSince !== null && timers.now() - liveSince >= HEALTHY_MS) backoff.reset();
    failures = liveSince === null ? failures + 1 : 1;
    liveSince = null;
    move(failures >= OFFLINE_AFTER ? "failing" : "closed");
    cancelRetry = timers.after(backoff.next(), retry);
  }

  function retry(): void {
    cancelRetry();
    move("retry");
    connect();
  }

  function connect(): void {
    watch(JOIN_MS);
    const opened = deps.open();
    socket = opened;
    opened.onopen = subscribe;
    opened.onmessage = (event: { data: unknown }) => receive(event.data);
    opened.onclose = lost;
  }

  function subscribe(): void {
    asked = cursor;
    move("opened");
    const since =
      cursor && channels.includes("earth_updates") ? { since: { earth_updates: formatCursor(cursor) } } : {};
    socket?.send(JSON.stringify({ subscribe: channels, ...since }));
  }

  function receive(data: unknown): void {
    if (state === "live") deadline = timers.now() + SILENCE_MS;
    const frame = parseFrame(data);
    if (frame.kind === "unknown" || frame.kind === "error") debug("frame ignored", frame);
    else act(frame);
  }

  function act(frame: Exclude<Frame, { kind: "unknown" | "error" }>): void {
    switch (frame.kind) {
      case "connected":
        enterEpoch(frame.epoch);
        break;
      case "subscribed":
        joined(frame.head);
        break;
      case "event":
        take(frame.event);
        break;
      case "job":
        handlers.onJob(frame.job);
        break;
      case "heartbeat":
        advance(frame.cursor);
        break;
      case "layers":
        handlers.onLayers(frame.revision);
        break;
      case "resync":
        resync(frame.channel, frame.reason);
        break;
    }
  }

  function enterEpoch(next: string | null): void {
    if (next === null) return;
    const changed = epoch !== null && epoch !== next;
    epoch = next;
    if (!changed) return;
    cursor = null;
    handlers.onResync("epoch_changed");
  }

  function joined(head: Cursor | number | null): void {
    if (state !== "joining") return;
    const resumed = asked !== null && cursor !== null;
    failures = 0;
    liveSince = timers.now();
    watch(SILENCE_MS);
    move("subscribed");
    // Nothing older than this head will come by itself, so it is where the next connection resumes.
    if (!resumed) advance(typeof head === "number" ? (epoch === null ? null : { epoch, revision: head }) : head);
    handlers.onJoined(resumed);
  }

  function advance(to: Cursor | null): void {
    if (to === null || (epoch !== null && to.epoch !== epoch)) return;
    if (cursor === null || to.revision > cursor.revision) cursor = to;
  }

  function take(event: EarthEvent): void {
    enterEpoch(event.epoch);
    if (cursor !== null && event.revision <= cursor.revision) return;
    cursor = { epoch: event.epoch, revision: event.revision };
    handlers.onEvent(event);
  }

  function resync(channel: string | null, reason: string): void {
    // Jobs are whole rows: the list is read again with everything else, no cursor of theirs is lost.
    if (channel !== "datasource_tasks") cursor = null;
    handlers.onResync(reason);
  }

  function probe(): void {
    socket?.send(JSON.stringify({ ping: 1 }));
    watch(Math.min(PROBE_MS, deadline - timers.now()));
  }

  return {
    start() {
      if (state !== "idle") return;
      move("start");
      connect();
    },
    stop() {
      drop(true);
      cancelRetry();
      liveSince = null;
      move("stop");
    },
    wake() {
      if (state === "waiting" || state === "offline") retry();
      else if (state === "live" && timers.now() >= deadline) lost();
      else if (state === "live") probe();
    },
    get state() {
      return state;
    },
    get cursor() {
      return cursor;
    },
  };
}

/** The browser's socket on this page's own origin. */
export function openSocket(place: { protocol: string; host: string }): SocketLike {
  return new WebSocket(`${place.protocol === "https:" ? "wss" : "ws"}://${place.host}/ws`) as unknown as SocketLike;
}
