/**
 * The lines or areas of one layer. They lie in groups that are drawn as one each; a shape whose geometry changed costs its
 * group, a changed colour nothing but itself, and what stayed as it was is left alone.
 */
import { Cartesian3, Color, type Primitive, PrimitiveCollection } from "@cesium/engine";
import { type Look, PLAIN_LOOK } from "../data/presentation";
import type { PointId } from "./globe_points";
import { fills, recolor, strokes } from "./globe_primitives";
import type { DrawFeature, ObjectLook } from "./layer_style";
import { changesWithTime, objectLook } from "./layer_styles";
import { segmentsOf } from "./ribbon";
import { isEqual, type Shape } from "./shape";
import { type Fill, fillOf, type Path, pathsOf } from "./shape_mesh";

/** Of a group, in steps of its strokes: some are built anew in a few milliseconds, and 10,000 are twenty to draw. */
const GROUP_SEGMENTS = 500;
/** How much of its colour an area's inside has, unless its look says otherwise. */
const FILL_SHARE = 0.25;
const CHOSEN = Color.fromCssColorString("#ffffff");
const CHOSEN_MORE_PX = 2;

export interface DrawnShape {
  readonly feature: DrawFeature;
  readonly shape: Shape;
}

export interface ShapeLayer {
  /** The insides of areas, and below points and above these the strokes. */
  readonly fills: PrimitiveCollection;
  readonly strokes: PrimitiveCollection;
  readonly count: number;
  /** How many groups were built since the layer was made. */
  readonly builds: number;
  setShapes(shapes: readonly DrawnShape[], look: Look, now_ms: number): void;
  restyle(now_ms: number): void;
  setVisible(visible: boolean): void;
  /** A place on the shape, and how far the shape reaches from it. */
  placeOf(feature: string): { place: Cartesian3; extent_m: number } | null;
  /** The shape drawn so that it stands out; null when there is none. */
  markOf(feature: string): Primitive | null;
}

interface Group {
  readonly items: Set<Item>;
  segments: number;
  stroke: Primitive | null;
  fill: Primitive | null;
}

interface Item {
  readonly id: PointId;
  feature: DrawFeature;
  readonly shape: Shape;
  readonly paths: readonly Path[];
  readonly fill: Fill | null;
  look: ObjectLook;
  readonly group: Group;
}

function strokeColor({ color, alpha }: ObjectLook): Color {
  return Color.fromCssColorString(color).withAlpha(alpha);
}

function fillColor({ color, alpha, fill_alpha }: ObjectLook): Color {
  return Color.fromCssColorString(color).withAlpha(alpha * (fill_alpha ?? FILL_SHARE));
}

function firstOf([path]: readonly Path[]): Cartesian3 | null {
  return path ? new Cartesian3(path[0], path[1], path[2]) : null;
}

/** From the place to the farthest point of the paths. */
function reach_m({ x, y, z }: Cartesian3, paths: readonly Path[]): number {
  let most = 0;
  for (const path of paths)
    for (let at = 0; at < path.length; at += 3) {
      const [dx, dy, dz] = [(path[at] ?? x) - x, (path[at + 1] ?? y) - y, (path[at + 2] ?? z) - z];
      most = Math.max(most, dx * dx + dy * dy + dz * dz);
    }
  return Math.sqrt(most);
}

export function createShapeLayer(layer: string): ShapeLayer {
  const inside = new PrimitiveCollection();
  const outline = new PrimitiveCollection();
  const groups = new Set<Group>();
  const items = new Map<string, Item>();
  let styled: Look = PLAIN_LOOK;
  let builds = 0;

  function groupWithRoom(): Group {
    for (const group of groups) if (group.segments < GROUP_SEGMENTS) return group;
    const made: Group = { items: new Set(), segments: 0, stroke: null, fill: null };
    groups.add(made);
    return made;
  }

  function take(item: Item): Group {
    item.group.items.delete(item);
    item.group.segments -= segmentsOf(item.paths);
    return item.group;
  }

  function add({ feature, shape }: DrawnShape, look: ObjectLook): Item {
    const paths = pathsOf(shape);
    const fill = shape.kind === "area" ? fillOf(shape) : null;
    const group = groupWithRoom();
    const item: Item = { id: { layer, feature: feature.id }, feature, shape, paths, fill, look, group };
    group.items.add(item);
    group.segments += segmentsOf(paths);
    return item;
  }

  function build(group: Group): void {
    if (group.stroke) outline.remove(group.stroke);
    if (group.fill) inside.remove(group.fill);
    group.stroke = group.fill = null;
    if (group.items.size === 0) {
      groups.delete(group);
      return;
    }
    builds += 1;
    const members = [...group.items];
    const lined = members.filter(({ paths }) => paths.length > 0);
    if (lined.length > 0) {
      const parts = lined.map(({ id, paths, look }) => ({
        id,
        paths,
        width_px: look.size_px,
        color: strokeColor(look),
      }));
      group.stroke = outline.add(strokes(parts)) as Primitive;
    }
    const filled = members.flatMap(({ id, fill, look }) =>
      fill && fill.triangles.length > 0 ? [{ id, fill, color: fillColor(look) }] : [],
    );
    if (filled.length > 0) group.fill = inside.add(fills(filled)) as Primitive;
  }

  /** False when the item's group has to be built anew. */
  function dress(item: Item, look: ObjectLook): boolean {
    const { stroke, fill } = item.group;
    const before = item.look;
    item.look = look;
    if (isEqual(before, look)) return true;
    if (before.size_px !== look.size_px) return false;
    const lined = !stroke || item.paths.length === 0 || recolor(stroke, item.id, strokeColor(look));
    const filled = !fill || !item.fill || item.fill.triangles.length === 0 || recolor(fill, item.id, fillColor(look));
    return lined && filled;
  }

  return {
    fills: inside,
    strokes: outline,
    get count() {
      return items.size;
    },
    get builds() {
      return builds;
    },
    setShapes(shapes, look, now_ms) {
      styled = look;
      const dirty = new Set<Group>();
      const wanted = new Map(shapes.map((drawn) => [drawn.feature.id, drawn]));
      for (const [id, item] of items) {
        if (isEqual(item.shape, wanted.get(id)?.shape)) continue;
        dirty.add(take(item));
        items.delete(id);
      }
      for (const [id, drawn] of wanted) {
        const nextLook = objectLook(look, drawn.feature, now_ms);
        const known = items.get(id);
        const item = known ?? add(drawn, nextLook);
        item.feature = drawn.feature;
        items.set(id, item);
        if (!known || !dress(item, nextLook)) dirty.add(item.group);
      }
      for (const group of dirty) build(group);
    },
    restyle(now_ms) {
      if (!changesWithTime(styled)) return;
      const dirty = new Set<Group>();
      for (const item of items.values())
        if (!dress(item, objectLook(styled, item.feature, now_ms))) dirty.add(item.group);
      for (const group of dirty) build(group);
    },
    setVisible(visible) {
      inside.show = outline.show = visible;
    },
    placeOf(feature) {
      const item = items.get(feature);
      if (!item) return null;
      const { lat, lon } = item.feature;
      const place = lat === null || lon === null ? firstOf(item.paths) : Cartesian3.fromDegrees(lon, lat);
      return place && { place, extent_m: reach_m(place, item.paths) };
    },
    markOf(feature) {
      const item = items.get(feature);
      if (!item || item.paths.length === 0) return null;
      const width_px = item.look.size_px + CHOSEN_MORE_PX;
      return strokes([{ id: item.id, paths: item.paths, width_px, color: CHOSEN }], false);
    },
  };
}
