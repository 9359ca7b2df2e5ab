/** The layers of the golden example, as the page reads them off the wire. */
import type { LayerInfo } from "../client/earth_types";
import { createHttp } from "../client/http";
import { fetchLayers } from "../client/layer_wire";
import { jsonResponse } from "./clock";

interface Example {
  items: readonly Record<string, unknown>[];
}

const found = import.meta.glob<Example>("../../../spec/examples/layers.v1.json", { import: "default", eager: true });

/** As the server sends it. */
export const LAYERS_EXAMPLE = Object.values(found)[0] as Example;

/** What the page makes of such an answer. */
export async function readLayers(body: unknown): Promise<readonly LayerInfo[]> {
  return (await fetchLayers(createHttp(async () => jsonResponse(body)))).layers;
}

const infos = await readLayers(LAYERS_EXAMPLE);

export function layerOf(id: string): LayerInfo {
  const info = infos.find((each) => each.id === id);
  if (!info) throw new Error(`no layer ${id} in the golden example`);
  return info;
}
