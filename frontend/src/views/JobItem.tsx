/** One job: what it does, how far it is, how it ended, and the one action that makes sense now. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, JobStatus } from "../client/earth_types";
import { isFinal } from "../data/jobs_core";
import { agoText } from "./age";
import { ClearDialog } from "./ClearDialog";
import { timeOf } from "./earth_format";
import { Fault } from "./Fault";
import { JobFacts, JobProgress } from "./JobFacts";
import { JobHistory } from "./JobHistory";
import { JobSample } from "./JobSample";
import { StopAction } from "./JobStop";
import { messageText } from "./job_words";
import { useJobActions } from "./use_job_actions";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** After this the ledger ends a job that was asked to stop, whatever its worker does. */
const STOP_LIMIT_MS = 60_000;

const TONES: Readonly<Record<JobStatus, string>> = {
  queued: "",
  running: "badge--ok",
  cancelling: "badge--warn",
  completed: "",
  failed: "badge--bad",
  cancelled: "",
};

/** How old the cancel request is, and what happens if no worker answers. */
function StopNote({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const asked_ms = timeOf(job.cancel_requested_at);
  if (job.status !== "cancelling" || asked_ms === null) return null;
  const waited_ms = now - asked_ms;
  const key = waited_ms > STOP_LIMIT_MS ? "jobs.stop_overdue" : "jobs.stop_note";
  return <p className="job__message dim">{t(key, { ago: agoText(t, waited_ms) })}</p>;
}

function Words({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const message = messageText(t, job);
  const failing = job.error_code !== null && job.status !== "completed";
  return (
    <>
      {message ? <p className="job__message dim">{message}</p> : null}
      {failing ? (
        <p className="job__error">
          <Fault code={job.error_code} text={job.error} />
        </p>
      ) : null}
      {job.sample && (failing || job.rejects > 0) ? <JobSample sample={job.sample} /> : null}
      <StopNote job={job} />
    </>
  );
}

function RetryAction({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const [asking, setAsking] = useState(false);
  const sending = actions.isPending(`retry:${job.id}`);
  const clears = job.task_type === "clear_data" && job.source !== null;
  return (
    <>
      <button
        type="button"
        className="button"
        aria-label={t("jobs.retry_label", { id: job.id })}
        aria-haspopup={clears ? "dialog" : undefined}
        title={sending ? t("jobs.retry_sending") : undefined}
        disabled={sending}
        onClick={() => (clears ? setAsking(true) : actions.retry(job.id))}
      >
        {t("jobs.retry")}
      </button>
      {asking && job.source !== null ? (
        <ClearDialog
          source={job.source}
          job={job.id}
          onYes={() => actions.retry(job.id, true)}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  );
}

/** Stop while it can be stopped, run again once it is over; a person without a session is asked to sign in, and one who may only look sees no action. */
function Action({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const { signed_in, may_operate, openSignIn } = useSession();
  if (job.retried_as !== null) return <span className="num dim">{t("jobs.retried_as", { id: job.retried_as })}</span>;
  if (may_operate) return isFinal(job.status) ? <RetryAction job={job} /> : <StopAction job={job} />;
  if (signed_in || job.status === "completed" || job.status === "cancelling") return null;
  const key = isFinal(job.status) ? "jobs.sign_in_retry_label" : "jobs.sign_in_label";
  return (
    <button type="button" className="button" aria-label={t(key, { id: job.id })} onClick={openSignIn}>
      {t("sources.sign_in")}
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
          <code className="dim" title={job.source ?? undefined}>
            {job.source ?? "–"}
          </code>
          <span className="num faint">#{job.id}</span>
        </div>
        <span className={`badge ${TONES[job.status]}`}>{t(`status.${job.status}`)}</span>
      </div>
      {active ? <JobProgress job={job} /> : null}
      <div className="job__line">
        <JobFacts job={job} />
        <Action job={job} />
      </div>
      <Words job={job} />
      <JobHistory job={job} />
    </li>
  );
}
