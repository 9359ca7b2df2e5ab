/** The card of one object: fetched when it is opened, and again whenever an event may have changed it. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { EarthEvent } from "../client/earth_types";
import { type Http, HttpError } from "../client/http";
import { fetchCard, type ObjectCard } from "../client/object_wire";
import type { Timers } from "../client/timers";
import { retryDelay } from "./layer";

const OBJECTS_LAYER = "interactables";

/** `gone`: its fact is no longer there. A failure keeps the card, and is retried. */
export interface ObjectView {
  readonly card: ObjectCard | null;
  readonly gone: boolean;
}

export interface ObjectDeps {
  http: Http;
  timers: Timers;
  random(): number;
}

export interface ObjectStore {
  readonly store: StoreApi<ObjectView>;
  /** An event of the log; null after a gap. */
  onEvent(event: EarthEvent | null): void;
  stop(): void;
}

/** Whether the event may concern the object. */
export function concerns(event: EarthEvent | null, layer: string, id: string): boolean {
  if (event === null) return true;
  const { layers, refresh_strategy, delta } = event.change;
  if (layers.includes(layer)) return true;
  if (!layers.includes(OBJECTS_LAYER)) return false;
  return refresh_strategy !== "delta" || delta.upsert.includes(id) || delta.remove.includes(id);
}

/** At most one fetch is under way; events during it make exactly one more. */
export function createObjectCard(deps: ObjectDeps, layer: string, feature: string): ObjectStore {
  const store = createStore<ObjectView>(() => ({ card: null, gone: false }));
  const control = new AbortController();
  let flying = false;
  let again = false;
  let failures = 0;
  let cancelRetry: () => void = () => undefined;

  async function load(): Promise<void> {
    if (control.signal.aborted) return;
    again = flying;
    if (flying) return;
    flying = true;
    cancelRetry();
    try {
      const card = await fetchCard(deps.http, layer, feature, { signal: control.signal });
      failures = 0;
      if (!control.signal.aborted) store.setState({ card, gone: false });
    } catch (error) {
      if (!control.signal.aborted) failed(error);
    }
    flying = false;
    if (again) void load();
  }

  function failed(error: unknown): void {
    if (error instanceof HttpError && error.status === 404) {
      // A server without cards answers 404 too, with another code.
      if (error.code === "unknown_object") store.setState({ gone: true });
      return;
    }
    failures += 1;
    cancelRetry = deps.timers.after(retryDelay(failures, false, deps.random()), () => void load());
  }

  void load();
  return {
    store,
    onEvent(event) {
      if (concerns(event, layer, `${layer}:${feature}`)) void load();
    },
    stop() {
      control.abort(new DOMException("closed", "AbortError"));
      cancelRetry();
    },
  };
}
