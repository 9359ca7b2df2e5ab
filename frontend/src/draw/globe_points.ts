/** The objects of one layer as points: one collection a layer, so that a moving layer never re-uploads a still one. */
import {
  BlendOption,
  Cartesian3,
  Color,
  NearFarScalar,
  type PointPrimitive,
  PointPrimitiveCollection,
} from "@cesium/engine";
import { type Look, PLAIN_LOOK } from "../data/presentation";
import type { DrawFeature, ObjectLook } from "./layer_style";
import { changesWithTime, objectLook } from "./layer_styles";
import { isMoving } from "./layer_values";

/** What a picked point carries. */
export interface PointId {
  readonly layer: string;
  readonly feature: string;
}

export interface PointLayer {
  readonly collection: PointPrimitiveCollection;
  /** Points on the globe: those that have a place. */
  readonly count: number;
  /** Elements of the moving objects, in the order in which their positions are given. */
  readonly elements: readonly unknown[];
  setFeatures(features: readonly DrawFeature[], look: Look, now_ms: number): void;
  /** Three numbers an element: metres, Earth-fixed; NaN takes the point away. */
  setPositions(positions: Float32Array): void;
  /** Looks that depend on age. */
  restyle(now_ms: number): void;
  placeOf(feature: string): Cartesian3 | null;
}

const colors = new Map<string, Color>();

function colorOf({ color, alpha }: ObjectLook): Color {
  const key = `${color}/${alpha}`;
  let made = colors.get(key);
  if (!made) {
    made = Color.fromCssColorString(color).withAlpha(alpha);
    colors.set(key, made);
  }
  return made;
}

/** From the distance of the whole Earth down to low flight: points grow so that they stay easy to hit. */
const GROWTH = new NearFarScalar(1.5e6, 2.6, 3.5e7, 1);

interface Item {
  point: PointPrimitive;
  feature: DrawFeature;
}

export function createPointLayer(layer: string): PointLayer {
  const collection = new PointPrimitiveCollection({ blendOption: BlendOption.TRANSLUCENT });
  let items = new Map<string, Item>();
  let moving: Item[] = [];
  let shown = 0;
  let styled: Look = PLAIN_LOOK;
  const scratch = new Cartesian3();

  function place(point: PointPrimitive, at: Cartesian3 | null): void {
    if (at) point.position = at;
    if (point.show === (at !== null)) return;
    point.show = at !== null;
    shown += at ? 1 : -1;
  }

  function dress(point: PointPrimitive, look: ObjectLook): void {
    const color = colorOf(look);
    if (!Color.equals(point.color, color)) point.color = color;
    if (point.pixelSize !== look.size_px) point.pixelSize = look.size_px;
  }

  function add(feature: DrawFeature): PointPrimitive {
    const id: PointId = { layer, feature: feature.id };
    return collection.add({ id, show: false, position: Cartesian3.ZERO, scaleByDistance: GROWTH });
  }

  function stillPlace({ lat, lon }: DrawFeature): Cartesian3 | null {
    return lat === null || lon === null ? null : Cartesian3.fromDegrees(lon, lat, 0, undefined, scratch);
  }

  function dropAll(): void {
    collection.removeAll();
    items = new Map();
    shown = 0;
  }

  function dropRest(kept: ReadonlyMap<string, Item>): void {
    for (const [id, { point }] of items) {
      if (kept.has(id)) continue;
      if (point.show) shown -= 1;
      collection.remove(point);
    }
  }

  return {
    collection,
    get count() {
      return shown;
    },
    get elements() {
      return moving.map((item) => item.feature.data);
    },
    setFeatures(features, look, now_ms) {
      styled = look;
      if (features.length === 0) dropAll();
      const next = new Map<string, Item>();
      moving = [];
      for (const feature of features) {
        const item = { point: items.get(feature.id)?.point ?? add(feature), feature };
        next.set(feature.id, item);
        dress(item.point, objectLook(look, feature, now_ms));
        if (isMoving(feature.kind)) moving.push(item);
        else place(item.point, stillPlace(feature));
      }
      dropRest(next);
      items = next;
    },
    setPositions(positions) {
      for (let index = 0; index < moving.length; index += 1) {
        const item = moving[index];
        const offset = index * 3;
        const x = positions[offset] ?? Number.NaN;
        if (item === undefined) continue;
        if (Number.isNaN(x)) place(item.point, null);
        else
          place(
            item.point,
            Cartesian3.fromElements(x, positions[offset + 1] ?? 0, positions[offset + 2] ?? 0, scratch),
          );
      }
    },
    restyle(now_ms) {
      if (!changesWithTime(styled)) return;
      for (const { point, feature } of items.values()) dress(point, objectLook(styled, feature, now_ms));
    },
    placeOf(feature) {
      const point = items.get(feature)?.point;
      return point?.show ? point.position : null;
    },
  };
}
