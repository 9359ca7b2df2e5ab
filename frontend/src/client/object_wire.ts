/** Search, one object's card, and the objects of a delta over HTTP. */
import type { Feature, Provenance } from "./earth_types";
import type { Http } from "./http";
import { isFeature, provenance } from "./layer_wire";
import { finite, type Raw, record, text } from "./parse";

/** The server's maximum of ids per request. */
export const IDS_MAX = 100;

/** A result of a search: enough to show it and to fly to it. `feature` is its id in the layer's snapshot. */
export interface Found {
  readonly id: string;
  readonly layer: string;
  readonly feature: string;
  readonly kind: string;
  readonly title: string;
  readonly subtitle: string;
  readonly lat: number | null;
  readonly lon: number | null;
}

/** A place that is not the fact's own: how it was found. */
export interface ResolvedPlace {
  readonly method: "given" | "geocode" | "manual";
  /** The possible error of the position. */
  readonly precision_m: number | null;
  readonly resolver: string | null;
}

/** All that the server knows of one object; as a feature it can be shown before its layer is loaded. */
export interface ObjectCard {
  readonly id: string;
  readonly layer: string;
  readonly feature: Feature;
  readonly collected_at: string | null;
  readonly layer_title: string;
  readonly layer_title_zh: string;
  readonly provenance: Provenance;
  readonly place: ResolvedPlace | null;
}

export interface Asking {
  signal: AbortSignal;
}

function found(value: unknown): Found | null {
  const raw = record(value);
  const id = text(raw?.id);
  const layer = text(raw?.layer);
  const feature = text(raw?.feature);
  if (raw === null || id === null || layer === null || feature === null) return null;
  return {
    id,
    layer,
    feature,
    kind: text(raw.kind) ?? "",
    title: text(raw.title) || id,
    subtitle: text(raw.subtitle) ?? "",
    lat: finite(raw.lat),
    lon: finite(raw.lon),
  };
}

function items(body: unknown): readonly unknown[] {
  const list = record(body)?.items;
  return Array.isArray(list) ? list : [];
}

export async function fetchSearch(http: Http, question: string, { signal }: Asking): Promise<Found[]> {
  const query = new URLSearchParams({ q: question, limit: "12" });
  return items(await http.get<unknown>(`/api/v1/search?${query}`, { signal })).flatMap((item) => found(item) ?? []);
}

function placeOf(raw: Raw): ResolvedPlace | null {
  const method = raw.place_method;
  if (method !== "given" && method !== "geocode" && method !== "manual") return null;
  return { method, precision_m: finite(raw.place_precision_m), resolver: text(raw.place_resolver) };
}

function featureOf(raw: Raw, id: string): Feature {
  return {
    id: text(raw.feature) ?? id,
    source: text(raw.source) ?? "",
    kind: text(raw.kind) ?? "",
    title: text(raw.title) ?? "",
    lat: finite(raw.lat),
    lon: finite(raw.lon),
    observed_at: text(raw.observed_at),
    data: record(raw.data) ?? {},
  };
}

/** `layer` and `feature` as the globe names a point. Rejects with HttpError `unknown_object` once its fact is gone. */
export async function fetchCard(http: Http, layer: string, feature: string, { signal }: Asking): Promise<ObjectCard> {
  const id = `${layer}:${feature}`;
  const path = `/api/v1/objects/${id.split("/").map(encodeURIComponent).join("/")}`;
  const raw = record(await http.get<unknown>(path, { signal, cache: "no-store" })) ?? {};
  return {
    id,
    layer,
    feature: featureOf(raw, feature),
    collected_at: text(raw.collected_at),
    layer_title: text(raw.layer_title) ?? layer,
    layer_title_zh: text(raw.layer_title_zh) ?? layer,
    provenance: provenance(raw.provenance),
    place: placeOf(raw),
  };
}

/** Those of the objects that still exist. */
export async function fetchObjects(http: Http, ids: readonly string[], { signal }: Asking): Promise<Feature[]> {
  const features: Feature[] = [];
  for (let start = 0; start < ids.length; start += IDS_MAX) {
    const query = ids.slice(start, start + IDS_MAX).map((id) => `ids=${encodeURIComponent(id)}`);
    const body = await http.get<unknown>(`/api/v1/objects?${query.join("&")}`, { signal, cache: "no-store" });
    features.push(...items(body).filter(isFeature));
  }
  return features;
}
