/** Reads one text frame of `/ws` into a typed value; unknown messages become `unknown`, never an exception. */
import { type Cursor, parseCursor } from "./cursor";
import type { EarthEvent, JobRow, LayerChanged, Strategy } from "./earth_types";
import { jobRow } from "./job_wire";
import { finite, oneOf, type Raw, record, text, texts, whole } from "./parse";

export type Frame =
  | { kind: "connected"; epoch: string | null }
  | { kind: "subscribed"; head: Cursor | number | null }
  | { kind: "event"; event: EarthEvent }
  | { kind: "job"; job: JobRow }
  | { kind: "resync"; channel: string | null; reason: string }
  | { kind: "heartbeat"; cursor: Cursor | null }
  | { kind: "layers"; revision: number }
  | { kind: "error"; code: string }
  | { kind: "unknown"; label: string };

const STRATEGIES: readonly Strategy[] = ["clear_then_reload", "reload", "delta"];

function layerChanged(data: Raw): LayerChanged | null {
  const layers = texts(data.layers);
  if (data.event !== "earth.layer.changed" || layers.length === 0) return null;
  return {
    layers,
    // A strategy of a later version still means "your picture is old": the plain reload is right for it.
    refresh_strategy: oneOf(data.refresh_strategy, STRATEGIES) ?? "reload",
    action: text(data.action) ?? "database_changed",
    source: text(data.source),
    operation: text(data.operation),
    records_processed: finite(data.records_processed) ?? 0,
    occurred_at: text(data.occurred_at) ?? "",
    delta: { upsert: texts(record(data.delta)?.upsert), remove: texts(record(data.delta)?.remove) },
  };
}

function earthEvent(frame: Raw, data: Raw): EarthEvent | null {
  const epoch = text(frame.epoch);
  const revision = whole(frame.revision);
  const change = layerChanged(data);
  if (epoch === null || revision === null || change === null) return null;
  return { epoch, revision, prev_revision: whole(frame.prev_revision) ?? 0, change };
}

function channelFrame(frame: Raw, channel: string): Frame {
  const data = record(frame.data);
  if (data && channel === "earth_updates") {
    const event = earthEvent(frame, data);
    if (event) return { kind: "event", event };
  }
  if (data && channel === "datasource_tasks") {
    const job = jobRow(data);
    if (job) return { kind: "job", job };
  }
  return { kind: "unknown", label: channel };
}

/** The head of the log of `earth_updates`: a full cursor, a bare revision of the present epoch, or absent. */
function earthHead(frame: Raw): Cursor | number | null {
  const head = record(frame.heads)?.earth_updates;
  return parseCursor(head) ?? whole(head);
}

function controlFrame(frame: Raw, type: string): Frame {
  switch (type) {
    case "connected":
      return { kind: "connected", epoch: text(frame.epoch) };
    case "subscribed":
      return { kind: "subscribed", head: earthHead(frame) };
    case "resync_required":
      return { kind: "resync", channel: text(frame.channel), reason: text(frame.reason) ?? "unknown" };
    case "heartbeat":
      return { kind: "heartbeat", cursor: parseCursor(frame.cursor) };
    case "layers_changed":
      return { kind: "layers", revision: whole(frame.revision) ?? 0 };
    case "error":
      return { kind: "error", code: text(frame.code) ?? "unknown" };
    default:
      return { kind: "unknown", label: type };
  }
}

export function parseFrame(body: unknown): Frame {
  let frame: Raw | null = null;
  try {
    frame = typeof body === "string" ? record(JSON.parse(body)) : null;
  } catch {
    return { kind: "unknown", label: "not JSON" };
  }
  if (frame === null) return { kind: "unknown", label: "not an object" };
  const channel = text(frame.channel);
  const type = text(frame.type);
  if (type !== null) return controlFrame(frame, type);
  if (channel !== null) return channelFrame(frame, channel);
  return { kind: "unknown", label: "neither type nor channel" };
}
