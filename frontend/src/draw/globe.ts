/** The globe: layers on the drawn Earth, rendered only when something changed. The one door to Cesium. */
import {
  Cartesian3,
  Cartographic,
  Math as CesiumMath,
  Color,
  PointPrimitiveCollection,
  type Primitive,
  PrimitiveCollection,
} from "@cesium/engine";
import type { Look } from "../data/presentation";
import { basemapLayer, loadBasemap } from "./globe_basemap";
import { createCamera, type GlobeCamera } from "./globe_camera";
import { onClick } from "./globe_pick";
import { createPointLayer, type PointId, type PointLayer } from "./globe_points";
import { createScene, type GlobeScene } from "./globe_scene";
import { createShapeLayer, type DrawnShape, type ShapeLayer } from "./globe_shapes";
import type { DrawFeature } from "./layer_style";
import { createPropagator, type Propagator, type WorkerLike } from "./propagator";
import { isShapeKind, shapeOf } from "./shape";
import { createTicker, type Ticker } from "./ticker";

/** Looks that depend on age change this often. */
const RESTYLE_MS = 60_000;

export interface GlobePlace {
  lat: number;
  lon: number;
  altitude_m: number;
  /** How far a line or an area reaches from there. */
  extent_m: number;
}

export interface GlobeEvents {
  /** A click: on an object, or null for none. */
  onPick(picked: PointId | null): void;
  /** Counts or places changed. */
  onTick?(at_ms: number): void;
  onError(reason: string): void;
}

export interface Globe {
  readonly camera: GlobeCamera;
  readonly frames: number;
  /** The map is drawn and nothing is being loaded for the present view. */
  readonly ready: boolean;
  /** Time of the positions shown. */
  readonly at_ms: number;
  /** `kind`: of the layer; things of a `line` or an `area` are drawn by their geometry, those without one as points. */
  setFeatures(layer: string, features: readonly DrawFeature[], look: Look, kind: string): void;
  setVisible(layer: string, visible: boolean): void;
  /** Things on the globe, -1 for a layer that was never given. */
  count(layer: string): number;
  /** Objects of a moving layer that have no position, e.g. unusable elements. */
  missing(layer: string): number;
  placeOf(layer: string, feature: string): GlobePlace | null;
  select(picked: PointId | null): void;
  setPaused(paused: boolean): void;
  destroy(): void;
}

interface Held {
  points: PointLayer;
  shapes: ShapeLayer;
  missing: number;
  version: number;
}

function spawnWorker(): WorkerLike {
  return new Worker(new URL("./propagation_worker.ts", import.meta.url), { type: "module" }) as unknown as WorkerLike;
}

/** A ring round the selected object. */
function createMarker(): PointPrimitiveCollection {
  const marker = new PointPrimitiveCollection();
  marker.add({
    show: false,
    pixelSize: 13,
    color: Color.TRANSPARENT,
    outlineColor: Color.fromCssColorString("#ffffff"),
    outlineWidth: 1.5,
  });
  return marker;
}

/** What is drawn by its geometry, and what as a point. */
function divided(features: readonly DrawFeature[], kind: string) {
  if (!isShapeKind(kind)) return { rest: features, shapes: [] };
  const rest: DrawFeature[] = [];
  const shapes: DrawnShape[] = [];
  for (const feature of features) {
    const shape = shapeOf(kind, feature.data);
    if (shape) shapes.push({ feature, shape });
    else rest.push(feature);
  }
  return { rest, shapes };
}

