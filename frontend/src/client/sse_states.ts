/** The states of the observation stream and every move between them; a signal that changes nothing names its own state. */

export const STREAM_STATES = ["idle", "preparing", "connecting", "live", "waiting", "offline"] as const;
/** `preparing`: fetching the snapshots with the start positions. `waiting`: between attempts. `offline`: many failed. */
export type StreamState = (typeof STREAM_STATES)[number];

export const STREAM_SIGNALS = ["want", "begin", "connected", "lost", "failing", "retry", "stop"] as const;
/** `want`: the set of cities changed and is not empty. `stop`: nothing is wanted. `failing`: lost too often in a row. */
export type StreamSignal = (typeof STREAM_SIGNALS)[number];

export type StreamTable = Readonly<Record<StreamState, Readonly<Record<StreamSignal, StreamState>>>>;

/** A source is open exactly in `connecting` and `live`; a retry timer runs exactly in `waiting` and `offline`. */
export const STREAM_TABLE: StreamTable = {
  idle: {
    want: "preparing",
    begin: "idle",
    connected: "idle",
    lost: "idle",
    failing: "idle",
    retry: "idle",
    stop: "idle",
  },
  preparing: {
    want: "preparing",
    begin: "connecting",
    connected: "preparing",
    lost: "preparing",
    failing: "preparing",
    retry: "preparing",
    stop: "idle",
  },
  connecting: {
    want: "preparing",
    begin: "connecting",
    connected: "live",
    lost: "waiting",
    failing: "offline",
    retry: "connecting",
    stop: "idle",
  },
  live: {
    want: "preparing",
    begin: "live",
    connected: "live",
    lost: "waiting",
    failing: "offline",
    retry: "live",
    stop: "idle",
  },
  waiting: {
    want: "preparing",
    begin: "waiting",
    connected: "waiting",
    lost: "waiting",
    failing: "offline",
    retry: "connecting",
    stop: "idle",
  },
  offline: {
    want: "preparing",
    begin: "offline",
    connected: "offline",
    lost: "offline",
    failing: "offline",
    retry: "connecting",
    stop: "idle",
  },
};

export function hasSource(state: StreamState): boolean {
  return state === "connecting" || state === "live";
}
