/** The sources that feed layers: when they last and next run, and the two things one can do with them. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, SourceInfo } from "../client/earth_types";
import { holder } from "../data/jobs_core";
import { ageText, agoText } from "./age";
import { timeOf } from "./earth_format";
import { useEarth, useJobs } from "./use_earth";
import { useJobActions } from "./use_job_actions";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** Below this an age reads as "now". */
const SOON_MS = 5_000;

function Schedule({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const last_ms = timeOf(source.last_success_at);
  const next_ms = timeOf(source.next_run_at);
  const cool_ms = timeOf(source.cooldown_until);
  const cooling = cool_ms !== null && cool_ms > now;
  const next =
    next_ms === null || next_ms - now < SOON_MS
      ? t("sources.due")
      : t("sources.next", { age: ageText(t, next_ms - now) });
  return (
    <p className="job__facts num">
      <span className="dim">
        {last_ms === null ? t("sources.never") : t("sources.last", { ago: agoText(t, now - last_ms) })}
      </span>
      <span className="faint">{source.enabled ? next : t("sources.off")}</span>
      {cooling ? <span className="is-stale">{t("sources.cooldown", { age: ageText(t, cool_ms - now) })}</span> : null}
    </p>
  );
}

/** Deleting is asked back, in place, because it cannot be undone. */
function Confirm({ onYes, onNo }: { onYes: () => void; onNo: () => void }) {
  const { t } = useTranslation("earth");
  return (
    <div className="source__confirm" role="alertdialog" aria-label={t("sources.confirm")}>
      <span>{t("sources.confirm")}</span>
      <button type="button" className="button button--danger" onClick={onYes}>
        {t("sources.confirm_yes")}
      </button>
      <button type="button" className="button button--quiet" onClick={onNo}>
        {t("sources.confirm_no")}
      </button>
    </div>
  );
}

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

function Actions({ source, onClear }: { source: string; onClear: () => void }) {
  const { t } = useTranslation("earth");
  const actions = useJobActions();
  const collectObstacle = useObstacle(source, "collect");
  const clearObstacle = useObstacle(source, "clear_data");
  return (
    <div className="source__actions">
      <button
        type="button"
        className="button"
        aria-label={t("sources.collect_label", { source })}
        title={collectObstacle ?? t("sources.collect_label", { source })}
        disabled={collectObstacle !== null}
        onClick={() => actions.submit("collect", source)}
      >
        {t("sources.collect")}
      </button>
      <button
        type="button"
        className="button button--quiet"
        aria-label={t("sources.clear_label", { source })}
        title={clearObstacle ?? t("sources.clear_label", { source })}
        disabled={clearObstacle !== null}
        onClick={onClear}
      >
        {t("sources.clear")}
      </button>
    </div>
  );
}

function SignInInstead({ source }: { source: string }) {
  const { t } = useTranslation("earth");
  const { openSignIn } = useSession();
  return (
    <button type="button" className="button" aria-label={t("sources.sign_in_label", { source })} onClick={openSignIn}>
      {t("sources.sign_in")}
    </button>
  );
}

function SourceRow({ source: info }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const { signed_in } = useSession();
  const actions = useJobActions();
  const [asking, setAsking] = useState(false);
  const { source } = info;
  const clear = () => {
    setAsking(false);
    actions.submit("clear_data", source);
  };
  return (
    <li className="source" data-source={source}>
      <div className="source__head">
        <code>{source}</code>
        {signed_in ? <Actions source={source} onClear={() => setAsking(!asking)} /> : <SignInInstead source={source} />}
      </div>
      {asking && signed_in ? <Confirm onYes={clear} onNo={() => setAsking(false)} /> : null}
      <Schedule source={info} />
      {info.last_error_code ? (
        <p className="job__error" title={info.last_error ?? undefined}>
          {t("sources.error", { code: info.last_error_code })}
        </p>
      ) : null}
    </li>
  );
}

/** Sources of layers only: observation feeds run by their own schedule and take no jobs. */
export function JobSources() {
  const { t } = useTranslation("earth");
  const layers = useEarth((view) => view.layers);
  const sources = useJobs((view) => view.sources);
  const phase = useJobs((view) => view.phase);
  const fed = new Set(layers.flatMap((info) => info.sources));
  const shown = sources.filter(({ source }) => fed.has(source));
  if (shown.length === 0) return phase === "ready" ? <p className="jobs__none dim">{t("sources.none")}</p> : null;
  return (
    <ul className="sources" aria-label={t("sources.title")}>
      {shown.map((source) => (
        <SourceRow key={source.source} source={source} />
      ))}
    </ul>
  );
}
