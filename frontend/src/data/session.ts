/** What this visitor may do and what the server runs; refreshed until the server answers. */
import { createStore, type StoreApi } from "zustand/vanilla";
import { type Backoff, createBackoff } from "../client/backoff";
import { type Http, HttpError } from "../client/http";
import {
  fetchSession,
  type Half,
  loginCode,
  type Role,
  type SessionInfo,
  signIn,
  signOut,
} from "../client/session_wire";

export type SessionPhase = "loading" | "ready" | "unreachable";

export interface SessionState {
  phase: SessionPhase;
  signed_in: boolean;
  who: string | null;
  role: Role | null;
  /** Whether the visitor may run and stop jobs and set sources: signed in as operator or admin. */
  may_operate: boolean;
  simulated: boolean;
  halves: readonly Half[];
  version: string;
  /** The disk budget is nearly used up, or more than that; null when all is well, and for strangers. */
  disk: "near" | "over" | null;
  /** Why the one-time code of the address was refused, or null. */
  code_refused: string | null;
}

export interface SessionDeps {
  http: Http;
  setTimer: (callback: () => void, delay_ms: number) => unknown;
  clearTimer: (timer: never) => void;
  backoff?: Backoff;
}

export interface Session {
  store: StoreApi<SessionState>;
  /** Reads the address once, then the session; resolves after the first answer or failure. */
  start(hash: string, dropHash: () => void): Promise<void>;
  /** Rejects with HttpError when the token is wrong. */
  signInWithToken(token: string): Promise<void>;
  signOut(): Promise<void>;
  refresh(): Promise<void>;
  stop(): void;
}

const START: SessionState = {
  phase: "loading",
  signed_in: false,
  who: null,
  role: null,
  may_operate: false,
  simulated: false,
  halves: ["earth", "terminal"],
  version: "",
  disk: null,
  code_refused: null,
};

function known(info: SessionInfo): Partial<SessionState> {
  const halves = (info.halves ?? []).filter((half): half is Half => half === "earth" || half === "terminal");
  return {
    phase: "ready",
    signed_in: Boolean(info.signed_in),
    who: info.who ?? null,
    role: info.role ?? null,
    may_operate: info.role === "operator" || info.role === "admin",
    simulated: Boolean(info.simulated),
    disk: info.disk === "near" || info.disk === "over" ? info.disk : null,
    halves: halves.length > 0 ? halves : START.halves,
    version: info.version ?? "",
  };
}

export function createSession({ http, setTimer, clearTimer, backoff = createBackoff() }: SessionDeps): Session {
  const store = createStore<SessionState>(() => START);
  let timer: unknown = null;
  let stopped = false;

  async function refresh(): Promise<void> {
    try {
      store.setState(known(await fetchSession(http)));
      backoff.reset();
    } catch {
      store.setState({ phase: "unreachable" });
      if (stopped) return;
      if (timer !== null) clearTimer(timer as never);
      timer = setTimer(() => void refresh(), backoff.next());
    }
  }

  async function redeem(code: string, dropHash: () => void): Promise<void> {
    try {
      await signIn(http, { code });
    } catch (error) {
      store.setState({ code_refused: error instanceof HttpError ? error.code : "unreachable" });
    } finally {
      // The code is valid once: it must not stay in the address or in the history.
      dropHash();
    }
  }

  return {
    store,
    async start(hash, dropHash) {
      const code = loginCode(hash);
      if (code) await redeem(code, dropHash);
      await refresh();
    },
    async signInWithToken(token) {
      await signIn(http, { token });
      await refresh();
    },
    async signOut() {
      await signOut(http);
      await refresh();
    },
    refresh,
    stop() {
      stopped = true;
      if (timer !== null) clearTimer(timer as never);
    },
  };
}
