/** Search while typing: only the answer to the last query is shown, whatever order the answers arrive in. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { Http } from "../client/http";
import { type Found, fetchSearch } from "../client/object_wire";
import type { Timers } from "../client/timers";
import { errorCode } from "./layer";

/** The pause in typing after which the query is sent. */
export const PAUSE_MS = 120;

export type SearchPhase = "idle" | "asking" | "ready" | "failed";

export interface SearchView {
  readonly question: string;
  readonly phase: SearchPhase;
  /** The previous results stay until the next ones arrive. */
  readonly found: readonly Found[];
  /** The chosen line. */
  readonly at: number;
  readonly error: string | null;
}

export interface Search {
  readonly store: StoreApi<SearchView>;
  ask(question: string): void;
  /** Moves the chosen line, round and round. */
  move(step: 1 | -1): void;
  stop(): void;
}

const EMPTY: SearchView = { question: "", phase: "idle", found: [], at: 0, error: null };

/** There is something to look for: a letter or a digit of any script. */
function hasWords(question: string): boolean {
  return /[\p{L}\p{N}]/u.test(question);
}

export function createSearch(http: Http, timers: Timers): Search {
  const store = createStore<SearchView>(() => EMPTY);
  let control = new AbortController();
  let cancelAsk: () => void = () => undefined;

  function drop(): void {
    cancelAsk();
    control.abort(new DOMException("another question", "AbortError"));
  }

  async function send(question: string, signal: AbortSignal): Promise<void> {
    try {
      const found = await fetchSearch(http, question, { signal });
      if (!signal.aborted) store.setState({ phase: "ready", found, at: 0, error: null });
    } catch (error) {
      if (!signal.aborted) store.setState({ phase: "failed", found: [], at: 0, error: errorCode(error) });
    }
  }

  return {
    store,
    ask(question) {
      drop();
      if (!hasWords(question)) {
        store.setState({ ...EMPTY, question });
        return;
      }
      control = new AbortController();
      const { signal } = control;
      store.setState({ question, phase: "asking" });
      cancelAsk = timers.after(PAUSE_MS, () => void send(question.trim(), signal));
    },
    move(step) {
      const { found, at } = store.getState();
      if (found.length > 0) store.setState({ at: (at + step + found.length) % found.length });
    },
    stop: drop,
  };
}
