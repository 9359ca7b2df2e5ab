/** What a set of ledger rows means: which of two rows is the newer, which list a job is in, how fast it runs. Pure. */
import type { JobRow, JobStatus } from "../client/earth_types";

export type JobTab = "running" | "queued" | "finished";

export function isFinal(status: JobStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

export function tabOf(status: JobStatus): JobTab {
  if (isFinal(status)) return "finished";
  return status === "queued" ? "queued" : "running";
}

/** Within one lease a row only moves up: waiting, running, cancelling, given back for another try, final. */
function rank(row: JobRow): number {
  if (isFinal(row.status)) return 4;
  if (row.status === "queued") return row.attempts > 0 || row.lease_seq > 0 ? 3 : 0;
  return row.status === "running" ? 1 : 2;
}

/**
 * Whether `next` may replace `held`. Rows come by two ways, the channel and HTTP, and an HTTP answer may be the
 * older one; final states never change.
 */
export function supersedes(next: JobRow, held: JobRow | undefined): boolean {
  if (held === undefined) return true;
  if (isFinal(held.status)) return isFinal(next.status);
  const order =
    next.lease_seq - held.lease_seq ||
    rank(next) - rank(held) ||
    next.records_processed - held.records_processed ||
    Date.parse(next.heartbeat_at ?? "") - Date.parse(held.heartbeat_at ?? "");
  return Number.isNaN(order) || order >= 0;
}

/** Newest first; running ones before by start. */
export function inTab(rows: Iterable<JobRow>, tab: JobTab): JobRow[] {
  const chosen = [...rows].filter((row) => tabOf(row.status) === tab);
  const key = (row: JobRow) => (tab === "finished" ? Date.parse(row.finished_at ?? row.created_at) || 0 : row.id);
  return chosen.sort((a, b) => (tab === "queued" ? a.id - b.id : key(b) - key(a) || b.id - a.id));
}

/** The write job that holds the source, if any: a second one would only wait. */
export function holder(rows: Iterable<JobRow>, source: string): JobRow | null {
  for (const row of rows) {
    const writes = row.task_type === "collect" || row.task_type === "clear_data";
    if (writes && row.source === source && tabOf(row.status) === "running") return row;
  }
  return null;
}

export interface RateSample {
  at_ms: number;
  records: number;
  per_s: number | null;
}

/** How much the newest pair counts in the running mean. */
const RATE_WEIGHT = 0.4;

/** Smoothed records per second; two samples closer than 200 ms say nothing and are merged. */
export function nextRate(held: RateSample | undefined, at_ms: number, records: number): RateSample {
  if (held === undefined || records < held.records) return { at_ms, records, per_s: null };
  const elapsed_ms = at_ms - held.at_ms;
  if (elapsed_ms < 200) return held;
  const now = ((records - held.records) * 1_000) / elapsed_ms;
  return { at_ms, records, per_s: held.per_s === null ? now : held.per_s + RATE_WEIGHT * (now - held.per_s) };
}
