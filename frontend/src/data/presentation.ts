/** Re-exports the look of a layer for `draw`, which must not import the wire. */
export type { Late, Look, Scale, ScaleClass, Size } from "../client/presentation_wire";
export { PLAIN_LOOK } from "../client/presentation_wire";
