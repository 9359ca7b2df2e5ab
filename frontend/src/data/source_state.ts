/** The state of a source in one word, and the order in which sources are listed: what is wrong first. Pure. */
import type { JobRow, SourceInfo } from "../client/earth_types";
import { tabOf } from "./jobs_core";

/** Each has one meaning, which the page states (`sources:about`); the worst first. */
export const SOURCE_STATES = [
  "failing",
  "stale",
  "held",
  "overdue",
  "paused",
  "stopping",
  "clearing",
  "running",
  "queued",
  "cooling",
  "waiting",
  "off",
] as const;
export type SourceState = (typeof SOURCE_STATES)[number];

export type Severity = "bad" | "warn" | "busy" | "idle";

const SEVERITIES: Readonly<Record<SourceState, Severity>> = {
  failing: "bad",
  stale: "bad",
  held: "bad",
  overdue: "bad",
  paused: "warn",
  stopping: "busy",
  clearing: "busy",
  running: "busy",
  queued: "busy",
  cooling: "idle",
  waiting: "idle",
  off: "idle",
};

export function severityOf(state: SourceState): Severity {
  return SEVERITIES[state];
}

/**
 * How long after its end a lease counts as lost: a worker renews it every few seconds, and the page may know of that
 * most of a minute later.
 */
export const LEASE_LOST_MS = 90_000;
/** How long a run may be due before it is overdue: the schedule looks every few seconds, and clocks differ. */
export const OVERDUE_MS = 120_000;

/** The write jobs of one source. */
export interface SourceJobs {
  /** The one that holds the source: no other can start. */
  readonly holder: JobRow | null;
  /** The next one in line. */
  readonly queued: JobRow | null;
}

export const NO_JOBS: SourceJobs = { holder: null, queued: null };

/** By source. */
export function jobsBySource(rows: Iterable<JobRow>): ReadonlyMap<string, SourceJobs> {
  const found = new Map<string, SourceJobs>();
  for (const row of rows) {
    const tab = tabOf(row.status);
    const writes = row.task_type === "collect" || row.task_type === "clear_data";
    if (!writes || row.source === null || tab === "finished") continue;
    const held = found.get(row.source) ?? NO_JOBS;
    if (tab === "running") found.set(row.source, { ...held, holder: row });
    else if (held.queued === null || row.id < held.queued.id) found.set(row.source, { ...held, queued: row });
  }
  return found;
}

export function jobsOf(jobs: ReadonlyMap<string, SourceJobs>, source: string): SourceJobs {
  return jobs.get(source) ?? NO_JOBS;
}

function isPast(at: string | null, now_ms: number, grace_ms: number): boolean {
  const at_ms = Date.parse(at ?? "");
  return !Number.isNaN(at_ms) && now_ms - at_ms > grace_ms;
}

/** Why the source brings nothing new, apart from what it does just now. */
function trouble(source: SourceInfo, now_ms: number): SourceState | null {
  if (!source.enabled) return null;
  if (source.last_error_code !== null) return "failing";
  if (source.stale_after_s !== null && isPast(source.last_success_at, now_ms, source.stale_after_s * 1_000))
    return "stale";
  return null;
}

function doing(holder: JobRow): SourceState {
  if (holder.status === "cancelling") return "stopping";
  return holder.task_type === "clear_data" ? "clearing" : "running";
}

/** A waiting job is due from when it was made, or from when it may be tried again. */
function isOverdue(source: SourceInfo, queued: JobRow | null, now_ms: number): boolean {
  if (queued !== null) return isPast(queued.scheduled_at ?? queued.created_at, now_ms, OVERDUE_MS);
  return source.enabled && isPast(source.next_run_at, now_ms, OVERDUE_MS);
}

/** What explains most stands before what it explains: a paused source is not also stale, one that is off not failing. */
export function stateOf(source: SourceInfo, { holder, queued }: SourceJobs, now_ms: number): SourceState {
  if (holder !== null && isPast(holder.lease_until, now_ms, LEASE_LOST_MS)) return "held";
  if (source.paused) return "paused";
  const wrong = trouble(source, now_ms);
  if (wrong !== null) return wrong;
  if (holder !== null) return doing(holder);
  if (isOverdue(source, queued, now_ms)) return "overdue";
  if (queued !== null) return "queued";
  if (!source.enabled) return "off";
  return isPast(source.cooldown_until, now_ms, 0) || source.cooldown_until === null ? "waiting" : "cooling";
}

/** Whatever a source does while all is well leaves it at its place; only what is wrong moves up, and what is off down. */
function rank(state: SourceState): number {
  const severity = severityOf(state);
  if (severity === "bad" || severity === "warn") return SOURCE_STATES.indexOf(state);
  return state === "off" ? SOURCE_STATES.length : SOURCE_STATES.indexOf("stopping");
}

export interface Listed {
  readonly info: SourceInfo;
  readonly jobs: SourceJobs;
  readonly state: SourceState;
}

export function worstFirst(sources: readonly Listed[]): Listed[] {
  const byName = (a: Listed, b: Listed) => (a.info.source < b.info.source ? -1 : 1);
  return [...sources].sort((a, b) => rank(a.state) - rank(b.state) || byName(a, b));
}

/** The same sources in the order that is held; new ones last. For a list that somebody points at. */
export function inHeldOrder(sources: readonly Listed[], held: readonly string[]): Listed[] {
  const place = (listed: Listed) => {
    const at = held.indexOf(listed.info.source);
    return at < 0 ? held.length : at;
  };
  return [...sources].sort((a, b) => place(a) - place(b));
}

/** Sources by state, worst first; states without any are left out. */
export function stateCounts(sources: readonly Listed[]): { state: SourceState; count: number }[] {
  return SOURCE_STATES.flatMap((state) => {
    const count = sources.filter((listed) => listed.state === state).length;
    return count === 0 ? [] : [{ state, count }];
  });
}

/** The server counts rows no further. */
export const ROWS_COUNTED = 50_000;

/** Requests an hour that the provider's floor allows; null without a floor. */
export function budgetOf(floor_s: number | null): number | null {
  return floor_s === null || floor_s <= 0 ? null : Math.max(1, Math.floor(3_600 / floor_s));
}
