/** The geometry of a line or an area as the wire has it: what cannot be read, or is too large to be drawn, is none. */
import type { DrawFeature } from "./layer_style";
import type { Position } from "./sphere";

/** Kinds of layers whose things have a geometry. */
export const SHAPE_KINDS = ["line", "area"] as const;
export type ShapeKind = (typeof SHAPE_KINDS)[number];

export interface LineShape {
  readonly kind: "line";
  readonly lines: readonly (readonly Position[])[];
}

export interface AreaShape {
  readonly kind: "area";
  /** Of each polygon the outer ring and its holes; the last position of a ring is its first. */
  readonly polygons: readonly (readonly (readonly Position[])[])[];
}

export type Shape = LineShape | AreaShape;

/** What a feed brings has at most 5,000; what was typed in by hand may have anything. */
const VERTICES_MAX = 20_000;

export function isShapeKind(kind: string): kind is ShapeKind {
  return (SHAPE_KINDS as readonly string[]).includes(kind);
}

function isPosition(value: unknown): value is Position {
  return (
    Array.isArray(value) &&
    Number.isFinite(value[0]) &&
    Number.isFinite(value[1]) &&
    Math.abs(value[0]) <= 360 &&
    Math.abs(value[1]) <= 90
  );
}

/** Null if anything in it is no position. */
function positions(value: unknown, least: number): readonly Position[] | null {
  return Array.isArray(value) && value.length >= least && value.every(isPosition) ? value : null;
}

function closed(ring: readonly Position[]): readonly Position[] {
  const [first, last] = [ring[0] as Position, ring.at(-1) as Position];
  return first[0] === last[0] && first[1] === last[1] ? ring : [...ring, first];
}

/** Every part, read; null if one of them cannot be. */
function all<T>(value: unknown, read: (part: unknown) => T | null): readonly T[] | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const parts: T[] = [];
  for (const part of value) {
    const one = read(part);
    if (one === null) return null;
    parts.push(one);
  }
  return parts;
}

function ring(value: unknown): readonly Position[] | null {
  const read = positions(value, 3);
  return read && closed(read);
}

const polygon = (value: unknown) => all(value, ring);

function read(kind: ShapeKind, type: unknown, value: unknown): Shape | null {
  if (kind === "line") {
    const lines = all(type === "LineString" ? [value] : value, (part) => positions(part, 2));
    return lines && { kind, lines };
  }
  const polygons = all(type === "Polygon" ? [value] : value, polygon);
  return polygons && { kind, polygons };
}

function vertices(value: unknown): number {
  if (!Array.isArray(value)) return 0;
  return typeof value[0] === "number" ? 1 : value.reduce((sum: number, part) => sum + vertices(part), 0);
}

const TYPES: Readonly<Record<ShapeKind, readonly string[]>> = {
  line: ["LineString", "MultiLineString"],
  area: ["Polygon", "MultiPolygon"],
};

/** Null without a geometry of this kind: the thing is then drawn as a point, where it has a place. */
export function shapeOf(kind: ShapeKind, data: DrawFeature["data"]): Shape | null {
  const geometry = data.geometry as { type?: unknown; coordinates?: unknown } | null | undefined;
  if (typeof geometry !== "object" || geometry === null) return null;
  const { type, coordinates } = geometry;
  if (typeof type !== "string" || !TYPES[kind].includes(type) || vertices(coordinates) > VERTICES_MAX) return null;
  return read(kind, type, coordinates);
}

/** Whether two values off the wire are equal, however deep: lists of lists of numbers, in a record. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, index) => isEqual(one, b[index]));
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const names = Object.keys(left);
  return names.length === Object.keys(right).length && names.every((name) => isEqual(left[name], right[name]));
}
