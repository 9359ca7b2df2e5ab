/** The page's side of the propagation worker: at most one tick is in flight, then the newest request. */
import type { FromWorker, LayerPositions, ToWorker } from "./propagation_messages";

export interface WorkerLike {
  postMessage(message: ToWorker, transfer: Transferable[]): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

export interface Propagator {
  /** Replaces the layer's elements. Positions of an older `version` are never passed on afterwards. */
  load(layer: string, version: number, records: readonly unknown[]): void;
  drop(layer: string): void;
  tick(at_ms: number): void;
  stop(): void;
}

export interface PropagatorEvents {
  /** The buffer is on loan: it goes back to the worker when the call returns. */
  onPositions(positions: LayerPositions, at_ms: number): void;
  onError(reason: string): void;
}

export function createPropagator(worker: WorkerLike, events: PropagatorEvents): Propagator {
  const versions = new Map<string, number>();
  let busy = false;
  let wanted_ms: number | null = null;
  let spare: ArrayBuffer[] = [];

  function send(at_ms: number): void {
    busy = true;
    const buffers = spare;
    spare = [];
    worker.postMessage({ type: "tick", at_ms, spare: buffers }, buffers);
  }

  worker.onmessage = ({ data }) => {
    busy = false;
    for (const layer of data.layers) {
      if (versions.get(layer.layer) === layer.version) events.onPositions(layer, data.at_ms);
      spare.push(layer.buffer);
    }
    if (wanted_ms === null) return;
    const next = wanted_ms;
    wanted_ms = null;
    send(next);
  };
  worker.onerror = (event) => {
    busy = false;
    events.onError(event.message || "worker failed");
  };

  return {
    load(layer, version, records) {
      versions.set(layer, version);
      worker.postMessage({ type: "load", layer, version, records }, []);
    },
    drop(layer) {
      versions.delete(layer);
      worker.postMessage({ type: "drop", layer }, []);
    },
    tick(at_ms) {
      if (versions.size === 0) return;
      if (busy) wanted_ms = at_ms;
      else send(at_ms);
    },
    stop() {
      worker.onmessage = null;
      worker.onerror = null;
      worker.terminate();
    },
  };
}
