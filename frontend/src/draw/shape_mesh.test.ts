import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ribbonOf, segmentsOf } from "./ribbon";
import { type AreaShape, SHAPE_KINDS, type ShapeKind, shapeOf } from "./shape";
import { type Fill, fillOf, type Path, pathsOf } from "./shape_mesh";
import { angle, direction, type Position, unit, type Vector } from "./sphere";

const DEG = Math.PI / 180;
const EARTH_KM2 = 510_072_000;

const place = (path: Path, at: number): Vector => [path[at * 3] ?? 0, path[at * 3 + 1] ?? 0, path[at * 3 + 2] ?? 0];
const places = (path: Path) => Array.from({ length: path.length / 3 }, (_, at) => place(path, at));

/** Geographic latitude and longitude of a place on the ellipsoid. */
function position([x, y, z]: Vector): Position {
  const squash = 6_356_752.314245 / 6_378_137;
  return [Math.atan2(y, x) / DEG, Math.atan2(z / (squash * squash), Math.hypot(x, y)) / DEG];
}

function pathOf(coordinates: readonly Position[]): Path {
  const [path] = pathsOf({ kind: "line", lines: [coordinates] });
  return path as Path;
}

function areaOf(...rings: Position[][]): AreaShape {
  return { kind: "area", polygons: [rings.map((ring) => [...ring, ring[0] as Position])] };
}

/** On the sphere, as if it had one radius. */
function area_km2({ places: at, triangles }: Fill): number {
  let sum = 0;
  for (let index = 0; index < triangles.length; index += 3) {
    const corners = [0, 1, 2].map((corner) => direction(position(place(at, triangles[index + corner] as number))));
    const [a, b, c] = corners as [Vector, Vector, Vector];
    const [ab, bc, ca] = [angle(a, b), angle(b, c), angle(c, a)];
    const half = (ab + bc + ca) / 2;
    const tangent = Math.tan(half / 2) * Math.tan((half - ab) / 2) * Math.tan((half - bc) / 2);
    sum += 4 * Math.atan(Math.sqrt(Math.max(0, tangent * Math.tan((half - ca) / 2))));
  }
  return (sum / (4 * Math.PI)) * EARTH_KM2;
}

/** Whether a triangle of it lies over the place. */
function covers(fill: Fill, at: Position): boolean {
  const up = direction(at);
  const side = (a: Vector, b: Vector) =>
    up[0] * (a[1] * b[2] - a[2] * b[1]) + up[1] * (a[2] * b[0] - a[0] * b[2]) + up[2] * (a[0] * b[1] - a[1] * b[0]);
  for (let index = 0; index < fill.triangles.length; index += 3) {
    const corners = [0, 1, 2].map((corner) =>
      direction(position(place(fill.places, fill.triangles[index + corner] ?? 0))),
    );
    const [a, b, c] = corners as [Vector, Vector, Vector];
    if (angle(a, up) > 0.5) continue;
    const sides = [side(a, b), side(b, c), side(c, a)];
    if (sides.every((one) => one >= -1e-12) || sides.every((one) => one <= 1e-12)) return true;
  }
  return false;
}

