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
/** Inside an area there is nothing to see but its colour: 6 km below the surface at most. */
const FILL_STEP = 5 * DEG;
const TRIANGLES_MAX = 60_000;

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
    flat(one: Vector): [number, number] {
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

type View = ReturnType<typeof viewFrom>;

/** Points of the plane and of the sphere, with the triangles between them. */
interface Mesh {
  readonly view: View;
  readonly flat: number[];
  readonly round: Vector[];
  readonly triangles: number[];
}

function meshOf(polygon: readonly (readonly Position[])[]): Mesh {
  const borders = polygon.map((ring) =>
    ring.slice(0, -1).flatMap((from, index) => edgeOf(from, ring[index + 1] as Position)),
  );
  const view = viewFrom(middleOf(borders[0] ?? []));
  const round = borders.flat();
  const flat = round.flatMap(view.flat);
  const holes: number[] = [];
  let start = 0;
  for (const border of borders.slice(0, -1)) {
    start += border.length;
    holes.push(start);
  }
  return { view, flat, round, triangles: earcut(flat, holes) };
}

/**
 * Cuts triangles at the middle of their longest edge until none is long. Whether an edge is cut, and where, depends on it
 * alone, so that both its sides agree and there is no gap.
 */
function refined(mesh: Mesh): number[] {
  const { view, flat, round } = mesh;
  const middles = new Map<number, number>();
  const done: number[] = [];
  const left = [...mesh.triangles];

  function middle(a: number, b: number): number {
    const key = Math.min(a, b) * 2 ** 26 + Math.max(a, b);
    const known = middles.get(key);
    if (known !== undefined) return known;
    const x = ((flat[2 * a] as number) + (flat[2 * b] as number)) / 2;
    const y = ((flat[2 * a + 1] as number) + (flat[2 * b + 1] as number)) / 2;
    const made = round.push(view.direction(x, y)) - 1;
    flat.push(x, y);
    middles.set(key, made);
    return made;
  }

  while (left.length > 0) {
    const [c, b, a] = [left.pop() as number, left.pop() as number, left.pop() as number];
    const edges = [
      [a, b, c],
      [b, c, a],
      [c, a, b],
    ] as const;
    const lengths = edges.map(([from, to]) => angle(round[from] as Vector, round[to] as Vector));
    const longest = lengths.indexOf(Math.max(...lengths));
    if ((lengths[longest] as number) <= FILL_STEP || left.length + done.length > 3 * TRIANGLES_MAX) {
      done.push(a, b, c);
      continue;
    }
    const [from, to, top] = edges[longest] as readonly [number, number, number];
    const cut = middle(from, to);
    left.push(from, cut, top, cut, to, top);
  }
  return done;
}

/** What is drawn of an area's inside. */
export function fillOf({ polygons }: AreaShape): Fill {
  const meshes = polygons.map((polygon) => {
    const mesh = meshOf(polygon);
    return { triangles: refined(mesh), round: mesh.round };
  });
  const places = pathOf(meshes.flatMap(({ round }) => round));
  let start = 0;
  const triangles = meshes.flatMap(({ triangles: own, round }) => {
    const moved = own.map((index) => index + start);
    start += round.length;
    return moved;
  });
  return { places, triangles: Uint32Array.from(triangles) };
}
