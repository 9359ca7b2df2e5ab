import { describe, expect, it } from "vitest";
import packaged from "world-atlas/countries-50m.json?raw";
import { buildBasemap, type Line, type Topology } from "./basemap";
import { drawTile, MAP_COLORS, type Pen, shiftsOnto } from "./basemap_tile";

const topology = JSON.parse(packaged) as Topology;
const map = buildBasemap(topology);

function longestStep_deg(line: Line): number {
  let most = 0;
  for (let index = 2; index < line.points.length; index += 2) {
    most = Math.max(most, Math.abs((line.points[index] ?? 0) - (line.points[index - 2] ?? 0)));
  }
  return most;
}

class RecordingPen implements Pen {
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 0;
  lineJoin: CanvasLineJoin = "miter";
  path: [number, number][] = [];
  fills: { style: string; points: number; rule: string | undefined }[] = [];
  strokes: { style: string; points: number }[] = [];
  fillRect(): void {
    this.fills.push({ style: this.fillStyle, points: 4, rule: undefined });
  }
  beginPath(): void {
    this.path = [];
  }
  moveTo(x: number, y: number): void {
    this.path.push([x, y]);
  }
  lineTo(x: number, y: number): void {
    this.path.push([x, y]);
  }
  closePath(): void {}
  fill(rule?: unknown): void {
    this.fills.push({ style: this.fillStyle, points: this.path.length, rule: rule as string });
  }
  stroke(): void {
    this.strokes.push({ style: this.strokeStyle, points: this.path.length });
  }
}

describe("the packaged outlines", () => {
  it("no line jumps over the map at the date line; only the edge of a pole may run that far", () => {
    for (const line of [...map.coasts, ...map.borders]) expect(longestStep_deg(line)).toBeLessThan(180);
    const wide = map.land.filter((line) => longestStep_deg(line) >= 180);
    expect(wide.every((line) => line.south === -90)).toBe(true);
  });

  it("every arc is a coast or a border, none both", () => {
    expect(map.coasts.length + map.borders.length).toBe(topology.arcs.length);
    expect(map.borders.length).toBeGreaterThan(300);
  });

  it("the south pole is land", () => {
    const antarctica = map.land.find((line) => line.south === -90);
    expect(antarctica && antarctica.east - antarctica.west).toBeGreaterThanOrEqual(360);
  });
});

describe("a tile", () => {
  it("takes a line that runs past the date line on both sides of it", () => {
    const line = { points: new Float64Array(), west: 170, east: 190, south: 0, north: 10 };
    expect(shiftsOnto(line, { west: 90, east: 180, south: 0, north: 90 })).toEqual([0]);
    expect(shiftsOnto(line, { west: -180, east: -90, south: 0, north: 90 })).toEqual([-360]);
    expect(shiftsOnto(line, { west: -90, east: 0, south: 0, north: 90 })).toEqual([]);
    expect(shiftsOnto(line, { west: 90, east: 180, south: -90, north: -1 })).toEqual([]);
  });

  it("draws sea, land, graticule, borders and coasts", () => {
    const pen = new RecordingPen();
    drawTile(pen, map, { west: 0, east: 45, south: 0, north: 45 }, 512);
    expect(pen.fills.map(({ style }) => style)).toEqual([MAP_COLORS.sea, MAP_COLORS.land]);
    expect(pen.fills[1]?.rule).toBe("evenodd");
    expect(pen.strokes.map(({ style }) => style)).toEqual([MAP_COLORS.grid, MAP_COLORS.border, MAP_COLORS.coast]);
    expect(pen.strokes.every(({ points }) => points > 4)).toBe(true);
  });

  it("leaves out points that would not be seen: the coarse tile needs far fewer", () => {
    const coarse = new RecordingPen();
    const fine = new RecordingPen();
    drawTile(coarse, map, { west: -180, east: 0, south: -90, north: 90 }, 64);
    drawTile(fine, map, { west: -180, east: 0, south: -90, north: 90 }, 4_096);
    expect(coarse.strokes[2]?.points ?? 0).toBeLessThan((fine.strokes[2]?.points ?? 0) / 3);
  });

  it("without the map file there is still a globe with its graticule", () => {
    const pen = new RecordingPen();
    drawTile(pen, null, { west: 0, east: 180, south: -90, north: 90 }, 512);
    expect(pen.fills).toHaveLength(1);
    expect(pen.strokes).toHaveLength(1);
  });
});
