/** The Earth's surface: outlines drawn tile by tile in our own colours, from one packaged file, without a tile server. */
import { type Credit, Event, GeographicTilingScheme, ImageryLayer, type ImageryProvider } from "@cesium/engine";
import topologyUrl from "world-atlas/countries-50m.json?url";
import { type Basemap, buildBasemap, type Topology } from "./basemap";
import { drawTile } from "./basemap_tile";

const TILE_PX = 512;
/** About 600 m a pixel at the equator: finer than the outlines are. */
const MOST_LEVEL = 6;

/** The packaged outlines. Rejects when the file cannot be had; the globe then shows its graticule alone. */
export async function loadBasemap(signal: AbortSignal): Promise<Basemap> {
  const response = await fetch(topologyUrl, { signal });
  if (!response.ok) throw new Error(`the map file answers ${response.status}`);
  return buildBasemap((await response.json()) as Topology);
}

/** Cesium takes any object of this shape; the class of that name only throws. */
function provider(map: Basemap | null): ImageryProvider {
  const tilingScheme = new GeographicTilingScheme();
  const shape = {
    tileWidth: TILE_PX,
    tileHeight: TILE_PX,
    minimumLevel: 0,
    maximumLevel: MOST_LEVEL,
    tilingScheme,
    rectangle: tilingScheme.rectangle,
    tileDiscardPolicy: undefined,
    errorEvent: new Event(),
    credit: undefined as Credit | undefined,
    proxy: undefined,
    hasAlphaChannel: false,
    getTileCredits: () => [],
    pickFeatures: () => undefined,
    async requestImage(x: number, y: number, level: number): Promise<HTMLCanvasElement> {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = TILE_PX;
      const pen = canvas.getContext("2d", { alpha: false });
      if (!pen) throw new Error("no 2D canvas");
      const { west, east, south, north } = tilingScheme.tileXYToNativeRectangle(x, y, level);
      drawTile(pen, map, { west, east, south, north }, TILE_PX);
      return canvas;
    },
  };
  return shape as unknown as ImageryProvider;
}

export function basemapLayer(map: Basemap | null): ImageryLayer {
  return new ImageryLayer(provider(map));
}
