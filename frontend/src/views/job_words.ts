/** Texts about a job: how much it did, what a cancel kept, and the worker's own messages. */
import type { TFunction } from "i18next";
import type { JobRow } from "../client/earth_types";
import { isFinal } from "../data/jobs_core";
import { timeOf, utcText } from "./earth_format";
import { codeText } from "./reasons";

type T = TFunction<"earth">;

/** The worker's plain count and its message for a cancel only repeat the facts line. */
const SAID_ALREADY = /^(\d+ records?|stopped; committed batches are kept)$/;

/** The worker's words that every language has; all others are shown as they are. */
function translated(t: T, message: string): string {
  if (message === "not modified") return t("jobs.not_modified");
  const cooldown = /^cooldown until (\S+)$/.exec(message);
  const at_ms = timeOf(cooldown?.[1]);
  return at_ms === null ? message : t("jobs.cooldown_until", { time: `${utcText(at_ms)} UTC` });
}

/** A clearing counts what it took away. */
function counted(t: T, job: JobRow): string {
  return t(job.task_type === "clear_data" ? "jobs.deleted" : "jobs.records", { count: job.records_processed });
}

/** `4,000 of 10,000 records`; never more done than there is: the total is the worker's estimate. */
export function amountText(t: T, job: JobRow): string {
  if (job.records_total === null || job.records_total < job.records_processed) return counted(t, job);
  const key = job.task_type === "clear_data" ? "jobs.deleted_of" : "jobs.records_of";
  return t(key, { done: job.records_processed, total: job.records_total });
}

function stoppedText(t: T, job: JobRow): string {
  if (job.records_processed === 0) return t("jobs.stopped_none");
  const kind = job.task_type === "clear_data" ? "stopped_deleted" : "stopped_kept";
  const records = counted(t, job);
  if (job.batches === 0) return t(`jobs.${kind}_unbatched`, { records });
  return t(`jobs.${kind}`, { records, batches: t("jobs.batches", { count: job.batches }) });
}

/** The result: the count, what a cancel kept, or the worker's message if there was nothing to do. */
export function resultText(t: T, job: JobRow): string {
  if (job.status === "cancelled") return stoppedText(t, job);
  if (job.records_processed === 0 && job.message) return translated(t, job.message);
  return counted(t, job);
}

/** The worker's message, unless another line says the same. */
export function messageText(t: T, job: JobRow): string | null {
  if (job.message === null || SAID_ALREADY.test(job.message)) return null;
  const isRedundant = isFinal(job.status) && job.status !== "cancelled" && job.records_processed === 0;
  return isRedundant ? null : translated(t, job.message);
}

/** For screen readers: the state, and the result once it is over. */
export function announcementText(t: T, job: JobRow): string {
  const state = t(`status.${job.status}`);
  if (job.status === "cancelled") return t("jobs.tells", { id: job.id, what: stoppedText(t, job) });
  if (job.status === "failed")
    return t("jobs.tells", { id: job.id, what: [state, codeText(job.error_code)].filter(Boolean).join(", ") });
  if (job.status === "completed") return t("jobs.tells", { id: job.id, what: `${state}, ${resultText(t, job)}` });
  return t("jobs.tells", { id: job.id, what: state });
}
