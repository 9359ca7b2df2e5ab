/** The Earth page's state: the registry, one store a layer, the jobs, and the socket that keeps them current. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { EarthEvent, LayerInfo } from "../client/earth_types";
import type { Http } from "../client/http";
import { fetchLayers, fetchSnapshot } from "../client/layer_wire";
import { fetchObjects } from "../client/object_wire";
import type { Timers } from "../client/timers";
import { createEarthSocket, type SocketLike } from "../client/websocket";
import type { SocketState } from "../client/websocket_states";
import { createJobs, type Jobs } from "./jobs";
import { createLayer, errorCode, type Layer, retryDelay } from "./layer";

/** The page does not wait longer than this for the socket before it loads: it must work where sockets are blocked. */
export const FIRST_LOAD_MS = 1_500;
/** After an event the registry's counts and times are read again, at most this often. */
export const REGISTRY_MS = 2_000;
/** Times of success move without events too: an unchanged body is a success that changes nothing. */
export const REGISTRY_IDLE_MS = 30_000;

/** While the server that answers does not know yet what another one told. */
export const REGISTRY_BEHIND_MS = 500;

/** Layers of this kind (such as search) are neither listed nor drawn, and loaded only when shown. */
export const META = "meta";

/** An event, or null when some may have been missed. */
export type EarthListener = (event: EarthEvent | null) => void;

export interface Notice {
  /** Stable per cause, so that a storm of failures is one message. */
  readonly key: string;
  readonly layer: string;
  /** Null withdraws the message. */
  readonly code: string | null;
}

export interface EarthView {
  readonly connection: SocketState;
  /** Whether the socket was live at any time since the page was opened. */
  readonly was_live: boolean;
  readonly live_since_ms: number | null;
  readonly registry: "loading" | "ready" | "failed";
  readonly registry_error: string | null;
  readonly layers: readonly LayerInfo[];
  readonly last_event_ms: number | null;
}

export interface EarthDeps {
  http: Http;
  open(): SocketLike;
  timers: Timers;
  random(): number;
  onNotice(notice: Notice): void;
  /** Layers that the person switched off earlier. */
  hidden?: readonly string[];
}

export interface Earth {
  readonly store: StoreApi<EarthView>;
  readonly jobs: Jobs;
  /** Null until the registry named it. */
  layer(id: string): Layer | null;
  setVisible(id: string, visible: boolean): void;
  /** Returns a function that unsubscribes. */
  listen(listener: EarthListener): () => void;
  start(): void;
  wake(): void;
  stop(): void;
}

const START: EarthView = {
  connection: "idle",
  was_live: false,
  live_since_ms: null,
  registry: "loading",
  registry_error: null,
  layers: [],
  last_event_ms: null,
};

export function createEarth(deps: EarthDeps): Earth {
  const { http, timers, random } = deps;
  const store = createStore<EarthView>(() => START);
  const layers = new Map<string, Layer>();
  const hidden = new Set(deps.hidden);
  const listeners = new Set<EarthListener>();
  const jobs = createJobs({ http, timers, random });
  const socket = createEarthSocket({
    open: deps.open,
    timers,
    handlers: { onState, onJoined, onEvent, onJob: jobs.take, onLayers, onResync },
  });
  let stopped = false;
  let opened = false;
  let cancelFirst: () => void = () => undefined;
  let cancelRegistry: () => void = () => undefined;
  let failures = 0;
  let wanted = 0;

  function onState(connection: SocketState): void {
    const live = connection === "live";
    store.setState({
      connection,
      was_live: live || store.getState().was_live,
      live_since_ms: live ? timers.now() : null,
    });
    // The socket does not connect: load without it; it catches up later.
    if (connection === "waiting" || connection === "offline") openLayers();
  }

  function onJoined(resumed: boolean): void {
    wanted = 0;
    readRegistrySoon(REGISTRY_MS); // it may have changed while nobody told
    if (!opened) {
      openLayers();
      return;
    }
    void jobs.reload();
    if (!resumed) refreshAll(false);
  }

  function onEvent(event: EarthEvent): void {
    store.setState({ last_event_ms: timers.now() });
    for (const id of event.change.layers) layers.get(id)?.apply(event);
    for (const listener of listeners) listener(event);
    readRegistrySoon(REGISTRY_MS);
  }

  /** Another process may answer than the one that told it: the list is read until it is as new. */
  function onLayers(revision: number): void {
    wanted = revision;
    readRegistrySoon(0);
  }

  function onResync(): void {
    refreshAll(true);
    void jobs.reload();
    readRegistrySoon(REGISTRY_MS);
  }

  function refreshAll(bypass: boolean): void {
    for (const layer of layers.values()) layer.refresh(bypass);
    for (const listener of listeners) listener(null);
  }

  /** The first load, once: after the join, so that no event is lost between snapshot and subscription. */
  function openLayers(): void {
    if (opened || stopped) return;
    opened = true;
    cancelFirst();
    void readRegistry();
    void jobs.reload();
  }

  let readDue = Number.POSITIVE_INFINITY;

  function readRegistrySoon(delay_ms: number): void {
    const due = timers.now() + delay_ms;
    if (stopped || !opened || due >= readDue) return;
    cancelRegistry();
    readDue = due;
    cancelRegistry = timers.after(delay_ms, () => void readRegistry());
  }

  async function readRegistry(): Promise<void> {
    readDue = Number.POSITIVE_INFINITY;
    try {
      const { layers: infos, revision } = await fetchLayers(http);
      if (stopped) return;
      failures = 0;
      for (const info of infos) meet(info);
      if (revision >= wanted) part(new Set(infos.map(({ id }) => id)));
      const drawn = infos.filter(({ kind }) => kind !== META);
      store.setState({ registry: "ready", registry_error: null, layers: drawn });
      readRegistrySoon(revision < wanted ? REGISTRY_BEHIND_MS : REGISTRY_IDLE_MS);
    } catch (error) {
      if (stopped) return;
      failures += 1;
      store.setState({ registry: "failed", registry_error: errorCode(error) });
      readRegistrySoon(retryDelay(failures, false, random()));
    }
  }

  /** A layer is known from the registry alone: a new one needs no code here. */
  function meet({ id, kind }: LayerInfo): void {
    if (layers.has(id)) return;
    const layer = createLayer(id, {
      fetch: (name, options) => fetchSnapshot(http, name, options),
      fetchObjects: (ids, options) => fetchObjects(http, ids, options),
      timers,
      random,
      onNotice: (name, code) => deps.onNotice({ key: `layer:${name}`, layer: name, code }),
    });
    layers.set(id, layer);
    if (kind !== META && !hidden.has(id)) layer.setVisible(true);
  }

  /** Layers that the registry no longer names are gone. */
  function part(named: ReadonlySet<string>): void {
    for (const [id, layer] of layers) {
      if (named.has(id)) continue;
      layer.setVisible(false);
      layers.delete(id);
    }
  }

  return {
    store,
    jobs,
    layer: (id) => layers.get(id) ?? null,
    setVisible(id, visible) {
      if (visible) hidden.delete(id);
      else hidden.add(id);
      layers.get(id)?.setVisible(visible);
    },
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start() {
      cancelFirst = timers.after(FIRST_LOAD_MS, openLayers);
      socket.start();
    },
    wake: () => socket.wake(),
    stop() {
      stopped = true;
      socket.stop();
      jobs.stop();
      cancelFirst();
      cancelRegistry();
      for (const layer of layers.values()) layer.stop();
    },
  };
}
