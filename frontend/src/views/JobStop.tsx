/** Stops a running job, or takes a waiting one out of the queue. */
import { useTranslation } from "react-i18next";
import type { JobRow } from "../client/earth_types";
import { useJobActions } from "./use_job_actions";

export function StopAction({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  if (job.status === "cancelling" || actions.isPending(`cancel:${job.id}`)) {
    return (
      <button
        type="button"
        className="button"
        disabled
        title={t("jobs.stop_sent")}
        aria-description={t("jobs.stop_sent")}
      >
        {t("jobs.stopping")}
      </button>
    );
  }
  const queued = job.status === "queued";
  const name = queued ? "remove" : "stop";
  return (
    <button
      type="button"
      className="button"
      aria-label={t(`jobs.${name}_label`, { id: job.id })}
      onClick={() => actions.cancel(job.id, queued)}
    >
      {t(`jobs.${name}`)}
    </button>
  );
}
