/** Logic of ledger rows: which of two is newer, which list a job belongs to, how fast it runs. Pure. */
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
 * older one; final states never change, and what was retried once stays so.
 */
export function supersedes(next: JobRow, held: JobRow | undefined): boolean {
  if (held === undefined) return true;
  if (isFinal(held.status)) return isFinal(next.status) && (held.retried_as === null || next.retried_as !== null);
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

/** The server pushes at most this many jobs of a kind; with that many there may be more. */
export const PUSHED = 50;
/** The ledger does not count further. */
export const COUNTED_MAX = 10_000;

export type TabCounts = Readonly<Record<JobTab, number>>;

export function tabCounts(rows: Iterable<JobRow>): TabCounts {
  const counts = { running: 0, queued: 0, finished: 0 };
  for (const row of rows) counts[tabOf(row.status)] += 1;
  return counts;
}

/** Whether there may be more waiting or running jobs than rows of them. */
export function isCrowded(rows: Iterable<JobRow>): boolean {
  const { running, queued } = tabCounts(rows);
  return running >= PUSHED || queued >= PUSHED;
}

/** How many to show, and whether there may be more: few rows are all there are, of many the ledger knows the number. */
export function shownCount(rows: number, counted: number | undefined): { count: number; open: boolean } {
  if (rows < PUSHED) return { count: rows, open: false };
  if (counted === undefined) return { count: rows, open: true };
  return { count: Math.max(rows, counted), open: counted >= COUNTED_MAX };
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
  /** When the count last moved. */
  at_ms: number;
  records: number;
  per_s: number | null;
}

/** Time constant of the smoothing: batches come in bursts, and a jumping rate is useless. */
const RATE_MEMORY_MS = 8_000;
/** Two counts closer than this give no usable rate. */
const RATE_LEAST_MS = 200;
/** Without a new record for this long there is no rate to speak of. */
const STALL_MS = 20_000;

/** Smoothed records per second. A row that was pushed for another reason, the same count in it, changes nothing. */
export function nextRate(held: RateSample | undefined, at_ms: number, records: number): RateSample {
  if (held === undefined || records < held.records) return { at_ms, records, per_s: null };
  const elapsed_ms = at_ms - held.at_ms;
  if (records === held.records || elapsed_ms < RATE_LEAST_MS) return held;
  const now = ((records - held.records) * 1_000) / elapsed_ms;
  const weight = 1 - Math.exp(-elapsed_ms / RATE_MEMORY_MS);
  return { at_ms, records, per_s: held.per_s === null ? now : held.per_s + weight * (now - held.per_s) };
}

export interface Pace {
  per_s: number | null;
  /** Time to the end at this rate, null when the end or the rate is unknown. */
  remaining_ms: number | null;
  /** Since the last new record, once that is long. */
  stalled_ms: number | null;
}

export function paceOf(job: JobRow, sample: RateSample | undefined, now_ms: number): Pace {
  const still_ms = sample === undefined ? 0 : now_ms - sample.at_ms;
  if (still_ms > STALL_MS) return { per_s: null, remaining_ms: null, stalled_ms: still_ms };
  const per_s = sample?.per_s ?? null;
  const left = job.records_total === null ? null : job.records_total - job.records_processed;
  const known = per_s !== null && per_s > 0 && left !== null && left > 0;
  // Counted from the last update, so that the time runs down between two updates.
  return { per_s, remaining_ms: known ? Math.max(0, (left * 1_000) / per_s - still_ms) : null, stalled_ms: null };
}

export interface HeldJobs {
  readonly rows: ReadonlyMap<number, JobRow>;
  readonly rates: ReadonlyMap<number, RateSample>;
}

function nextPace(rates: Map<number, RateSample>, row: JobRow, at_ms: number): void {
  if (tabOf(row.status) !== "running") rates.delete(row.id);
  else rates.set(row.id, nextRate(rates.get(row.id), at_ms, row.records_processed));
}

/** The rows held, updated with the new ones, and whether a job ended by them. */
export function merged(held: HeldJobs, news: readonly JobRow[], at_ms: number) {
  const rows = new Map(held.rows);
  const rates = new Map(held.rates);
  let ended = false;
  for (const row of news) {
    const before = rows.get(row.id);
    if (!supersedes(row, before)) continue;
    rows.set(row.id, row);
    nextPace(rates, row, at_ms);
    if (before && !isFinal(before.status) && isFinal(row.status)) ended = true;
  }
  return { rows, rates, ended };
}
