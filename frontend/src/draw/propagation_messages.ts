/** Messages between the page and its propagation worker. Position buffers are transferred, not copied. */
import type { BadElement } from "./propagation";

export type ToWorker =
  | { type: "load"; layer: string; version: number; records: readonly unknown[] }
  | { type: "drop"; layer: string }
  /** Positions of every loaded layer at this time. `spare` are buffers to write into. */
  | { type: "tick"; at_ms: number; spare: ArrayBuffer[] };

export interface LayerPositions {
  layer: string;
  version: number;
  /** Three float32 a record: metres, Earth-fixed; NaN for no position. */
  buffer: ArrayBuffer;
  /** Records without a position at this time, the unusable ones included. */
  missing: number;
  bad: readonly BadElement[];
}

export interface FromWorker {
  type: "positions";
  at_ms: number;
  layers: LayerPositions[];
}
