/** Ledger rows for tests. */
import type { JobRow } from "../client/earth_types";

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
    error_code: null,
    error: null,
    attempts: 0,
    max_attempts: 3,
    lease_seq: 0,
    heartbeat_at: null,
    scheduled_at: null,
    created_at: "2026-05-25T10:00:00Z",
    started_at: null,
    cancel_requested_at: null,
    finished_at: null,
    ...values,
  };
}
