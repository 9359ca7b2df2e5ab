/** Jobs over HTTP, and the parser of ledger rows, used for every transport. */
import type { JobCounts, JobRow, JobStatus, TaskType } from "./earth_types";
import type { Http } from "./http";
import { finite, oneOf, type Raw, record, text, whole } from "./parse";

const TASK_TYPES: readonly TaskType[] = ["collect", "clear_data", "clear_cache", "earth_refresh"];
const STATUSES: readonly JobStatus[] = ["queued", "running", "cancelling", "completed", "failed", "cancelled"];

/** Null unless it has at least an id, a known type and a known status. */
export function jobRow(value: unknown): JobRow | null {
  const raw = record(value);
  const id = whole(raw?.id);
  const task_type = oneOf(raw?.task_type, TASK_TYPES);
  const status = oneOf(raw?.status, STATUSES);
  if (raw === null || id === null || task_type === null || status === null) return null;
  return { id, task_type, status, ...measures(raw), ...words(raw), ...times(raw) };
}

function measures(raw: Raw) {
  return {
    progress: Math.min(1, Math.max(0, finite(raw.progress) ?? 0)),
    records_processed: whole(raw.records_processed) ?? 0,
    records_total: whole(raw.records_total),
    batches: whole(raw.batches) ?? 0,
    rejects: whole(raw.rejects) ?? 0,
    attempts: whole(raw.attempts) ?? 0,
    max_attempts: whole(raw.max_attempts) ?? 1,
    lease_seq: whole(raw.lease_seq) ?? 0,
    retried_as: whole(raw.retried_as),
  };
}

function words(raw: Raw) {
  return {
    source: text(raw.source),
    message: text(raw.message),
    phase: text(raw.phase),
    sample: text(raw.sample),
    error_code: text(raw.error_code),
    error: text(raw.error),
  };
}

function times(raw: Raw) {
  return {
    heartbeat_at: text(raw.heartbeat_at),
    lease_until: text(raw.lease_until),
    scheduled_at: text(raw.scheduled_at),
    created_at: text(raw.created_at) ?? "",
    started_at: text(raw.started_at),
    deadline_at: text(raw.deadline_at),
    cancel_requested_at: text(raw.cancel_requested_at),
    finished_at: text(raw.finished_at),
  };
}

function items(body: unknown): readonly unknown[] {
  const list = Array.isArray(body) ? body : record(body)?.items;
  return Array.isArray(list) ? list : [];
}

export interface JobPage {
  rows: JobRow[];
  /** Where the next page begins; null after the last. */
  next: number | null;
}

export interface JobQuery {
  limit: number;
  status?: JobStatus;
  cursor?: number;
}

/** Newest first. */
export async function fetchJobs(http: Http, query: JobQuery): Promise<JobPage> {
  const asked = Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]);
  const body = await http.get<unknown>(`/api/v1/jobs?${new URLSearchParams(asked)}`, { cache: "no-store" });
  return { rows: items(body).flatMap((item) => jobRow(item) ?? []), next: whole(record(body)?.next_cursor) };
}

/** Rejects with HttpError 404 once the ledger no longer keeps the job. */
export async function fetchJob(http: Http, id: number): Promise<JobRow | null> {
  return jobRow(await http.get<unknown>(`/api/v1/jobs/${id}`, { cache: "no-store" }));
}

/** Null when the answer has no counts. */
export async function fetchJobCounts(http: Http): Promise<JobCounts | null> {
  const raw = record(await http.get<unknown>("/api/v1/jobs/counts", { cache: "no-store" }));
  const [running, queued, dead] = [whole(raw?.running), whole(raw?.queued), whole(raw?.dead)];
  return running === null || queued === null || dead === null ? null : { running, queued, dead };
}

export interface Submitted {
  task_id: number;
  /** False when a queued twin was given instead of a second job. */
  created: boolean;
}

function submitted(body: unknown): Submitted {
  const raw = record(body);
  return { task_id: whole(raw?.task_id) ?? 0, created: raw?.created !== false };
}

export async function submitJob(http: Http, task_type: TaskType, source: string): Promise<Submitted> {
  return submitted(await http.send<unknown>("POST", "/api/v1/jobs", { task_type, source }));
}

/** Rejects with HttpError 409 when the job is already final. */
export function cancelJob(http: Http, id: number): Promise<unknown> {
  return http.send("POST", `/api/v1/jobs/${id}/cancel`);
}

/** Rejects with HttpError 409 while the job is active, and for a clear without `confirm`: that its rows are to go. */
export async function retryJob(http: Http, id: number, confirm = false): Promise<Submitted> {
  const body = confirm ? { confirm } : undefined;
  return submitted(await http.send<unknown>("POST", `/api/v1/jobs/${id}/retry`, body));
}
