/** SGP4 for a whole catalogue: mean elements in, Earth-fixed positions out. Bad records drop alone, with a reason. */
import { gstime, json2satrec, type OMMJsonObject, propagate, type SatRec } from "satellite.js";

export interface BadElement {
  /** Place in the list that was loaded. */
  index: number;
  reason: string;
}

export interface ElementSet {
  /** One slot per record, null where the record could not be used. */
  readonly satrecs: readonly (SatRec | null)[];
  readonly bad: readonly BadElement[];
}

const NUMBERS = [
  "MEAN_MOTION",
  "ECCENTRICITY",
  "INCLINATION",
  "RA_OF_ASC_NODE",
  "ARG_OF_PERICENTER",
  "MEAN_ANOMALY",
  "BSTAR",
] as const;

/** Objects in orbit lie between the lowest perigee that survives a turn and far above the geostationary ring. */
const LEAST_RADIUS_KM = 6_378.135 + 60;
const MOST_RADIUS_KM = 1_000_000;

/** Why the record cannot be propagated, or null. */
export function elementFault(record: unknown): string | null {
  if (typeof record !== "object" || record === null) return "not_an_object";
  const values = record as Record<string, unknown>;
  if (Number.isNaN(Date.parse(zoned(values.EPOCH)))) return "bad_epoch";
  const missing = NUMBERS.find(
    (key) => values[key] === null || values[key] === "" || !Number.isFinite(Number(values[key])),
  );
  if (missing) return `bad_${missing.toLowerCase()}`;
  if (values.NORAD_CAT_ID === undefined || values.NORAD_CAT_ID === null) return "bad_norad_cat_id";
  return null;
}

function zoned(epoch: unknown): string {
  if (typeof epoch !== "string") return "";
  return epoch.endsWith("Z") ? epoch : `${epoch}Z`;
}

function satrecOf(record: unknown): SatRec | string {
  const fault = elementFault(record);
  if (fault) return fault;
  try {
    const values = record as Record<string, unknown>;
    const complete = { MEAN_MOTION_DOT: 0, MEAN_MOTION_DDOT: 0, ...values } as unknown as OMMJsonObject;
    const satrec = json2satrec(complete);
    return satrec.error ? `sgp4_${satrec.error}` : satrec;
  } catch {
    return "bad_elements";
  }
}

export function loadElements(records: readonly unknown[]): ElementSet {
  const bad: BadElement[] = [];
  const satrecs = records.map((record, index) => {
    const satrec = satrecOf(record);
    if (typeof satrec !== "string") return satrec;
    bad.push({ index, reason: satrec });
    return null;
  });
  return { satrecs, bad };
}

/**
 * Writes x, y, z of each record in metres, Earth-fixed (TEME turned by sidereal time; polar motion, under 20 m, is
 * left out), NaN where there is no position. Returns how many have none. `out` holds three numbers a record.
 */
export function propagateAll(set: ElementSet, at_ms: number, out: Float32Array): number {
  const at = new Date(at_ms);
  const angle = gstime(at);
  const cos = Math.cos(angle);
  const sin = Math.sin(angle);
  let missing = 0;
  for (let index = 0; index < set.satrecs.length; index += 1) {
    const satrec = set.satrecs[index];
    const place = satrec ? positionOf(satrec, at) : null;
    const offset = index * 3;
    if (place === null) missing += 1;
    out[offset] = place ? (place.x * cos + place.y * sin) * 1_000 : Number.NaN;
    out[offset + 1] = place ? (place.y * cos - place.x * sin) * 1_000 : Number.NaN;
    out[offset + 2] = place ? place.z * 1_000 : Number.NaN;
  }
  return missing;
}

/** TEME, km; null when the model failed, the object has decayed, or the result is no orbit. */
function positionOf(satrec: SatRec, at: Date): { x: number; y: number; z: number } | null {
  const place = propagate(satrec, at, { communityDecayCheckEnabled: true })?.position;
  if (!place) return null;
  const radius_km = Math.hypot(place.x, place.y, place.z);
  return radius_km >= LEAST_RADIUS_KM && radius_km <= MOST_RADIUS_KM ? place : null;
}
