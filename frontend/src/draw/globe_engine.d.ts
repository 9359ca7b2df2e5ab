import "@cesium/engine";

/** Given out by the engine, and left out of its type declarations. */
declare module "@cesium/engine" {
  export const _shadersPolylineCommon: string;
}
