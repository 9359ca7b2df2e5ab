/** The layer registry and the snapshot of one layer over HTTP. */
import type { Feature, LayerInfo, LayerState, Provenance, Snapshot } from "./earth_types";
import { type Http, HttpError } from "./http";
import { finite, oneOf, type Raw, record, text, texts, whole } from "./parse";
import { card, look } from "./presentation_wire";

const STATES: readonly LayerState[] = ["live", "stale", "empty", "unavailable", "simulated"];

/** A snapshot of 12,000 objects over a slow line is several seconds of bytes. */
const SNAPSHOT_TIMEOUT_MS = 30_000;

export function provenance(value: unknown): Provenance {
  const raw = record(value);
  return {
    publisher: text(raw?.publisher) ?? "",
    licence: text(raw?.licence) ?? "",
    coverage: text(raw?.coverage) ?? "",
    limits: text(raw?.limits) ?? "",
    zh: record(raw?.zh) ? provenance(raw?.zh) : null,
  };
}

function layerInfo(value: unknown): LayerInfo | null {
  const raw = record(value);
  const id = text(raw?.id);
  if (raw === null || id === null) return null;
  const title = text(raw.title) ?? id;
  return {
    id,
    title,
    title_zh: text(raw.title_zh) ?? title,
    group: text(raw.group) ?? "",
    kind: text(raw.kind) ?? "",
    sources: texts(raw.sources),
    provenance: provenance(raw.provenance),
    look: look(raw.look),
    card: card(raw.card),
    count: whole(raw.count) ?? 0,
    state: oneOf(raw.state, STATES) ?? "unavailable",
    last_success_at: text(raw.last_success_at) ?? text(raw.last_success),
    stale_after_s: finite(raw.stale_after_s),
  };
}

export interface LayerList {
  readonly layers: readonly LayerInfo[];
  /** Of the declared sources that the server knew when it answered; 0 when it does not say. */
  readonly revision: number;
}

export async function fetchLayers(http: Http): Promise<LayerList> {
  const body = await http.get<unknown>("/api/v1/layers", { cache: "no-cache" });
  const list = Array.isArray(body) ? body : (record(body)?.items ?? record(body)?.layers);
  return {
    layers: Array.isArray(list) ? list.flatMap((item) => layerInfo(item) ?? []) : [],
    revision: whole(record(body)?.declared_revision) ?? 0,
  };
}

export function isFeature(value: unknown): value is Feature {
  const raw = record(value);
  return raw !== null && typeof raw.id === "string" && record(raw.data) !== null;
}

function snapshot(raw: Raw, layer: string): Snapshot {
  const epoch = text(raw.epoch);
  const revision = whole(raw.revision);
  if (epoch === null || revision === null || !Array.isArray(raw.features)) {
    throw new HttpError(200, "bad_snapshot", `the snapshot of ${layer} has no cursor or no features`);
  }
  const features = raw.features.filter(isFeature);
  return {
    layer,
    epoch,
    revision,
    generated_at: text(raw.generated_at) ?? "",
    state: oneOf(raw.state, STATES) ?? "live",
    count: features.length,
    total: whole(raw.total) ?? features.length,
    truncated: raw.truncated === true,
    features,
  };
}

export interface SnapshotOptions {
  /** Bypasses every cache; without it the browser revalidates its ETag, and a 304 has no body. */
  bypass: boolean;
  signal: AbortSignal;
}

/** Rejects with HttpError `bad_snapshot` when the body is not a snapshot. */
export async function fetchSnapshot(http: Http, layer: string, options: SnapshotOptions): Promise<Snapshot> {
  const body = await http.get<unknown>(`/api/v1/visualization/${encodeURIComponent(layer)}`, {
    signal: options.signal,
    cache: options.bypass ? "no-store" : "no-cache",
    timeout_ms: SNAPSHOT_TIMEOUT_MS,
  });
  return snapshot(record(body) ?? {}, layer);
}
