/** The propagation worker: holds the element sets, answers ticks. All arithmetic lies in `propagation`. */
import { type ElementSet, loadElements, propagateAll } from "./propagation";
import type { FromWorker, LayerPositions, ToWorker } from "./propagation_messages";

export interface WorkerState {
  readonly sets: Map<string, { version: number; set: ElementSet }>;
}

/** The buffer of a former answer if one fits exactly, else a new one. */
function bufferFor(length_bytes: number, spare: ArrayBuffer[]): ArrayBuffer {
  const index = spare.findIndex((buffer) => buffer.byteLength === length_bytes);
  return spare.splice(index, index < 0 ? 0 : 1)[0] ?? new ArrayBuffer(length_bytes);
}

/** Applies one message; gives the answer to a tick, null for the others. */
export function handle(state: WorkerState, message: ToWorker): FromWorker | null {
  if (message.type === "load") {
    state.sets.set(message.layer, { version: message.version, set: loadElements(message.records) });
    return null;
  }
  if (message.type === "drop") {
    state.sets.delete(message.layer);
    return null;
  }
  const layers: LayerPositions[] = [];
  for (const [layer, { version, set }] of state.sets) {
    const buffer = bufferFor(set.satrecs.length * 12, message.spare);
    const missing = propagateAll(set, message.at_ms, new Float32Array(buffer));
    layers.push({ layer, version, buffer, missing, bad: set.bad });
  }
  return { type: "positions", at_ms: message.at_ms, layers };
}

const scope = globalThis as unknown as {
  document?: unknown;
  postMessage(message: FromWorker, transfer: ArrayBuffer[]): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};

// Only inside a worker is there a global without a document that takes messages; tests import `handle` alone.
if (scope.document === undefined && "WorkerGlobalScope" in globalThis) {
  const state: WorkerState = { sets: new Map() };
  scope.onmessage = ({ data }) => {
    const answer = handle(state, data);
    if (answer) {
      const buffers = answer.layers.map((layer) => layer.buffer);
      scope.postMessage(answer, buffers);
    }
  };
}
