/** Draws one tile of the world: sea, land, borders, graticule. Coordinates in degrees, equirectangular. */
import type { Basemap, Line } from "./basemap";

export interface TileBounds {
  west: number;
  east: number;
  south: number;
  north: number;
}

export const MAP_COLORS = {
  sea: "#0b1219",
  land: "#18222c",
  coast: "#3d5264",
  border: "#2a3844",
  grid: "rgba(120, 150, 175, 0.10)",
} as const;

/** What is used of a 2D canvas. */
export type Pen = Pick<
  CanvasRenderingContext2D,
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "lineJoin"
  | "fillRect"
  | "beginPath"
  | "moveTo"
  | "lineTo"
  | "closePath"
  | "fill"
  | "stroke"
>;

/** Points nearer than this to the last drawn one are left out: they would not be seen. */
const MERGE_PX = 0.6;

interface Frame extends TileBounds {
  size_px: number;
  scale: number;
}

/** By how many whole turns the line must be moved to fall on the tile; none, one, or (round the pole) several. */
export function shiftsOnto(line: Line, tile: TileBounds): number[] {
  if (line.south > tile.north || line.north < tile.south) return [];
  return [-720, -360, 0, 360, 720].filter((shift) => line.west + shift <= tile.east && line.east + shift >= tile.west);
}

function trace(pen: Pen, line: Line, frame: Frame, shift: number): void {
  const { points } = line;
  const least = MERGE_PX / frame.scale;
  let lastLon = Number.NaN;
  let lastLat = Number.NaN;
  for (let index = 0; index < points.length; index += 2) {
    const lon = points[index] ?? 0;
    const lat = points[index + 1] ?? 0;
    const isEnd = index === 0 || index === points.length - 2;
    if (!isEnd && Math.abs(lon - lastLon) < least && Math.abs(lat - lastLat) < least) continue;
    lastLon = lon;
    lastLat = lat;
    const x = (lon + shift - frame.west) * frame.scale;
    const y = (frame.north - lat) * frame.scale;
    if (index === 0) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  }
}

function drawAll(pen: Pen, lines: readonly Line[], frame: Frame, closed: boolean): void {
  pen.beginPath();
  for (const line of lines) {
    for (const shift of shiftsOnto(line, frame)) {
      trace(pen, line, frame, shift);
      if (closed) pen.closePath();
    }
  }
}

function drawGrid(pen: Pen, frame: Frame): void {
  const span = frame.east - frame.west;
  const step = span >= 45 ? 30 : span >= 11 ? 10 : 5;
  pen.beginPath();
  for (let lon = Math.ceil(frame.west / step) * step; lon <= frame.east; lon += step) {
    const x = (lon - frame.west) * frame.scale;
    pen.moveTo(x, 0);
    pen.lineTo(x, frame.size_px);
  }
  for (let lat = Math.ceil(frame.south / step) * step; lat <= frame.north; lat += step) {
    const y = (frame.north - lat) * frame.scale;
    pen.moveTo(0, y);
    pen.lineTo(frame.size_px, y);
  }
  pen.strokeStyle = MAP_COLORS.grid;
  pen.lineWidth = 1;
  pen.stroke();
}

/** `size_px` is the edge of the square tile. Without a map only sea and graticule are drawn. */
export function drawTile(pen: Pen, map: Basemap | null, tile: TileBounds, size_px: number): void {
  const frame: Frame = { ...tile, size_px, scale: size_px / (tile.east - tile.west) };
  pen.fillStyle = MAP_COLORS.sea;
  pen.fillRect(0, 0, size_px, size_px);
  if (map) {
    pen.fillStyle = MAP_COLORS.land;
    drawAll(pen, map.land, frame, true);
    pen.fill("evenodd");
  }
  drawGrid(pen, frame);
  if (!map) return;
  pen.lineJoin = "round";
  pen.strokeStyle = MAP_COLORS.border;
  pen.lineWidth = 1;
  drawAll(pen, map.borders, frame, false);
  pen.stroke();
  pen.strokeStyle = MAP_COLORS.coast;
  pen.lineWidth = 1.2;
  drawAll(pen, map.coasts, frame, false);
  pen.stroke();
}
