/** Strokes and fills of several shapes as one thing that Cesium draws, each with a colour that can change by itself. */
import {
  Appearance,
  BlendingState,
  BoundingSphere,
  type Color,
  ColorGeometryInstanceAttribute,
  ComponentDatatype,
  Geometry,
  GeometryAttribute,
  GeometryInstance,
  PerInstanceColorAppearance,
  _shadersPolylineCommon as POLYLINE_COMMON,
  Primitive,
  PrimitiveType,
} from "@cesium/engine";
import { ribbonOf } from "./ribbon";
import type { Fill, Path } from "./shape_mesh";

/**
 * What is opaque is drawn in the order of its collections, before what is sorted by distance: fills, strokes, points. So
 * these are called opaque, and are mixed with what lies below all the same. They hide nothing: only the globe does.
 */
function onTheGround(appearance: Appearance): Appearance {
  const state = { depthTest: { enabled: true }, depthMask: false, blending: BlendingState.ALPHA_BLEND };
  appearance.getRenderState = () => ({ ...state });
  return appearance;
}

/** The engine's own, but for the distance from the middle, in pixels, by which edges are smooth. */
const STROKE_VERTEX = `#define CLIP_POLYLINE
${POLYLINE_COMMON}
in vec3 position3DHigh;
in vec3 position3DLow;
in vec3 prevPosition3DHigh;
in vec3 prevPosition3DLow;
in vec3 nextPosition3DHigh;
in vec3 nextPosition3DLow;
in vec2 expandAndWidth;
in vec4 color;
in float batchId;
out vec4 v_color;
out vec2 v_across;

void main() {
  float half_px = abs(expandAndWidth.y) * 0.5;
  float wide_px = half_px + 0.5 / czm_pixelRatio;
  float angle;
  vec4 window = getPolylineWindowCoordinates(
    czm_computePosition(), czm_computePrevPosition(), czm_computeNextPosition(),
    expandAndWidth.x, wide_px * 2.0, expandAndWidth.y < 0.0, angle);
  gl_Position = czm_viewportOrthographic * window;
  v_color = color;
  v_across = vec2(expandAndWidth.x * wide_px, half_px) * czm_pixelRatio;
}
`;

const STROKE_FRAGMENT = `in vec4 v_color;
in vec2 v_across;

void main() {
  float cover = clamp(v_across.y + 0.5 - abs(v_across.x), 0.0, 1.0);
  out_FragColor = vec4(v_color.rgb, v_color.a * cover);
}
`;

const FILLED = onTheGround(new PerInstanceColorAppearance({ flat: true, translucent: false }));
const STROKED = onTheGround(
  new Appearance({
    translucent: false,
    vertexShaderSource: STROKE_VERTEX,
    fragmentShaderSource: STROKE_FRAGMENT,
  }),
);

function numbers(values: Float64Array | Float32Array, each: number): GeometryAttribute {
  const componentDatatype = values instanceof Float64Array ? ComponentDatatype.DOUBLE : ComponentDatatype.FLOAT;
  return new GeometryAttribute({ componentDatatype, componentsPerAttribute: each, values });
}

function geometryOf(attributes: Record<string, GeometryAttribute>, indices: Uint32Array): Geometry {
  const places = attributes.position?.values as unknown as number[];
  return new Geometry({
    attributes: attributes as unknown as Geometry["attributes"],
    indices,
    primitiveType: PrimitiveType.TRIANGLES,
    boundingSphere: BoundingSphere.fromVertices(places),
  });
}

/** One shape in a primitive. `id`: what a click on it gives. */
export interface Part {
  readonly id: object;
  readonly color: Color;
}

export interface StrokePart extends Part {
  readonly paths: readonly Path[];
  readonly width_px: number;
}

export interface FillPart extends Part {
  readonly fill: Fill;
}

function primitiveOf(
  geometries: readonly [Part, Geometry][],
  appearance: Appearance,
  allowPicking: boolean,
): Primitive {
  const geometryInstances = geometries.map(
    ([{ id, color }, geometry]) =>
      new GeometryInstance({ id, geometry, attributes: { color: ColorGeometryInstanceAttribute.fromColor(color) } }),
  );
  return new Primitive({ geometryInstances, appearance, allowPicking, asynchronous: false, compressVertices: false });
}

export function strokes(parts: readonly StrokePart[], allowPicking = true): Primitive {
  const geometries = parts.map((part): [Part, Geometry] => {
    const { at, before, after, side, triangles } = ribbonOf(part.paths, part.width_px);
    const attributes = {
      position: numbers(at, 3),
      prevPosition: numbers(before, 3),
      nextPosition: numbers(after, 3),
      expandAndWidth: numbers(side, 2),
    };
    return [part, geometryOf(attributes, triangles)];
  });
  return primitiveOf(geometries, STROKED, allowPicking);
}

export function fills(parts: readonly FillPart[]): Primitive {
  const geometries = parts.map((part): [Part, Geometry] => {
    const { places, triangles } = part.fill;
    return [part, geometryOf({ position: numbers(places, 3) }, triangles)];
  });
  return primitiveOf(geometries, FILLED, true);
}

/** False while the primitive was not drawn yet: its colours cannot be changed then. */
export function recolor(primitive: Primitive, id: object, color: Color): boolean {
  if (!primitive.ready) return false;
  const attributes = primitive.getGeometryInstanceAttributes(id) as { color: Uint8Array } | undefined;
  if (!attributes) return false;
  attributes.color = ColorGeometryInstanceAttribute.toValue(color);
  return true;
}
