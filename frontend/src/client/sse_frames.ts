/** Reads one message of `/api/events` into a typed value; unknown messages become `unknown`, never an exception. */
import { type CityPatch, readLegacyPatch, readPatch } from "./city_wire";
import { type Cursor, parseCursor } from "./cursor";
import { finite, type Raw, record, text, texts, whole } from "./parse";

/** Where an event stands in its city's run, even if what it says cannot be read. */
export interface CityStep {
  city: string;
  revision: number | null;
  prev_revision: number | null;
  epoch: string | null;
  /** Null: a version of the schema, or a value, that this page does not know. */
  patch: CityPatch | null;
}

export type SseFrame =
  | {
      kind: "connected";
      epoch: string;
      revision: number;
      cities: ReadonlyMap<string, number>;
      heartbeat_s: number;
      /** The server's hint how to correct the request. */
      hint: string | null;
    }
  | { kind: "step"; step: CityStep; label: string }
  | { kind: "heartbeat"; cursor: Cursor | number | null }
  | { kind: "resync"; reason: string; latest_revision: number | null; cities: readonly string[] }
  | { kind: "unknown"; label: string };

const PATCH = "city_observation_patch.v1";
const HEARTBEAT_S = 30;

function connected(frame: Raw): SseFrame {
  const cities = new Map<string, number>();
  for (const [city, revision] of Object.entries(record(frame.cities) ?? {})) {
    const read = whole(revision);
    if (read !== null) cities.set(city, read);
  }
  return {
    kind: "connected",
    epoch: text(frame.epoch) ?? "",
    revision: whole(frame.revision) ?? 0,
    cities,
    heartbeat_s: Math.max(1, finite(frame.heartbeat_s) ?? HEARTBEAT_S),
    hint: text(record(frame.hint)?.text),
  };
}

function step(frame: Raw, type: string): SseFrame {
  const city = text(frame.city)?.trim().toLowerCase();
  if (!city) return { kind: "unknown", label: type };
  const version = frame.schema_version ?? 1;
  const known = type === "city_patch" || (type === PATCH && version === 1);
  const patch = known ? (type === PATCH ? readPatch(frame) : readLegacyPatch(frame)) : null;
  return {
    kind: "step",
    label: known ? type : `${type} (schema ${String(version)})`,
    step: {
      city,
      revision: whole(frame.revision),
      prev_revision: whole(frame.prev_revision),
      epoch: text(frame.epoch),
      patch,
    },
  };
}

export function parseSseFrame(data: string): SseFrame {
  let frame: Raw | null = null;
  try {
    frame = record(JSON.parse(data));
  } catch {
    return { kind: "unknown", label: "not JSON" };
  }
  const type = text(frame?.type);
  if (!frame || type === null) return { kind: "unknown", label: "without a type" };
  switch (type) {
    case "connected":
      return connected(frame);
    case "heartbeat":
      return { kind: "heartbeat", cursor: parseCursor(frame.cursor) ?? whole(frame.cursor) };
    case "resync_required":
      return {
        kind: "resync",
        reason: text(frame.reason) ?? "unknown",
        latest_revision: whole(frame.latest_revision),
        cities: texts(frame.cities),
      };
    default:
      return step(frame, type);
  }
}
