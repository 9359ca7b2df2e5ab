/** What a person can do to one source; a button that cannot act is off and says why. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, SourceInfo } from "../client/earth_types";
import { holder } from "../data/jobs_core";
import { ClearDialog } from "./ClearDialog";
import { useJobActions } from "./use_job_actions";
import { useJobs } from "./use_jobs";

function queuedTwin(rows: Iterable<JobRow>, source: string, task_type: string): JobRow | null {
  for (const row of rows)
    if (row.status === "queued" && row.source === source && row.task_type === task_type) return row;
  return null;
}

/** Why the button cannot act now, or null. */
function useObstacle(source: string, task_type: "collect" | "clear_data"): string | null {
  const { t } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const actions = useJobActions();
  if (actions.isPending(`${task_type}:${source}`)) return t("sources.sending");
  const twin = queuedTwin(rows.values(), source, task_type);
  if (twin) return t("sources.queued", { id: twin.id });
  const busy = holder(rows.values(), source);
  return busy?.task_type === task_type ? t("sources.busy", { id: busy.id }) : null;
}

export function CollectAction({ source }: { source: string }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const obstacle = useObstacle(source, "collect");
  return (
    <button
      type="button"
      className="button"
      aria-label={t("sources.collect_label", { source })}
      title={obstacle ?? t("sources.collect_label", { source })}
      aria-description={obstacle ?? undefined}
      disabled={obstacle !== null}
      onClick={() => actions.submit("collect", source)}
    >
      {t("sources.collect")}
    </button>
  );
}

export function ClearAction({ source }: { source: string }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const [asking, setAsking] = useState(false);
  const obstacle = useObstacle(source, "clear_data");
  return (
    <>
      <button
        type="button"
        className="button button--danger"
        aria-label={t("sources.clear_label", { source })}
        aria-haspopup="dialog"
        title={obstacle ?? t("sources.clear_label", { source })}
        aria-description={obstacle ?? undefined}
        disabled={obstacle !== null}
        onClick={() => setAsking(true)}
      >
        {t("sources.clear")}
      </button>
      {asking ? (
        <ClearDialog
          source={source}
          onYes={() => actions.submit("clear_data", source)}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  );
}

export function PauseAction({ source: info }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const { source, paused } = info;
  const sending = actions.isPending(`source:${source}`);
  const reason = paused === null ? t("sources.cannot_pause") : sending ? t("sources.busy_change") : null;
  const hint = t(paused ? "sources.paused_hint" : "sources.pause_hint");
  const pause = () => {
    const message = t(paused ? "sources.resumed_now" : "sources.paused_now", { source });
    actions.change(source, { paused: !paused }, message);
  };
  return (
    <button
      type="button"
      className="button"
      aria-label={t(paused ? "sources.resume_label" : "sources.pause_label", { source })}
      disabled={reason !== null}
      title={reason ?? hint}
      aria-description={reason ?? hint}
      onClick={pause}
    >
      {t(paused ? "sources.resume" : "sources.pause")}
    </button>
  );
}

/** Whether the schedule runs the source; a job by hand is possible either way. */
export function EnabledSwitch({ source: info }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const { source, enabled } = info;
  const sending = actions.isPending(`source:${source}`);
  const toggle = () => {
    const message = t(enabled ? "sources.switched_off" : "sources.switched_on", { source });
    actions.change(source, { enabled: !enabled }, message);
  };
  return (
    <button
      type="button"
      className="switch"
      role="switch"
      aria-checked={enabled}
      aria-label={t("sources.enabled_label", { source })}
      title={sending ? t("sources.busy_change") : t("sources.enabled_label", { source })}
      disabled={sending}
      onClick={toggle}
    />
  );
}
