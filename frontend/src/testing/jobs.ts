/** Ledger rows and sources for tests. */
import type { JobRow, SourceInfo } from "../client/earth_types";

export function jobOf(values: Partial<JobRow>): JobRow {
  return {
    id: 1,
    task_type: "collect",
    source: "celestrak_gp",
    status: "queued",
    progress: 0,
    records_processed: 0,
    records_total: null,
    message: null,
    phase: null,
    batches: 0,
    rejects: 0,
    sample: null,
    error_code: null,
    error: null,
    attempts: 0,
    max_attempts: 3,
    lease_seq: 0,
    heartbeat_at: null,
    scheduled_at: null,
    created_at: "2026-05-25T10:00:00Z",
    started_at: null,
    deadline_at: null,
    cancel_requested_at: null,
    finished_at: null,
    retried_as: null,
    ...values,
  };
}

export function sourceOf(values: Partial<SourceInfo>): SourceInfo {
  return {
    source: "celestrak_gp",
    enabled: true,
    paused: false,
    interval_s: 600,
    floor_s: 60,
    has_calendar: true,
    cron: null,
    time_zone: null,
    misfire: null,
    upcoming: [],
    rejects: 0,
    rejects_last_run: 0,
    last_error_code: null,
    last_error: null,
    last_success_at: null,
    next_run_at: null,
    cooldown_until: null,
    ...values,
  };
}
