/** One job: what it does, how far it is, how it ended, and the one action that makes sense now. */
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import type { JobRow, JobStatus } from "../client/earth_types";
import { isFinal } from "../data/jobs_core";
import { ageText, agoText } from "./age";
import { countText, decimalText, durationText, timeOf, utcText } from "./earth_format";
import { useJobs } from "./use_earth";
import { useJobActions } from "./use_job_actions";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** A stop that takes longer than a lease is worth a word. */
const SLOW_STOP_MS = 30_000;

const TONES: Readonly<Record<JobStatus, string>> = {
  queued: "",
  running: "badge--ok",
  cancelling: "badge--warn",
  completed: "",
  failed: "badge--bad",
  cancelled: "",
};

function Progress({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const known = job.records_total !== null || job.progress > 0;
  const share = known ? job.progress : undefined;
  return (
    <progress
      className="job__bar"
      aria-label={t("jobs.progress", { id: job.id })}
      max={1}
      {...(share === undefined ? {} : { value: share })}
    />
  );
}

/** Records, rate, time: the numbers of a job that runs. */
function RunningFacts({ job }: { job: JobRow }) {
  const { t, i18n } = useTranslation("earth");
  const rate = useJobs((view) => view.rates.get(job.id)?.per_s ?? null);
  const now = useNow();
  const started_ms = timeOf(job.started_at);
  const done = countText(job.records_processed, i18n.language);
  const total = job.records_total === null ? null : countText(job.records_total, i18n.language);
  return (
    <p className="job__facts num">
      <span>{total === null ? t("jobs.records", { done }) : t("jobs.records_of", { done, total })}</span>
      {rate !== null && rate > 0 ? <span>{t("jobs.rate", { rate: decimalText(rate, i18n.language) })}</span> : null}
      {started_ms === null ? null : <span>{t("jobs.elapsed", { time: durationText(now - started_ms) })}</span>}
    </p>
  );
}

function QueuedFacts({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const due_ms = timeOf(job.scheduled_at);
  return (
    <p className="job__facts num">
      {job.attempts > 0 ? <span>{t("jobs.attempt", { n: job.attempts + 1, max: job.max_attempts })}</span> : null}
      {due_ms !== null && due_ms > now ? <span>{t("jobs.waits_until", { age: ageText(t, due_ms - now) })}</span> : null}
      <span className="faint">{agoText(t, now - (timeOf(job.created_at) ?? now))}</span>
    </p>
  );
}

/** The worker's plain count says nothing that the facts line does not. */
const COUNT_ONLY = /^\d+ records?$/;

/** The worker's words that every language has; all others are shown as they are. */
function messageText(t: TFunction<"earth">, message: string): string {
  if (message === "not modified") return t("jobs.not_modified");
  const cooldown = /^cooldown until (\S+)$/.exec(message);
  const at_ms = timeOf(cooldown?.[1]);
  return at_ms === null ? message : t("jobs.cooldown_until", { time: `${utcText(at_ms)} UTC` });
}

/** What came of it: the count, what a stop left, or the worker's own word for nothing to do. */
function useResult(job: JobRow): string {
  const { t, i18n } = useTranslation("earth");
  const done = countText(job.records_processed, i18n.language);
  if (job.status === "cancelled") return job.records_processed > 0 ? t("jobs.kept", { done }) : t("jobs.kept_none");
  if (job.records_processed === 0 && job.message) return messageText(t, job.message);
  return t("jobs.records", { done });
}

/** Messages that the facts line already holds are not said twice. */
function messageOf(job: JobRow): string | null {
  if (job.message === null || COUNT_ONLY.test(job.message)) return null;
  const said = isFinal(job.status) && job.status !== "cancelled" && job.records_processed === 0;
  return said ? null : job.message;
}

function FinishedFacts({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const now = useNow(5_000);
  const result = useResult(job);
  const ended_ms = timeOf(job.finished_at);
  const started_ms = timeOf(job.started_at);
  return (
    <p className="job__facts num">
      <span>{result}</span>
      {started_ms !== null && ended_ms !== null ? <span>{durationText(ended_ms - started_ms)}</span> : null}
      {ended_ms === null ? null : <span className="faint">{agoText(t, now - ended_ms)}</span>}
    </p>
  );
}

function Facts({ job }: { job: JobRow }) {
  if (isFinal(job.status)) return <FinishedFacts job={job} />;
  return job.status === "queued" ? <QueuedFacts job={job} /> : <RunningFacts job={job} />;
}

function Words({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const asked_ms = timeOf(job.cancel_requested_at);
  const message = messageOf(job);
  const slow = job.status === "cancelling" && asked_ms !== null && now - asked_ms > SLOW_STOP_MS;
  return (
    <>
      {message ? <p className="job__message dim">{messageText(t, message)}</p> : null}
      {job.error_code && job.status !== "completed" ? (
        <p className="job__error">
          <code>{job.error_code}</code> {job.error}
        </p>
      ) : null}
      {slow ? <p className="job__message">{t("jobs.slow_stop")}</p> : null}
    </>
  );
}

/** Stop while it can be stopped, run again once it is over; a person without a session is asked to sign in. */
function Action({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const { signed_in, openSignIn } = useSession();
  const actions = useJobActions();
  const now = useNow();
  if (job.status === "completed") return null;
  if (!signed_in) {
    return (
      <button
        type="button"
        className="button"
        aria-label={t("jobs.sign_in_label", { id: job.id })}
        onClick={openSignIn}
      >
        {t("sources.sign_in")}
      </button>
    );
  }
  if (isFinal(job.status)) {
    return (
      <button
        type="button"
        className="button"
        aria-label={t("jobs.retry_label", { id: job.id })}
        disabled={actions.isPending(`retry:${job.id}`)}
        onClick={() => actions.retry(job.id)}
      >
        {t("jobs.retry")}
      </button>
    );
  }
  if (job.status === "cancelling" || actions.isPending(`cancel:${job.id}`)) {
    const asked_ms = timeOf(job.cancel_requested_at);
    const text = asked_ms === null ? t("jobs.stopping") : t("jobs.stopping_for", { age: ageText(t, now - asked_ms) });
    return (
      <button type="button" className="button num" disabled title={t("jobs.stopping")}>
        {text}
      </button>
    );
  }
  const name = job.status === "queued" ? "remove" : "stop";
  return (
    <button
      type="button"
      className="button"
      aria-label={t(`jobs.${name}_label`, { id: job.id })}
      onClick={() => actions.cancel(job.id)}
    >
      {t(`jobs.${name}`)}
    </button>
  );
}

export function JobItem({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const active = job.status === "running" || job.status === "cancelling";
  return (
    <li className="job" data-job={job.id} data-status={job.status}>
      <div className="job__head">
        <div className="job__name">
          <strong>{t(`task.${job.task_type}`)}</strong>
          <code className="dim">{job.source ?? "–"}</code>
          <span className="num faint">#{job.id}</span>
        </div>
        <span className={`badge ${TONES[job.status]}`}>{t(`status.${job.status}`)}</span>
      </div>
      {active ? <Progress job={job} /> : null}
      <div className="job__line">
        <Facts job={job} />
        <Action job={job} />
      </div>
      <Words job={job} />
    </li>
  );
}
