/** A Cesium scene of our own: no ion, no entities, no logo, nothing fetched but what is on this server. */
import {
  Cartesian3,
  Math as CesiumMath,
  Color,
  Credit,
  CreditDisplay,
  Globe as EarthSurface,
  Ellipsoid,
  Ion,
  JulianDate,
  PerspectiveFrustum,
  Scene,
  SkyAtmosphere,
  Transforms,
} from "@cesium/engine";

/** Enough for text-sharp points; more costs fill rate and is not seen. */
const MOST_PIXEL_RATIO = 2;

export interface GlobeScene {
  readonly scene: Scene;
  readonly canvas: HTMLCanvasElement;
  /** Frames really drawn. */
  readonly frames: number;
  onFrame(listener: () => void): void;
  destroy(): void;
}

/** What a widget would call on its scene; the type declarations leave it out. */
interface DrivenScene extends Scene {
  pixelRatio: number;
  initializeFrame(): void;
}

function goOffline(): void {
  Ion.defaultAccessToken = "";
  CreditDisplay.cesiumCredit = new Credit("");
  // Precession tables matter for star catalogues; without them the sun's direction falls back to the simpler rotation.
  const tables = Transforms as unknown as { iau2006XysData: { computeXysRadians(): undefined } };
  tables.iau2006XysData = { computeXysRadians: () => undefined };
}

function dress(scene: Scene): void {
  const surface = new EarthSurface(Ellipsoid.WGS84);
  surface.baseColor = Color.fromCssColorString("#0b1219");
  surface.showGroundAtmosphere = false;
  surface.enableLighting = false;
  surface.tileCacheSize = 120;
  scene.globe = surface;
  scene.backgroundColor = Color.fromCssColorString("#05080b");
  const air = new SkyAtmosphere(Ellipsoid.WGS84);
  air.perFragmentAtmosphere = false;
  air.saturationShift = 0.1;
  air.brightnessShift = -0.55;
  scene.skyAtmosphere = air;
  scene.fog.enabled = false;
  const control = scene.screenSpaceCameraController;
  control.enableLook = false;
  control.minimumZoomDistance = 60_000;
  control.maximumZoomDistance = 250_000_000;
  scene.camera.constrainedAxis = Cartesian3.UNIT_Z;
}

function resize(scene: DrivenScene, canvas: HTMLCanvasElement): boolean {
  const ratio = Math.min(window.devicePixelRatio || 1, MOST_PIXEL_RATIO);
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (width === 0 || height === 0) return false;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
    scene.pixelRatio = ratio;
    if (scene.camera.frustum instanceof PerspectiveFrustum) scene.camera.frustum.aspectRatio = width / height;
    scene.requestRender();
  }
  return true;
}

/** How far above the surface the whole disc fills this share of the shorter side. */
export function heightForDisc_m(
  width: number,
  height: number,
  share: number,
  fov_rad = CesiumMath.toRadians(60),
): number {
  // The field of view is that of the longer side.
  const across = Math.tan(fov_rad / 2) * (Math.min(width, height) / Math.max(width, height));
  const half = Math.atan(across * share);
  return 6_378_137 / Math.sin(half) - 6_378_137;
}

/** Throws when the browser has no WebGL. */
export function createScene(container: HTMLElement): GlobeScene {
  goOffline();
  const canvas = document.createElement("canvas");
  canvas.className = "globe__canvas";
  canvas.oncontextmenu = () => false;
  container.append(canvas);
  const scene = new Scene({
    canvas,
    creditContainer: document.createElement("div"),
    scene3DOnly: true,
    requestRenderMode: true,
    maximumRenderTimeChange: Number.POSITIVE_INFINITY,
    orderIndependentTranslucency: false,
    msaaSamples: 1,
  }) as DrivenScene;
  dress(scene);
  resize(scene, canvas);
  let frames = 0;
  const listeners: (() => void)[] = [];
  const unlisten = scene.postRender.addEventListener(() => {
    frames += 1;
    for (const listener of listeners) listener();
  });
  let handle = requestAnimationFrame(loop);

  function loop(): void {
    handle = requestAnimationFrame(loop);
    if (!resize(scene, canvas)) return;
    scene.initializeFrame();
    scene.render(JulianDate.now());
  }

  return {
    scene,
    canvas,
    get frames() {
      return frames;
    },
    onFrame: (listener) => void listeners.push(listener),
    destroy() {
      cancelAnimationFrame(handle);
      unlisten();
      scene.destroy();
      canvas.remove();
    },
  };
}
