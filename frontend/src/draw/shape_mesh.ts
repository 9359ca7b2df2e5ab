/**
 * Lines and areas as vertices on the Earth's surface, short enough between that nothing cuts through the globe.
 *
 * A line takes the shortest way between its positions, also over ±180° or a pole: it is a way. A border is straight in
 * longitude and latitude, as GeoJSON says, the shorter way round: a box keeps to its parallels. An area is the smaller
 * side of its ring; the server decides in the same way (`planetwire/geometry/areas.py`).
 */
import earcut from "earcut";
import type { AreaShape, Shape } from "./shape";
import { angle, between, cross, direction, dot, type Position, shortWay, surface, unit, type Vector } from "./sphere";

const DEG = Math.PI / 180;
/** A chord of one degree lies 240 m below the surface at most. */
const STEP_DEG = 1;
/**
 * An area is cut into cells of this size in its plane before it is cut into triangles: three degrees in its middle, half of
 * it at a quarter of the Earth from there. Long thin triangles would overlap where the ground is bent, as specks.
 */
const CELL = 2 * Math.tan((3 / 4) * DEG);
/** In a row: half the Earth has 77. What was typed in by hand may reach to the place opposite, which is nowhere in a plane. */
const CELLS_MAX = 128;

/** Strokes: places in metres, three numbers each. */
export type Path = Float64Array;

export interface Fill {
  /** Metres, three numbers each. */
  readonly places: Float64Array;
  readonly triangles: Uint32Array;
}

function pathOf(directions: readonly Vector[]): Path {
  const path = new Float64Array(directions.length * 3);
  directions.forEach((one, index) => {
    surface(one, path, index * 3);
  });
  return path;
}

/** The shortest way. */
function wayOf(line: readonly Position[]): Vector[] {
  const corners = line.map(direction);
  const out: Vector[] = [];
  for (let index = 0; index + 1 < corners.length; index += 1) {
    const [from, to] = [corners[index] as Vector, corners[index + 1] as Vector];
    const steps = Math.max(1, Math.ceil(angle(from, to) / (STEP_DEG * DEG) - 1e-9));
    for (let step = 0; step < steps; step += 1) out.push(step === 0 ? from : between(from, to, step / steps));
  }
  out.push(corners.at(-1) as Vector);
  return out;
}

/** The edge without its end, straight in longitude and latitude. */
function edgeOf([lon, lat]: Position, [toLon, toLat]: Position): Vector[] {
  const [east, north] = [shortWay(toLon - lon), toLat - lat];
  const steps = Math.max(1, Math.ceil(Math.max(Math.abs(east), Math.abs(north)) / STEP_DEG - 1e-9));
  return Array.from({ length: steps }, (_, step) =>
    direction([lon + (east * step) / steps, lat + (north * step) / steps]),
  );
}

/** An area that was cut at ±180° or led to a pole, as RFC 7946 asks for, has no border there. */
function isSeam([lon, lat]: Position, [toLon, toLat]: Position): boolean {
  return (Math.abs(lon) === 180 && Math.abs(toLon) === 180) || (Math.abs(lat) === 90 && lat === toLat);
}

/** The border of a ring, in as many pieces as seams leave. */
function bordersOf(ring: readonly Position[]): Vector[][] {
  const pieces: Vector[][] = [];
  let piece: Vector[] = [];
  for (let index = 0; index + 1 < ring.length; index += 1) {
    const [from, to] = [ring[index] as Position, ring[index + 1] as Position];
    if (isSeam(from, to)) {
      if (piece.length > 0) pieces.push([...piece, direction(from)]);
      piece = [];
    } else piece.push(...edgeOf(from, to));
  }
  if (piece.length > 0) pieces.push([...piece, direction(ring.at(-1) as Position)]);
  return pieces;
}

/** What is drawn of a shape as lines. */
export function pathsOf(shape: Shape): Path[] {
  if (shape.kind === "line") return shape.lines.map((line) => pathOf(wayOf(line)));
  return shape.polygons.flat().flatMap((ring) => bordersOf(ring).map(pathOf));
}

/** The middle of the smaller side of a ring. */
function middleOf(border: readonly Vector[]): Vector {
  let sum: Vector = [0, 0, 0];
  let doubled: Vector = [0, 0, 0];
  border.forEach((one, index) => {
    sum = [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]];
    const [x, y, z] = cross(one, border[(index + 1) % border.length] as Vector);
    doubled = [doubled[0] + x, doubled[1] + y, doubled[2] + z];
  });
  return unit(sum) ?? unit(doubled) ?? (border[0] as Vector);
}

