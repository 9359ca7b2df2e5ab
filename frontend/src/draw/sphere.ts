/**
 * Directions from the centre of the Earth, where neither the poles nor ±180° are special. A direction is that of the
 * vertical at a place (of length one), so that latitudes are those of maps, and `surface` puts it on the ellipsoid.
 */

export type Vector = readonly [x: number, y: number, z: number];
/** Longitude and latitude in degrees, as in GeoJSON. */
export type Position = readonly [lon: number, lat: number];

const DEG = Math.PI / 180;
/** WGS 84, metres. */
const EQUATOR_M = 6_378_137;
const POLE_M = 6_356_752.314245;

export function direction([lon, lat]: Position): Vector {
  const north = Math.cos(lat * DEG);
  return [north * Math.cos(lon * DEG), north * Math.sin(lon * DEG), Math.sin(lat * DEG)];
}

export function dot(a: Vector, b: Vector): number {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

export function cross(a: Vector, b: Vector): Vector {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** Null for what is too short to have a direction. */
export function unit([x, y, z]: Vector): Vector | null {
  const length = Math.hypot(x, y, z);
  return length > 1e-9 ? [x / length, y / length, z / length] : null;
}

/** Radians; exact for small angles too. */
export function angle(a: Vector, b: Vector): number {
  return Math.atan2(Math.hypot(...cross(a, b)), dot(a, b));
}

/** So much of the shortest way from `a` to `b`; of two opposite directions, of which every way is, over a third. */
export function between(a: Vector, b: Vector, share: number): Vector {
  const whole = angle(a, b);
  const sine = Math.sin(whole);
  if (sine < 1e-9) return whole < 1 ? a : opposite(a, share);
  const [first, second] = [Math.sin((1 - share) * whole) / sine, Math.sin(share * whole) / sine];
  return [a[0] * first + b[0] * second, a[1] * first + b[1] * second, a[2] * first + b[2] * second];
}

function opposite(a: Vector, share: number): Vector {
  const third = unit(cross(a, Math.abs(a[2]) < 0.9 ? [0, 0, 1] : [1, 0, 0])) ?? a;
  const [there, aside] = [Math.cos(share * Math.PI), Math.sin(share * Math.PI)];
  return [a[0] * there + third[0] * aside, a[1] * there + third[1] * aside, a[2] * there + third[2] * aside];
}

/** Writes the place on the Earth's surface with this vertical: three numbers, metres, Earth-fixed. */
export function surface([x, y, z]: Vector, into: Float64Array, at: number): void {
  const [a2, b2] = [EQUATOR_M * EQUATOR_M, POLE_M * POLE_M];
  const length = Math.sqrt(a2 * (x * x + y * y) + b2 * z * z);
  into[at] = (a2 * x) / length;
  into[at + 1] = (a2 * y) / length;
  into[at + 2] = (b2 * z) / length;
}

/** The same difference of longitudes in -180 … 180. */
export function shortWay(east: number): number {
  return east >= -180 && east <= 180 ? east : ((((east + 180) % 360) + 360) % 360) - 180;
}
