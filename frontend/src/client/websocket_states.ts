/** The states of the Earth socket and every move between them; an event that a state does not name changes nothing. */

export const SOCKET_STATES = ["idle", "connecting", "joining", "live", "waiting", "offline"] as const;
export type SocketState = (typeof SOCKET_STATES)[number];

export const SOCKET_SIGNALS = ["start", "opened", "subscribed", "closed", "failing", "retry", "stop"] as const;
/** `closed`: the socket ended or fell silent. `failing`: it did so too often in a row. `retry`: the wait is over. */
export type SocketSignal = (typeof SOCKET_SIGNALS)[number];

type Table = Readonly<Record<SocketState, Readonly<Record<SocketSignal, SocketState>>>>;

function row(from: SocketState, moves: Partial<Record<SocketSignal, SocketState>>): Record<SocketSignal, SocketState> {
  const stay = Object.fromEntries(SOCKET_SIGNALS.map((signal) => [signal, from])) as Record<SocketSignal, SocketState>;
  return { ...stay, stop: "idle", ...moves };
}

/** A socket exists exactly in `connecting`, `joining` and `live`; a retry timer exactly in `waiting` and `offline`. */
export const SOCKET_TABLE: Table = {
  idle: row("idle", { start: "connecting" }),
  connecting: row("connecting", { opened: "joining", closed: "waiting", failing: "offline" }),
  joining: row("joining", { subscribed: "live", closed: "waiting", failing: "offline" }),
  live: row("live", { closed: "waiting", failing: "offline" }),
  waiting: row("waiting", { retry: "connecting" }),
  offline: row("offline", { retry: "connecting" }),
};

export function hasSocket(state: SocketState): boolean {
  return state === "connecting" || state === "joining" || state === "live";
}
