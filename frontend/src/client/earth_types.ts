/** Types of the Earth half's messages: layer events, snapshots, jobs, sources. Readers ignore unknown keys. */

import type { CardRow, Look } from "./presentation_wire";

export type Strategy = "clear_then_reload" | "reload" | "delta";

export type LayerState = "live" | "stale" | "empty" | "unavailable" | "simulated";

/** Objects by id: to be fetched again, and gone. Only layers with the strategy `delta` have any. */
export interface Delta {
  readonly upsert: readonly string[];
  readonly remove: readonly string[];
}

/** The part of `earth.layer.changed` that a client acts on. */
export interface LayerChanged {
  layers: readonly string[];
  refresh_strategy: Strategy;
  action: string;
  source: string | null;
  operation: string | null;
  records_processed: number;
  occurred_at: string;
  delta: Delta;
}

/** One event of the log, with its place in it. `prev_revision` is the layer's previous revision, 0 for its first. */
export interface EarthEvent {
  epoch: string;
  revision: number;
  prev_revision: number;
  change: LayerChanged;
}

export interface Feature {
  id: string;
  source: string;
  kind: string;
  title: string;
  lat: number | null;
  lon: number | null;
  observed_at: string | null;
  data: Readonly<Record<string, unknown>>;
}

/** Full state of a layer and the cursor it corresponds to. */
export interface Snapshot {
  layer: string;
  epoch: string;
  revision: number;
  generated_at: string;
  state: LayerState;
  count: number;
  total: number;
  truncated: boolean;
  features: readonly Feature[];
}

export interface Provenance {
  publisher: string;
  licence: string;
  coverage: string;
  limits: string;
  /** The same in Chinese, where the server has it. */
  zh: Provenance | null;
}

export interface LayerInfo {
  id: string;
  title: string;
  title_zh: string;
  group: string;
  kind: string;
  sources: readonly string[];
  provenance: Provenance;
  look: Look;
  /** Its rows; a layer without any has cards that say kind and time. */
  card: readonly CardRow[];
  count: number;
  state: LayerState;
  last_success_at: string | null;
  stale_after_s: number | null;
}

export type TaskType = "collect" | "clear_data" | "clear_cache" | "earth_refresh";

export type JobStatus = "queued" | "running" | "cancelling" | "completed" | "failed" | "cancelled";

/** The part of a ledger row that the page shows. */
export interface JobRow {
  id: number;
  task_type: TaskType;
  source: string | null;
  status: JobStatus;
  progress: number;
  records_processed: number;
  records_total: number | null;
  message: string | null;
  /** What it does now: `fetch`, `write`, `clear`, or a word of a later version. */
  phase: string | null;
  /** Committed so far; a cancel keeps them. */
  batches: number;
  rejects: number;
  /** Start of the record, or of the body, that was refused. */
  sample: string | null;
  error_code: string | null;
  error: string | null;
  attempts: number;
  max_attempts: number;
  lease_seq: number;
  heartbeat_at: string | null;
  /** Until when its worker holds it; null while nobody does. */
  lease_until: string | null;
  scheduled_at: string | null;
  created_at: string;
  started_at: string | null;
  deadline_at: string | null;
  cancel_requested_at: string | null;
  finished_at: string | null;
  /** The job that does this one's work again. */
  retried_as: number | null;
}

/** How many jobs the ledger has of a kind: counted up to 10,000, and up to 2 s old. */
export interface JobCounts {
  running: number;
  queued: number;
  /** Failed, and no other job does the work again. */
  dead: number;
}

export type FinalStatus = Extract<JobStatus, "completed" | "failed" | "cancelled">;

/** The handling of ticks missed while no process ran: one run for all of them, or none. */
export type Misfire = "once" | "skip";

/** A layer that a source feeds. */
export interface FedLayer {
  id: string;
  title: string;
  title_zh: string;
}

export interface RejectCount {
  code: string;
  count: number;
}

export interface SourceInfo {
  source: string;
  enabled: boolean;
  /** Null where the server cannot pause a source: it runs without jobs and is set by settings. */
  paused: boolean | null;
  interval_s: number | null;
  /** The provider's minimum interval; the server refuses shorter ones. */
  floor_s: number | null;
  /** Whether the server knows schedules by calendar; the next four are null without. */
  has_calendar: boolean;
  cron: string | null;
  time_zone: string | null;
  misfire: Misfire | null;
  upcoming: readonly string[];
  rejects: number;
  rejects_last_run: number;
  /** Code of the last run's failure, null after a good one. */
  last_error_code: string | null;
  last_error: string | null;
  last_run_at: string | null;
  last_success_at: string | null;
  next_run_at: string | null;
  cooldown_until: string | null;
  /** Facts there are now, counted up to 50,000; null where none are kept, or the server does not say. */
  rows: number | null;
  rows_last_run: number | null;
  /** Of the last hour; null where the server does not say. */
  rows_hour: number | null;
  requests_hour: number | null;
  /** Of the last run, the most frequent first. */
  reject_codes: readonly RejectCount[];
  /** Start of what the last run refused first; null also for strangers. */
  sample: string | null;
  /** The newest ended job that collected. */
  last_job: number | null;
  layers: readonly FedLayer[];
  /** Of the first of the layers. */
  provenance: Provenance | null;
  stale_after_s: number | null;
}

/** Missing fields stay as they are; null restores the source's default. */
export interface SourceChange {
  enabled?: boolean;
  paused?: boolean;
  interval_s?: number | null;
  cron?: string | null;
  time_zone?: string | null;
  misfire?: Misfire | null;
}
