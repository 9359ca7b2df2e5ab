/** What a layer's server declares of its look, for those who draw and know no wire. */
export type { Late, Look, Scale, ScaleClass, Size } from "../client/presentation_wire";
export { PLAIN_LOOK } from "../client/presentation_wire";
