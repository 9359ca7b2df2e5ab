/** Moving the view without a mouse: home, zoom steps, arrow keys. */
import { Cartesian3, Math as CesiumMath, PerspectiveFrustum, type Scene } from "@cesium/engine";
import { heightForDisc_m } from "./globe_scene";

/** Share of the shorter side that the disc takes: room is left for the geostationary ring's front. */
const DISC_SHARE = 0.72;
const ZOOM_STEP = 0.35;
const HOME_LAT_DEG = 18;
const FLY_LEAST_M = 3_500_000;
const FLY_MOST_M = 70_000_000;
const TALL_SHIFT = 0.2;
const METRES_PER_DEG = 111_000;
/** Height for each metre that a shape reaches: at the usual 60° across it then takes two thirds of the shorter side. */
const EXTENT_SHARE = 2.6;

export interface GlobeCamera {
  /** The view at the start: the person's own longitude, by the browser's time zone. */
  home(animated: boolean): void;
  zoom(direction: 1 | -1): void;
  /** Over a place, from far enough that it, what is around it, and all that reaches so far from it are seen. */
  fly(lat: number, lon: number, altitude_m: number, extent_m?: number): void;
  /** True when the key moved the view. */
  key(name: string): boolean;
}

/** Where it is noon when a clock with this offset says so: a guess of where the person is, without asking. */
export function homeLongitude_deg(timezoneOffset_min: number): number {
  return Math.max(-180, Math.min(180, -timezoneOffset_min / 4));
}

/** A flight takes no time for those who asked for less motion: they are there at once. */
function seconds(usual: number): number {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : usual;
}

export function createCamera(scene: Scene, canvas: HTMLCanvasElement): GlobeCamera {
  const { camera } = scene;

  function height_m(): number {
    return camera.positionCartographic.height;
  }

  function homePlace(): Cartesian3 {
    const lon = homeLongitude_deg(new Date().getTimezoneOffset());
    const fov = camera.frustum instanceof PerspectiveFrustum ? camera.frustum.fov : undefined;
    const height = heightForDisc_m(canvas.clientWidth || 1, canvas.clientHeight || 1, DISC_SHARE, fov);
    return Cartesian3.fromDegrees(lon, HOME_LAT_DEG, height);
  }

  function zoom(direction: 1 | -1): void {
    const step = height_m() * ZOOM_STEP;
    if (direction > 0) camera.zoomIn(step);
    else camera.zoomOut(step);
    scene.requestRender();
  }

  function turn(right: number, up: number): void {
    // Near the ground a whole 15° would be a jump across a continent.
    const angle = CesiumMath.toRadians(15) * Math.min(1, height_m() / 12_000_000);
    if (right !== 0) camera.rotateRight(-right * angle);
    if (up !== 0) camera.rotateUp(-up * angle);
    scene.requestRender();
  }

  const keys = new Map<string, () => void>([
    ["ArrowLeft", () => turn(-1, 0)],
    ["ArrowRight", () => turn(1, 0)],
    ["ArrowUp", () => turn(0, 1)],
    ["ArrowDown", () => turn(0, -1)],
    ["+", () => zoom(1)],
    ["=", () => zoom(1)],
    ["-", () => zoom(-1)],
    ["0", () => home(true)],
  ]);

  function home(animated: boolean): void {
    const destination = homePlace();
    if (animated) camera.flyTo({ destination, duration: seconds(0.7) });
    else camera.setView({ destination });
    scene.requestRender();
  }

  /** On a tall screen the card covers the lower half: the place belongs into the upper one. */
  function below_deg(distance_m: number): number {
    if (canvas.clientHeight <= canvas.clientWidth) return 0;
    const fovy = camera.frustum instanceof PerspectiveFrustum ? (camera.frustum.fovy ?? 1) : 1;
    return Math.min(40, (TALL_SHIFT * 2 * distance_m * Math.tan(fovy / 2)) / METRES_PER_DEG);
  }

  function fly(lat: number, lon: number, altitude_m: number, extent_m = 0): void {
    const least_m = Math.max(FLY_LEAST_M, extent_m * EXTENT_SHARE);
    const height = Math.min(FLY_MOST_M, Math.max(least_m, altitude_m * 1.4 + 2_000_000));
    const destination = Cartesian3.fromDegrees(lon, Math.max(-85, lat - below_deg(height - altitude_m)), height);
    camera.flyTo({ destination, duration: seconds(0.9) });
    scene.requestRender();
  }

  return {
    home,
    zoom,
    fly,
    key(name) {
      keys.get(name)?.();
      return keys.has(name);
    },
  };
}
