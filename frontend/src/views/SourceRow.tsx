/** One source in a row: its state, its figures, what it does now or what is wrong, and the actions of the moment. */
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, SourceInfo } from "../client/earth_types";
import { type Listed, type SourceState, severityOf } from "../data/source_state";
import { ageText, agoText } from "./age";
import { countText, timeOf } from "./earth_format";
import { FoldButton } from "./FoldButton";
import { JobFacts, JobProgress } from "./JobFacts";
import { CollectAction, PauseAction } from "./JobSourceActions";
import { StopAction } from "./JobStop";
import { codeText } from "./reasons";
import { SourceDetails } from "./SourceDetails";
import { layerNames, plainText, requestsText, rowsText, STATE_TONES } from "./source_text";
import { provenanceIn } from "./use_earth";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** A younger age is shown as "now". */
const SOON_MS = 5_000;
/** Of the ages shown: with many sources each second would cost more than it tells. */
const STEP_MS = 5_000;

function Cell({ column, children }: { column: string; children: ReactNode }) {
  const { t } = useTranslation("sources");
  return (
    <div className={`srow__${column}`}>
      <dt>{t(`column.${column}`)}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Times({ source, state }: { source: SourceInfo; state: SourceState }) {
  const { t } = useTranslation("sources");
  const now = useNow(STEP_MS);
  const last_ms = timeOf(source.last_success_at);
  const next_ms = timeOf(source.next_run_at);
  const next =
    next_ms === null || next_ms - now < SOON_MS ? t("next_due") : t("next", { age: ageText(t, next_ms - now) });
  return (
    <>
      <span className={state === "stale" ? "is-old" : undefined} title={source.last_success_at ?? undefined}>
        {last_ms === null ? t("never") : agoText(t, now - last_ms)}
      </span>
      <span className="faint" title={source.next_run_at ?? undefined}>
        {source.enabled && !source.paused ? next : t("no_next")}
      </span>
    </>
  );
}

/** Names of the layers and whose data it is, in one line that is cut where it ends; the details have it whole. */
function Origin({ source }: { source: SourceInfo }) {
  const { i18n } = useTranslation("sources");
  const publisher = source.provenance && plainText(provenanceIn(source.provenance, i18n.language).publisher);
  const text = [layerNames(source, i18n.language).join(", "), publisher].filter(Boolean).join(" · ");
  return (
    <span className="srow__origin faint" title={text}>
      {text}
    </span>
  );
}

function Rejects({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("sources");
  const amount = (count: number) => countText(count, i18n.language);
  return (
    <>
      <span className={source.rejects_last_run > 0 ? "is-stale" : undefined}>{amount(source.rejects_last_run)}</span>
      <span className="faint">{t("rejects_all", { amount: amount(source.rejects) })}</span>
    </>
  );
}

function Running({ job }: { job: JobRow }) {
  return (
    <>
      <JobProgress job={job} />
      <JobFacts job={job} />
    </>
  );
}

function useNews(source: SourceInfo, state: SourceState, queued: JobRow | null): ReactNode {
  const { t } = useTranslation("sources");
  const now = useNow(STEP_MS);
  if (source.last_error_code !== null)
    return (
      <span className={state === "failing" ? "source__error" : "dim"} title={source.last_error ?? undefined}>
        {codeText(source.last_error_code)}
        {source.last_error ? <span lang="en"> – {source.last_error}</span> : null}
      </span>
    );
  if (queued !== null) return t("queued_as", { id: queued.id });
  const cool_ms = timeOf(source.cooldown_until);
  if (cool_ms !== null && cool_ms > now) return t("cooling_for", { age: ageText(t, cool_ms - now) });
  if (state === "stale" || state === "overdue" || state === "held") return t(`about.${state}`);
  return null;
}

/** What it does now stands before what was wrong last. */
function Now({ info, state, jobs: { holder, queued } }: Listed) {
  const news = useNews(info, state, queued);
  return (
    <>
      {holder ? <Running job={holder} /> : null}
      {news && !(holder && state !== "failing") ? <p className="srow__news">{news}</p> : null}
    </>
  );
}

/** Each keeps its place, so that none comes to lie under the pointer that was on its way to another. */
function Actions({ info: source, jobs }: Listed) {
  const { may_operate } = useSession();
  const job = jobs.holder ?? jobs.queued;
  if (!may_operate || source.paused === null) return null;
  return (
    <div className="srow__actions">
      <CollectAction source={source.source} />
      <span className="srow__stop">{job ? <StopAction job={job} /> : null}</span>
      <PauseAction source={source} />
    </div>
  );
}

export function SourceRow({ listed }: { listed: Listed }) {
  const { t, i18n } = useTranslation("sources");
  const [open, setOpen] = useState(false);
  const name = useId();
  const { info, state } = listed;
  const { source } = info;
  const about = t("about_label", { source });
  return (
    <li className="srow__item" data-source={source} data-state={state} aria-labelledby={name}>
      <div className="srow">
        <span className={`badge srow__state ${STATE_TONES[severityOf(state)]}`} title={t(`about.${state}`)}>
          {t(`state.${state}`)}
        </span>
        <div className="srow__source">
          <h2 id={name}>
            <code>{source}</code>
          </h2>
          <Origin source={info} />
        </div>
        <dl className="srow__facts num">
          <Cell column="success">
            <Times source={info} state={state} />
          </Cell>
          <Cell column="rate">
            <span>{info.rows_hour === null ? "–" : t("rows_hour", { count: info.rows_hour })}</span>
            <span className="faint">{requestsText(t, info)}</span>
          </Cell>
          <Cell column="rows">
            <span>{rowsText(t, info.rows, i18n.language)}</span>
          </Cell>
          <Cell column="rejects">
            <Rejects source={info} />
          </Cell>
          <Cell column="now">
            <Now {...listed} />
          </Cell>
        </dl>
        <Actions {...listed} />
        <FoldButton open={open} label={about} className="fold srow__fold" onToggle={() => setOpen(!open)} />
      </div>
      {open ? <SourceDetails source={info} /> : null}
    </li>
  );
}