describe("a line", () => {
  it("is never more than a degree from place to place, and begins and ends where it was told to", () => {
    const path = places(
      pathOf([
        [0, 10],
        [100, 60],
      ]),
    ).map((at) => unit(at) as Vector);
    const steps = path.slice(1).map((at, index) => angle(at, path[index] as Vector) / DEG);
    expect(Math.max(...steps)).toBeLessThan(1.01);
    expect(steps.length).toBeGreaterThan(60);
  });

  it("across ±180° goes the short way", () => {
    const lons = places(
      pathOf([
        [170, 0],
        [-170, 0],
      ]),
    ).map((at) => Math.abs(position(at)[0]));
    expect(lons).toHaveLength(21);
    expect(Math.min(...lons)).toBeGreaterThan(169.9);
  });

  it("over a pole goes over it", () => {
    const lats = places(
      pathOf([
        [0, 80],
        [180, 80],
      ]),
    ).map((at) => position(at)[1]);
    expect(Math.max(...lats)).toBeGreaterThan(89.4);
    expect(Math.min(...lats)).toBeGreaterThan(79.9);
  });

  it("lies on the ground, and nowhere far below it, wherever it leads", () => {
    const lon = fc.double({ min: -180, max: 180, noNaN: true });
    const lat = fc.double({ min: -90, max: 90, noNaN: true });
    const positions = fc.array(fc.tuple(lon, lat), { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(positions, (coordinates) => {
        const path = places(pathOf(coordinates));
        for (const [index, at] of path.entries()) {
          const [x, y, z] = at;
          expect((x * x + y * y) / 6_378_137 ** 2 + (z * z) / 6_356_752.314245 ** 2).toBeCloseTo(1, 9);
          const next = path[index + 1];
          if (next) expect(Math.hypot(x + next[0], y + next[1], z + next[2]) / 2).toBeGreaterThan(6_355_000);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe("an area", () => {
  const box = (west: number, south: number, east: number, north: number): Position[] => [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
  ];
  /** Between two parallels and two meridians. */
  const boxed_km2 = (wide: number, south: number, north: number) =>
    (EARTH_KM2 * wide * (Math.sin(north * DEG) - Math.sin(south * DEG))) / 720;

  it.each([
    ["anywhere", box(0, 0, 10, 10), boxed_km2(10, 0, 10), [5, 5], [11, 5]],
    ["across ±180°", box(170, -10, -170, 10), boxed_km2(20, -10, 10), [180, 0], [168, 0]],
    ["written beyond 180°", box(170, -10, 190, 10), boxed_km2(20, -10, 10), [-175, 0], [0, 0]],
    ["along its parallels", box(-150, 45, -60, 60), boxed_km2(90, 45, 60), [-105, 46], [-105, 62]],
    ["up to a pole", box(0, 60, 90, 90), boxed_km2(90, 60, 90), [45, 89], [200, 89]],
  ] as const)("a box %s is filled, and nothing else is", (_, ring, wanted_km2, inside, outside) => {
    const fill = fillOf(areaOf([...ring]));
    expect(area_km2(fill) / wanted_km2).toBeCloseTo(1, 2);
    expect([covers(fill, inside), covers(fill, outside)]).toEqual([true, false]);
  });

  it.each([1, -1])("around a pole is filled up to it (%d)", (sign) => {
    const ring = Array.from({ length: 24 }, (_, step): Position => [step * 15 - 180, sign * 70]);
    for (const turned of [ring, [...ring].reverse()]) {
      const fill = fillOf(areaOf(turned));
      expect(area_km2(fill) / boxed_km2(360, 70, 90)).toBeCloseTo(1, 2);
      expect([covers(fill, [37, sign * 89.9]), covers(fill, [37, sign * 60])]).toEqual([true, false]);
    }
  });

  it("as a box round a pole, cut at ±180°, is a cap with a round border", () => {
    const ring: Position[] = [
      [-180, 60],
      [-90, 60],
      [0, 60],
      [90, 60],
      [180, 60],
      [180, 90],
      [-180, 90],
    ];
    const shape = areaOf(ring);
    expect(area_km2(fillOf(shape)) / boxed_km2(360, 60, 90)).toBeCloseTo(1, 2);
    const lats = pathsOf(shape).flatMap((path) => places(path).map((at) => position(at)[1]));
    expect(Math.max(...lats)).toBeLessThan(60.001);
    expect(lats.length).toBeGreaterThan(300);
  });

  it("has holes, with a border of their own", () => {
    const shape = areaOf(box(0, 0, 20, 20), box(5, 5, 15, 15).reverse());
    const fill = fillOf(shape);
    expect(area_km2(fill) / (boxed_km2(20, 0, 20) - boxed_km2(10, 5, 15))).toBeCloseTo(1, 2);
    expect([covers(fill, [2, 2]), covers(fill, [10, 10])]).toEqual([true, false]);
    expect(pathsOf(shape)).toHaveLength(2);
  });

  it("that was cut at ±180° has no border there", () => {
    const [west, east] = [box(160, 30, 180, 45), box(-180, 30, -160, 45)];
    const polygons = [west, east].map((ring) => [[...ring, ring[0] as Position]]);
    const lons = pathsOf({ kind: "area", polygons }).flatMap((path) => places(path).map((at) => position(at)));
    const seam = lons.filter(([lon, lat]) => Math.abs(lon) > 179.999 && lat > 30.001 && lat < 44.999);
    expect(seam).toEqual([]);
  });

  it("is the same in size wherever it lies", () => {
    const lon = fc.double({ min: -180, max: 180, noNaN: true });
    const south = fc.double({ min: -89, max: 60, noNaN: true });
    const [wide, high] = [fc.double({ min: 1, max: 120, noNaN: true }), fc.double({ min: 1, max: 29, noNaN: true })];
    fc.assert(
      fc.property(lon, south, wide, high, (west, from, across, up) => {
        const ring = box(west, from, west + across, from + up);
        expect(Math.abs(area_km2(fillOf(areaOf(ring))) / boxed_km2(across, from, from + up) - 1)).toBeLessThan(0.02);
      }),
      { numRuns: 60 },
    );
  });

  it("has no long edge inside, and no gap: an edge of one triangle alone lies on the border", () => {
    const { places: at, triangles } = fillOf(areaOf(box(-60, -40, 60, 40)));
    const edges = new Map<string, [Vector, Vector][]>();
    for (let index = 0; index < triangles.length; index += 3) {
      for (const [from, to] of [
        [0, 1],
        [1, 2],
        [2, 0],
      ] as const) {
        const pair = [from, to].map((corner) => place(at, triangles[index + corner] as number)) as [Vector, Vector];
        const key = pair.map(String).sort().join();
        edges.set(key, [...(edges.get(key) ?? []), pair]);
      }
    }
    const all = [...edges.values()];
    expect(all.every(({ length }) => length <= 2)).toBe(true);
    const lengths = all.flat().map(([a, b]) => angle(unit(a) as Vector, unit(b) as Vector) / DEG);
    expect(Math.max(...lengths)).toBeLessThan(4.3);
    const lone = all.filter(({ length }) => length === 1).flat(2);
    expect(lone.length).toBeGreaterThan(2 * 400);
    for (const [lon, lat] of lone.map(position))
      expect(Math.min(Math.abs(Math.abs(lat) - 40), Math.abs(Math.abs(lon) - 60))).toBeLessThan(0.02);
  });
});

interface Example {
  readonly features: readonly { lat: number; lon: number; data: Readonly<Record<string, unknown>> }[];
}

const EXAMPLES = import.meta.glob<Example>("../../../spec/examples/visualization.*.v1.json", {
  import: "default",
  eager: true,
});

describe("the golden examples", () => {
  const featuresOf = (kind: ShapeKind) =>
    EXAMPLES[`../../../spec/examples/visualization.${kind}.v1.json`]?.features ?? [];

  // S72: whatever layer declares the kind.
  it("are read and drawn without losing one, and an area lies where the server says that it does", () => {
    expect([featuresOf("line").length, featuresOf("area").length]).toEqual([3, 3]);
    for (const kind of SHAPE_KINDS)
      for (const { data, lat, lon } of featuresOf(kind)) {
        const shape = shapeOf(kind, data);
        expect(shape?.kind).toBe(kind);
        if (shape === null) continue;
        expect(pathsOf(shape).length).toBeGreaterThan(0);
        if (shape.kind === "area") expect(covers(fillOf(shape), [lon, lat])).toBe(true);
        else {
          const at = direction([lon, lat]);
          const far = pathsOf(shape).flatMap((path) => places(path).map((one) => angle(direction(position(one)), at)));
          expect(Math.min(...far) / DEG).toBeLessThan(0.51);
        }
      }
  });
});

describe("a ribbon", () => {
  it("has four vertices a segment, each between its neighbours, and ends that go straight on", () => {
    const path = Float64Array.from([0, 0, 0, 1, 0, 0, 1, 2, 0]);
    const { at, before, after, side, triangles } = ribbonOf([path], 3);
    expect(segmentsOf([path, path])).toBe(4);
    expect([at.length / 3, triangles.length]).toEqual([8, 12]);
    expect([...triangles].every((vertex) => vertex < 8)).toBe(true);
    expect([...before.slice(0, 3)]).toEqual([-1, 0, 0]);
    expect([...after.slice(-3)]).toEqual([1, 4, 0]);
    expect([...side.slice(0, 8)]).toEqual([-1, 3, 1, 3, -1, -3, 1, -3]);
  });

  it("keeps paths apart", () => {
    const path = Float64Array.from([0, 0, 0, 1, 0, 0]);
    const { triangles } = ribbonOf([path, path], 1);
    expect([...triangles].map((vertex) => Math.floor(vertex / 4))).toEqual([...Array(6).fill(0), ...Array(6).fill(1)]);
  });
});
