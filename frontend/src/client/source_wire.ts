/** The list of sources over HTTP, and changes of one. */
import type { FedLayer, Misfire, SourceChange, SourceInfo } from "./earth_types";
import type { Http } from "./http";
import { provenance } from "./layer_wire";
import { finite, oneOf, type Raw, record, text, texts, whole } from "./parse";

const MISFIRES: readonly Misfire[] = ["once", "skip"];

function sourceInfo(value: unknown): SourceInfo | null {
  const raw = record(value);
  const source = text(raw?.source);
  if (raw === null || source === null) return null;
  return {
    source,
    enabled: raw.enabled !== false,
    paused: typeof raw.paused === "boolean" ? raw.paused : null,
    last_error_code: text(raw.last_error_code),
    last_error: text(raw.last_error),
    last_run_at: text(raw.last_run_at),
    last_success_at: text(raw.last_success_at),
    next_run_at: text(raw.next_run_at),
    cooldown_until: text(raw.cooldown_until),
    ...schedule(raw),
    ...amounts(raw),
    ...origin(raw),
  };
}

function schedule(raw: Raw) {
  return {
    interval_s: finite(raw.interval_s),
    floor_s: finite(raw.floor_s),
    has_calendar: "cron" in raw,
    cron: text(raw.cron),
    time_zone: text(raw.time_zone),
    misfire: oneOf(raw.misfire, MISFIRES),
    upcoming: texts(raw.upcoming),
  };
}

function amounts(raw: Raw) {
  return {
    rows: whole(raw.rows),
    rows_last_run: whole(raw.rows_last_run),
    rows_hour: whole(raw.rows_hour),
    requests_hour: whole(raw.requests_hour),
    rejects: whole(raw.rejects) ?? 0,
    rejects_last_run: whole(raw.rejects_last_run) ?? 0,
    reject_codes: Object.entries(record(raw.reject_codes) ?? {}).flatMap(([code, value]) => {
      const count = whole(value);
      return count === null ? [] : [{ code, count }];
    }),
    sample: text(raw.sample),
    last_job: whole(raw.last_job),
  };
}

function origin(raw: Raw) {
  return {
    layers: Array.isArray(raw.layers) ? raw.layers.flatMap((layer) => fedLayer(layer) ?? []) : [],
    provenance: record(raw.provenance) ? provenance(raw.provenance) : null,
    stale_after_s: finite(raw.stale_after_s),
  };
}

function fedLayer(value: unknown): FedLayer | null {
  const raw = record(value);
  const id = text(raw?.id);
  if (raw === null || id === null) return null;
  const title = text(raw.title) ?? id;
  return { id, title, title_zh: text(raw.title_zh) ?? title };
}

/** The source as it is after the change. Rejects with HttpError 400 and a code when the server refuses it. */
export async function changeSource(http: Http, source: string, change: SourceChange): Promise<SourceInfo | null> {
  return sourceInfo(await http.send<unknown>("PATCH", `/api/v1/sources/${encodeURIComponent(source)}`, change));
}

export async function fetchSources(http: Http): Promise<SourceInfo[]> {
  const body = await http.get<unknown>("/api/v1/sources", { cache: "no-store" });
  const list = Array.isArray(body) ? body : record(body)?.items;
  return Array.isArray(list) ? list.flatMap((item) => sourceInfo(item) ?? []) : [];
}
