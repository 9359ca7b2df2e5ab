/** One layer as the page sees it: carries out the decisions of `layer_core` and holds the objects. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { Delta, EarthEvent, Feature, LayerState, Snapshot } from "../client/earth_types";
import { HttpError, NetworkError } from "../client/http";
import type { Timers } from "../client/timers";
import { type LayerEffect, type LayerInput, type LayerModel, NEW_LAYER, step } from "./layer_core";

/** `idle`: never asked for. `failed`: the last fetch failed and another is due; objects may still be there. */
export type LayerPhase = "idle" | "loading" | "ready" | "failed";

export interface LayerView {
  readonly visible: boolean;
  readonly phase: LayerPhase;
  readonly features: readonly Feature[];
  /** Rises whenever `features` changes. */
  readonly version: number;
  /** Rows the layer has on the server; above `features.length` only when the body was cut. */
  readonly total: number;
  /** Null before the first snapshot: an unknown count is not zero. */
  readonly count: number | null;
  readonly state: LayerState | null;
  readonly generated_at: string | null;
  readonly revision: number | null;
  readonly error: string | null;
}

export interface LayerDeps {
  fetch(layer: string, options: { bypass: boolean; signal: AbortSignal }): Promise<Snapshot>;
  /** Those of the objects that still exist; without it deltas reload. */
  fetchObjects?(ids: readonly string[], options: { signal: AbortSignal }): Promise<readonly Feature[]>;
  timers: Timers;
  random(): number;
  /** A failure for a light notice; null withdraws it. */
  onNotice(layer: string, code: string | null): void;
}

export interface Layer {
  readonly id: string;
  readonly store: StoreApi<LayerView>;
  setVisible(visible: boolean): void;
  apply(event: EarthEvent): void;
  refresh(bypass: boolean): void;
  stop(): void;
}

const EMPTY: LayerView = {
  visible: false,
  phase: "idle",
  features: [],
  version: 0,
  total: 0,
  count: null,
  state: null,
  generated_at: null,
  revision: null,
  error: null,
};

/** First wait after a failure; doubled each time, with jitter, up to half a minute. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MOST_MS = 30_000;
/** First wait for a snapshot that is older than its own event. */
const STALE_FIRST_MS = 100;

export function retryDelay(attempt: number, quick: boolean, random: number): number {
  const base = quick ? STALE_FIRST_MS : RETRY_FIRST_MS;
  const top = Math.min(RETRY_MOST_MS, base * 2 ** Math.min(attempt, 10));
  return Math.round(top / 2 + (random * top) / 2);
}

export function errorCode(error: unknown): string {
  if (error instanceof HttpError) return error.code;
  if (error instanceof NetworkError) return error.timed_out ? "timeout" : "unreachable";
  return "failed";
}

function same(view: LayerView, snapshot: Snapshot): boolean {
  return (
    view.count !== null &&
    view.revision === snapshot.revision &&
    view.generated_at === snapshot.generated_at &&
    view.features.length === snapshot.features.length
  );
}

export function createLayer(id: string, deps: LayerDeps): Layer {
  const store = createStore<LayerView>(() => EMPTY);
  let model: LayerModel = NEW_LAYER;
  let abort: AbortController | null = null;
  let cancelRetry: () => void = () => undefined;
  let arrived: Snapshot | null = null;
  let patch: { delta: Delta; features: readonly Feature[] } | null = null;

  function dispatch(input: LayerInput): void {
    const [next, effects] = step(model, input);
    model = next;
    for (const effect of effects) run(effect);
    if (model.flight !== null && store.getState().phase !== "failed") store.setState({ phase: "loading" });
  }

  /** The layer is hidden: no spinner and no failure remain. */
  function rest(): void {
    store.setState({ phase: store.getState().count === null ? "idle" : "ready", error: null });
    deps.onNotice(id, null);
  }

  function run(effect: LayerEffect): void {
    switch (effect.type) {
      case "clear":
        clear();
        break;
      case "fetch":
        void load(effect.flight, effect.bypass);
        break;
      case "fetch_delta":
        void loadDelta(effect.flight, effect.delta);
        break;
      case "patch":
        applyPatch();
        break;
      case "abort":
        abort?.abort(new DOMException("no longer wanted", "AbortError"));
        break;
      case "apply":
        show();
        break;
      case "retry":
        cancelRetry = deps.timers.after(retryDelay(effect.attempt, effect.quick, deps.random()), due);
        return;
      case "cancel_retry":
        cancelRetry();
        break;
      case "complain":
        store.setState({ phase: "failed", error: effect.code });
        deps.onNotice(id, effect.code);
        break;
      case "settle":
        store.setState({ phase: "ready", error: null });
        deps.onNotice(id, null);
        break;
    }
  }

  function clear(): void {
    const { version } = store.getState();
    store.setState({ features: [], count: 0, total: 0, version: version + 1, revision: null, generated_at: null });
  }

  function show(): void {
    const view = store.getState();
    if (arrived === null) return;
    if (same(view, arrived)) {
      store.setState({ state: arrived.state });
      return;
    }
    const { features, total, state, generated_at, revision } = arrived;
    store.setState({
      features,
      count: features.length,
      total,
      state,
      generated_at,
      revision,
      version: view.version + 1,
    });
  }

  function applyPatch(): void {
    if (patch === null) return;
    const view = store.getState();
    const kept = new Map(view.features.map((feature) => [feature.id, feature]));
    // A named object that is missing in the answer was deleted.
    for (const id of [...patch.delta.remove, ...patch.delta.upsert]) kept.delete(id);
    for (const feature of patch.features) kept.set(feature.id, feature);
    const features = [...kept.values()];
    const total = Math.max(features.length, view.total + features.length - view.features.length);
    store.setState({ features, count: features.length, total, version: view.version + 1, revision: model.shown });
  }

  async function loadDelta(flight: number, delta: Delta): Promise<void> {
    const control = new AbortController();
    abort = control;
    try {
      const features = (await deps.fetchObjects?.(delta.upsert, { signal: control.signal })) ?? [];
      if (control.signal.aborted) return;
      patch = { delta, features };
      dispatch({ type: "patched", flight });
    } catch (error) {
      if (!control.signal.aborted) dispatch({ type: "failed", flight, code: errorCode(error) });
    } finally {
      patch = null;
    }
  }

  async function load(flight: number, bypass: boolean): Promise<void> {
    const control = new AbortController();
    abort = control;
    let snapshot: Snapshot;
    try {
      snapshot = await deps.fetch(id, { bypass, signal: control.signal });
    } catch (error) {
      if (!control.signal.aborted) dispatch({ type: "failed", flight, code: errorCode(error) });
      return;
    }
    if (control.signal.aborted) return;
    arrived = snapshot;
    dispatch({ type: "loaded", flight, epoch: snapshot.epoch, revision: snapshot.revision });
    arrived = null;
  }

  function due(): void {
    dispatch({ type: "due" });
  }

  return {
    id,
    store,
    setVisible(visible) {
      if (visible === model.visible) return;
      store.setState({ visible });
      dispatch({ type: visible ? "show" : "hide" });
      if (!visible) rest();
    },
    apply({ epoch, revision, prev_revision, change }) {
      const delta = deps.fetchObjects && change.delta;
      dispatch({ type: "event", epoch, revision, prev_revision, strategy: change.refresh_strategy, delta });
    },
    refresh(bypass) {
      dispatch({ type: "refresh", bypass });
    },
    stop() {
      dispatch({ type: "hide" });
      rest();
    },
  };
}
