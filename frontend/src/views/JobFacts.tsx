/** The figures of one job: progress, pace and times while it runs, its turn while it waits, its result at the end. */
import { useTranslation } from "react-i18next";
import type { JobRow } from "../client/earth_types";
import { isFinal, paceOf } from "../data/jobs_core";
import { agoText } from "./age";
import { decimalText, durationText, timeOf } from "./earth_format";
import { percentText, spanText, tookText } from "./job_format";
import { amountText, resultText } from "./job_words";
import { useJobs } from "./use_jobs";
import { useNow } from "./use_now";

export function JobProgress({ job }: { job: JobRow }) {
  const { t, i18n } = useTranslation("earth");
  const known = job.records_total !== null || job.progress > 0;
  const records = amountText(t, job);
  const percent = percentText(job.progress, i18n.language);
  return (
    <progress
      className="job__bar"
      aria-label={t("jobs.progress", { id: job.id })}
      aria-valuetext={known ? t("jobs.percent_text", { percent, records }) : records}
      max={1}
      {...(known ? { value: job.progress } : {})}
    />
  );
}

function RunningFacts({ job }: { job: JobRow }) {
  const { t, i18n } = useTranslation("earth");
  const now = useNow();
  const pace = useJobs((view) => view.rates.get(job.id));
  const { per_s, remaining_ms, stalled_ms } = paceOf(job, pace, now);
  const started_ms = timeOf(job.started_at);
  const span = (duration_ms: number) => spanText(t, duration_ms);
  return (
    <p className="job__facts num">
      {job.phase ? <span>{t(`phase.${job.phase}`, { defaultValue: job.phase })}</span> : null}
      <span>{amountText(t, job)}</span>
      {per_s !== null && per_s > 0 ? (
        <span data-fact="rate">{t("jobs.rate", { rate: decimalText(per_s, i18n.language) })}</span>
      ) : null}
      {remaining_ms !== null && job.status === "running" ? (
        <span data-fact="remaining">{t("jobs.remaining", { time: span(remaining_ms) })}</span>
      ) : null}
      {stalled_ms !== null ? <span className="is-stale">{t("jobs.stalled", { time: span(stalled_ms) })}</span> : null}
      {started_ms === null ? null : (
        <span className="faint" data-fact="age">
          {t("jobs.running_for", { time: durationText(now - started_ms) })}
        </span>
      )}
    </p>
  );
}

function QueuedFacts({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const paused = useJobs((view) => view.sources.some(({ source, paused }) => source === job.source && paused));
  const due_ms = timeOf(job.scheduled_at);
  const span = (duration_ms: number) => spanText(t, duration_ms);
  const waiting_ms = now - (timeOf(job.created_at) ?? now);
  return (
    <p className="job__facts num">
      {paused ? <span className="is-stale">{t("jobs.source_paused")}</span> : null}
      {job.attempts > 0 ? <span>{t("jobs.attempts_used", { n: job.attempts, max: job.max_attempts })}</span> : null}
      {due_ms !== null && due_ms > now ? <span>{t("jobs.waits_until", { age: span(due_ms - now) })}</span> : null}
      <span className="faint">{t("jobs.waiting_since", { time: span(waiting_ms) })}</span>
    </p>
  );
}

function FinishedFacts({ job }: { job: JobRow }) {
  const { t, i18n } = useTranslation("earth");
  const now = useNow(5_000);
  const ended_ms = timeOf(job.finished_at);
  const started_ms = timeOf(job.started_at);
  return (
    <p className="job__facts num">
      {job.status === "failed" && job.records_processed === 0 ? null : (
        <span className="job__result">{resultText(t, job)}</span>
      )}
      {job.rejects > 0 ? <span className="is-stale">{t("jobs.rejects", { count: job.rejects })}</span> : null}
      {job.status === "failed" ? (
        <span>{t("jobs.attempts_used", { n: job.attempts, max: job.max_attempts })}</span>
      ) : null}
      {started_ms !== null && ended_ms !== null ? (
        <span className="faint">{t("jobs.took", { time: tookText(t, ended_ms - started_ms, i18n.language) })}</span>
      ) : null}
      {ended_ms === null ? null : <span className="faint">{agoText(t, now - ended_ms)}</span>}
    </p>
  );
}

export function JobFacts({ job }: { job: JobRow }) {
  if (isFinal(job.status)) return <FinishedFacts job={job} />;
  return job.status === "queued" ? <QueuedFacts job={job} /> : <RunningFacts job={job} />;
}