/** The stereographic view from a place: one to one for all of the Earth but the place opposite. */
function viewFrom(up: Vector) {
  const pole: Vector = Math.abs(up[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0];
  const right = unit(cross(pole, up)) ?? up;
  const ahead = cross(up, right);
  return {
    flat(one: Vector): Point {
      const scale = 1 / Math.max(1e-12, 1 + dot(up, one));
      return [dot(right, one) * scale, dot(ahead, one) * scale];
    },
    direction(x: number, y: number): Vector {
      const high = 1 - x * x - y * y;
      const scale = 1 / (1 + x * x + y * y);
      const part = (axis: 0 | 1 | 2) => (2 * x * right[axis] + 2 * y * ahead[axis] + high * up[axis]) * scale;
      return [part(0), part(1), part(2)];
    },
  };
}

type Point = readonly [x: number, y: number];
type Rings = readonly (readonly Point[])[];

/** Where an edge goes through a line, if it does; for what is on either side the same to the last bit. */
function crossingOf(from: Point, to: Point, axis: 0 | 1, at: number): Point | null {
  if ((from[axis] - at) * (to[axis] - at) >= 0) return null;
  const share = (at - from[axis]) / (to[axis] - from[axis]);
  if (axis === 0) return [at, from[1] + share * (to[1] - from[1])];
  return [from[0] + share * (to[0] - from[0]), at];
}

/** Of a ring what lies below the line, and what above. */
function cutRing(ring: readonly Point[], axis: 0 | 1, at: number): [Point[], Point[]] {
  const [below, above]: [Point[], Point[]] = [[], []];
  for (const [index, from] of ring.entries()) {
    const crossing = crossingOf(from, ring[(index + 1) % ring.length] as Point, axis, at);
    if (from[axis] <= at) below.push(from);
    if (from[axis] >= at) above.push(from);
    if (crossing) {
      below.push(crossing);
      above.push(crossing);
    }
  }
  return [below, above];
}

function cut(rings: Rings, axis: 0 | 1, at: number): [Rings, Rings] {
  const parts = rings.map((ring) => cutRing(ring, axis, at));
  const [below, above] = [parts.map(([part]) => part), parts.map(([, part]) => part)];
  // Without its outer ring there is nothing of it there; a hole may be all on the other side.
  const left = (side: Point[][]) => ((side[0]?.length ?? 0) < 3 ? [] : side.filter(({ length }) => length >= 3));
  return [left(below), left(above)];
}

/** The cells of an area, by lines that are the same for all of it: where two meet, both have the same vertices. */
function cellsOf(rings: Rings): Rings[] {
  const [outer] = rings as [readonly Point[]];
  const range = (axis: 0 | 1) => {
    let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const point of outer) {
      least = Math.min(least, point[axis]);
      most = Math.max(most, point[axis]);
    }
    const size = Math.max(CELL, (most - least) / CELLS_MAX);
    return { least, size, cells: Math.ceil((most - least) / size) };
  };
  const ranges = [range(0), range(1)] as const;
  const found: Rings[] = [];
  const divide = (part: Rings, axis: 0 | 1, from: number, to: number): void => {
    if (part.length === 0) return;
    if (to - from > 1) {
      const middle = (from + to) >> 1;
      const [below, above] = cut(part, axis, ranges[axis].least + middle * ranges[axis].size);
      divide(below, axis, from, middle);
      divide(above, axis, middle, to);
    } else if (axis === 0) divide(part, 1, 0, ranges[1].cells);
    else found.push(part);
  };
  divide(rings, 0, 0, ranges[0].cells);
  return found;
}

interface Mesh {
  readonly round: Vector[];
  readonly triangles: number[];
}

function meshOf(polygon: readonly (readonly Position[])[]): Mesh {
  const borders = polygon.map((ring) =>
    ring.slice(0, -1).flatMap((from, index) => edgeOf(from, ring[index + 1] as Position)),
  );
  const view = viewFrom(middleOf(borders[0] ?? []));
  const mesh: Mesh = { round: [], triangles: [] };
  for (const cell of cellsOf(borders.map((border) => border.map(view.flat)))) {
    const start = mesh.round.length;
    const points = cell.flat();
    const holes = cell.slice(0, -1).map((_, index) => cell.slice(0, index + 1).flat().length);
    for (const [x, y] of points) mesh.round.push(view.direction(x, y));
    for (const vertex of earcut(points.flat(), holes)) mesh.triangles.push(start + vertex);
  }
  return mesh;
}

/** What is drawn of an area's inside. */
export function fillOf({ polygons }: AreaShape): Fill {
  const meshes = polygons.map(meshOf);
  const places = pathOf(meshes.flatMap(({ round }) => round));
  let start = 0;
  const triangles = meshes.flatMap(({ triangles: own, round }) => {
    const moved = own.map((index) => index + start);
    start += round.length;
    return moved;
  });
  return { places, triangles: Uint32Array.from(triangles) };
}
