/** Details of a job: who started, stopped and repeated it, its log, and what a clear would delete. */
import type { Http } from "./http";
import { finite, type Raw, record, text, whole } from "./parse";

export interface JobAct {
  id: number;
  at: string;
  who: string;
  role: string;
  /** `job.submitted`, `job.cancelled`, `job.retried`, `data.cleared`, or a word of a later version. */
  what: string;
  rows_deleted: number | null;
  /** The job that does the work again, and the one whose work this is. */
  retried_as: number | null;
  retry_of: number | null;
}

export interface LogLine {
  at: string;
  event: string;
  text: string;
}

export interface JobNotes {
  /** Oldest first. */
  acts: JobAct[];
  lines: LogLine[];
}

export interface SourceRows {
  facts: number;
  /** Rows made from them, in all tables. */
  derived: number;
}

function items(body: unknown): readonly unknown[] {
  const list = record(body)?.items;
  return Array.isArray(list) ? list : [];
}

function jobAct(value: unknown): JobAct | null {
  const raw = record(value);
  const [id, at, who, what] = [whole(raw?.id), text(raw?.at), text(raw?.who), text(raw?.what)];
  if (raw === null || id === null || at === null || who === null || what === null) return null;
  const details: Raw = record(raw.details) ?? {};
  return {
    id,
    at,
    who,
    what,
    role: text(raw.role) ?? "",
    rows_deleted: whole(raw.rows_deleted),
    retried_as: whole(details.as),
    retry_of: whole(details.retry_of),
  };
}

function logLine(value: unknown): LogLine | null {
  const raw = record(value);
  const [at, event] = [text(raw?.at), text(raw?.event)];
  return at === null || event === null ? null : { at, event, text: text(raw?.text) ?? "" };
}

/** Rejects with HttpError 401 or 403 without the required role. */
export async function fetchJobNotes(http: Http, id: number): Promise<JobNotes> {
  const [acts, log] = await Promise.all(
    ["acts", "log"].map((part) => http.get<unknown>(`/api/v1/jobs/${id}/${part}`, { cache: "no-store" })),
  );
  return {
    acts: items(acts)
      .flatMap((item) => jobAct(item) ?? [])
      .reverse(),
    lines: items(log).flatMap((item) => logLine(item) ?? []),
  };
}

/** The number of rows that a clear of the source would delete now. */
export async function fetchSourceRows(http: Http, source: string): Promise<SourceRows> {
  const path = `/api/v1/sources/${encodeURIComponent(source)}/rows`;
  const raw = record(await http.get<unknown>(path, { cache: "no-store" }));
  const derived = Object.values(record(raw?.derived) ?? {}).map((count) => finite(count) ?? 0);
  return { facts: whole(raw?.facts) ?? 0, derived: derived.reduce((sum, count) => sum + count, 0) };
}
