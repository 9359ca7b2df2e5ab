/** The world's outlines, from a quantised TopoJSON to rings that can be drawn on a flat tile. Pure. */

export interface Topology {
  arcs: readonly (readonly (readonly [number, number])[])[];
  transform: { scale: readonly [number, number]; translate: readonly [number, number] };
  objects: Readonly<Record<string, { geometries?: readonly Geometry[] }>>;
}

interface Geometry {
  type: string;
  arcs?: unknown;
}

/** Longitudes run on past ±180 instead of jumping, so a line never crosses the whole map. */
export interface Line {
  /** lon, lat, lon, lat … in degrees. */
  readonly points: Float64Array;
  readonly west: number;
  readonly east: number;
  readonly south: number;
  readonly north: number;
}

export interface Basemap {
  readonly land: readonly Line[];
  readonly coasts: readonly Line[];
  readonly borders: readonly Line[];
}

type Arc = readonly (readonly [number, number])[];

function decodeArcs({ arcs, transform }: Topology): Arc[] {
  const [scaleX, scaleY] = transform.scale;
  const [moveX, moveY] = transform.translate;
  return arcs.map((arc) => {
    let x = 0;
    let y = 0;
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return [x * scaleX + moveX, y * scaleY + moveY] as const;
    });
  });
}

/** All rings of a geometry as lists of arc numbers; a negative number is the arc read backwards. */
export function ringsOf(geometry: Geometry): number[][] {
  if (geometry.type === "Polygon") return geometry.arcs as number[][];
  if (geometry.type === "MultiPolygon") return (geometry.arcs as number[][][]).flat();
  return [];
}

function join(arcs: readonly Arc[], ring: readonly number[]): [number, number][] {
  const points: [number, number][] = [];
  for (const signed of ring) {
    const arc = arcs[signed < 0 ? ~signed : signed] ?? [];
    const ordered = signed < 0 ? [...arc].reverse() : arc;
    // The first point of an arc is the last one of the arc before it.
    for (const point of points.length > 0 ? ordered.slice(1) : ordered) points.push([point[0], point[1]]);
  }
  return points;
}

function unwrap(points: readonly (readonly [number, number])[]): [number, number][] {
  let turn = 0;
  let before: number | null = null;
  return points.map(([lon, lat]) => {
    if (before !== null && lon - before > 180) turn -= 360;
    if (before !== null && lon - before < -180) turn += 360;
    before = lon;
    return [lon + turn, lat];
  });
}

function lineOf(points: readonly (readonly [number, number])[]): Line {
  const flat = new Float64Array(points.length * 2);
  let [west, east, south, north] = [Infinity, -Infinity, Infinity, -Infinity];
  points.forEach(([lon, lat], index) => {
    flat[index * 2] = lon;
    flat[index * 2 + 1] = lat;
    west = Math.min(west, lon);
    east = Math.max(east, lon);
    south = Math.min(south, lat);
    north = Math.max(north, lat);
  });
  return { points: flat, west, east, south, north };
}

/** A ring round a pole does not close on a flat map: it is led along the pole's edge. */
function closeRound(points: [number, number][]): [number, number][] {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last || Math.abs(last[0] - first[0]) < 180) return points;
  const pole = first[1] < 0 ? -90 : 90;
  return [...points, [last[0], pole], [first[0], pole]];
}

export function buildBasemap(topology: Topology): Basemap {
  const arcs = decodeArcs(topology);
  const uses = new Uint8Array(arcs.length);
  for (const country of topology.objects.countries?.geometries ?? []) {
    for (const ring of ringsOf(country)) for (const arc of ring) bump(uses, arc < 0 ? ~arc : arc);
  }
  const land = (topology.objects.land?.geometries ?? []).flatMap(ringsOf);
  const lines = arcs.map((arc) => lineOf(unwrap(arc)));
  return {
    land: land.map((ring) => lineOf(closeRound(unwrap(join(arcs, ring))))),
    coasts: lines.filter((_, index) => uses[index] === 1),
    borders: lines.filter((_, index) => (uses[index] ?? 0) > 1),
  };
}

function bump(counts: Uint8Array, index: number): void {
  counts[index] = (counts[index] ?? 0) + 1;
}