/** Throws when there is no WebGL; then nothing is left behind. */
export function createGlobe(container: HTMLElement, events: GlobeEvents): Globe {
  const stage: GlobeScene = createScene(container);
  const { scene, canvas } = stage;
  const camera = createCamera(scene, canvas);
  const layers = new Map<string, Held>();
  const [areas, lines, chosen, points] = [1, 2, 3, 4].map(
    () => scene.primitives.add(new PrimitiveCollection()) as PrimitiveCollection,
  ) as [PrimitiveCollection, PrimitiveCollection, PrimitiveCollection, PrimitiveCollection];
  const marker = scene.primitives.add(createMarker()) as PointPrimitiveCollection;
  const stopMap = new AbortController();
  let selected: PointId | null = null;
  let mapDrawn = false;
  let tilesPending = 0;
  let restyled_ms = Date.now();

  const propagator: Propagator = createPropagator(spawnWorker(), {
    onPositions({ layer, buffer, missing }, at_ms) {
      const held = layers.get(layer);
      if (!held) return;
      held.points.setPositions(new Float32Array(buffer));
      held.missing = missing;
      changed(at_ms);
    },
    onError: events.onError,
  });

  const ticker: Ticker = createTicker({
    now: () => Date.now(),
    setTimer: (callback, delay_ms) => window.setTimeout(callback, delay_ms),
    clearTimer: (timer) => window.clearTimeout(timer),
    isHidden: () => document.hidden,
    onTick(at_ms) {
      propagator.tick(at_ms);
      if (Date.now() - restyled_ms >= RESTYLE_MS) restyle();
    },
  });

  function restyle(): void {
    restyled_ms = Date.now();
    for (const { points, shapes } of layers.values()) {
      points.restyle(restyled_ms);
      shapes.restyle(restyled_ms);
    }
    scene.requestRender();
  }

  function changed(at_ms: number): void {
    mark();
    scene.requestRender();
    events.onTick?.(at_ms);
  }

  function mark(): void {
    const point = marker.get(0);
    const place = selected && layers.get(selected.layer)?.points.placeOf(selected.feature);
    point.show = Boolean(place && selected && layers.get(selected.layer)?.points.collection.show);
    if (place) point.position = place;
    chosen.show = Boolean(selected && layers.get(selected.layer)?.shapes.strokes.show);
  }

  /** The chosen line, or the border of the chosen area, drawn once more. */
  function choose(): void {
    chosen.removeAll();
    const mark: Primitive | null = (selected && layers.get(selected.layer)?.shapes.markOf(selected.feature)) ?? null;
    if (mark) chosen.add(mark);
  }

  function layerOf(id: string): Held {
    const known = layers.get(id);
    if (known) return known;
    const made: Held = { points: createPointLayer(id), shapes: createShapeLayer(id), missing: 0, version: 0 };
    points.add(made.points.collection);
    lines.add(made.shapes.strokes);
    areas.add(made.shapes.fills);
    layers.set(id, made);
    return made;
  }

  function feedWorker(id: string, held: Held): void {
    held.version += 1;
    held.missing = 0;
    const { elements } = held.points;
    if (elements.length === 0) {
      propagator.drop(id);
      return;
    }
    propagator.load(id, held.version, elements);
    ticker.poke();
  }

  const stopClicks = onClick(stage, [points, lines, areas], events.onPick);

  const onKey = (event: KeyboardEvent) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey && camera.key(event.key)) event.preventDefault();
  };
  const onVisibility = () => ticker.visibilityChanged();
  container.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", onVisibility);
  const onTiles = (pending: number) => {
    tilesPending = pending;
  };
  scene.globe.tileLoadProgressEvent.addEventListener(onTiles);
  stage.onFrame(() => {
    mapDrawn ||= scene.imageryLayers.length > 0 && tilesPending === 0 && scene.globe.tilesLoaded;
  });

  function showMap(map: Awaited<ReturnType<typeof loadBasemap>> | null): void {
    if (stopMap.signal.aborted) return;
    scene.imageryLayers.add(basemapLayer(map));
    scene.requestRender();
  }
  loadBasemap(stopMap.signal).then(showMap, (error: unknown) => {
    if (!stopMap.signal.aborted) events.onError(String(error));
    showMap(null);
  });
  camera.home(false);

  return {
    camera,
    get frames() {
      return stage.frames;
    },
    get ready() {
      return mapDrawn && tilesPending === 0;
    },
    get at_ms() {
      return ticker.at_ms;
    },
    setFeatures(id, features, look, kind) {
      const held = layerOf(id);
      const { rest, shapes } = divided(features, kind);
      held.points.setFeatures(rest, look, Date.now());
      held.shapes.setShapes(shapes, look, Date.now());
      feedWorker(id, held);
      choose();
      changed(ticker.at_ms);
    },
    setVisible(id, visible) {
      const { points: drawn, shapes } = layerOf(id);
      drawn.collection.show = visible;
      shapes.setVisible(visible);
      changed(ticker.at_ms);
    },
    count(id) {
      const held = layers.get(id);
      return held ? held.points.count + held.shapes.count : -1;
    },
    missing: (id) => layers.get(id)?.missing ?? 0,
    placeOf(id, feature) {
      const shape = layers.get(id)?.shapes.placeOf(feature);
      const place = shape?.place ?? layers.get(id)?.points.placeOf(feature);
      if (!place || Cartesian3.equals(place, Cartesian3.ZERO)) return null;
      const { latitude, longitude, height } = Cartographic.fromCartesian(place);
      return {
        lat: CesiumMath.toDegrees(latitude),
        lon: CesiumMath.toDegrees(longitude),
        altitude_m: height,
        extent_m: shape?.extent_m ?? 0,
      };
    },
    select(picked) {
      selected = picked;
      choose();
      changed(ticker.at_ms);
    },
    setPaused: (paused) => ticker.setPaused(paused),
    destroy() {
      stopMap.abort();
      ticker.stop();
      propagator.stop();
      stopClicks();
      container.removeEventListener("keydown", onKey);
      document.removeEventListener("visibilitychange", onVisibility);
      scene.globe.tileLoadProgressEvent.removeEventListener(onTiles);
      stage.destroy();
    },
  };
}
