/** Everything about one source: whose it is, what it may ask, what its last run refused, and what changes it for long. */
import { type ReactNode, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useTranslation } from "react-i18next";
import type { SourceInfo } from "../client/earth_types";
import { budgetOf } from "../data/source_state";
import { countText, timeOf, utcText } from "./earth_format";
import { Fault } from "./Fault";
import { JobSample } from "./JobSample";
import { JobSchedule } from "./JobSchedule";
import { ClearAction, EnabledSwitch } from "./JobSourceActions";
import { Upcoming, useScheduleText } from "./JobSourceDetails";
import { intervalText } from "./job_format";
import { layerNames, plainText, rejectText } from "./source_text";
import { provenanceIn } from "./use_earth";
import { useSession } from "./use_session";

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Origin({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("sources");
  const from = source.provenance ? provenanceIn(source.provenance, i18n.language) : null;
  const layers = layerNames(source, i18n.language).join(", ");
  return (
    <dl className="source__facts">
      <Fact name={t("layers")}>{layers || t("no_layer")}</Fact>
      <Fact name={t("publisher")}>{plainText(from?.publisher ?? "") || t("unknown")}</Fact>
      <Fact name={t("licence")}>{plainText(from?.licence ?? "") || t("unknown")}</Fact>
    </dl>
  );
}

function useBudgetText({ floor_s }: SourceInfo): string {
  const { t, i18n } = useTranslation("sources");
  const budget = budgetOf(floor_s);
  if (floor_s === null || budget === null) return t("no_floor");
  return t("floor", { time: intervalText(t, floor_s), budget: countText(budget, i18n.language) });
}

function Time({ at }: { at: string | null }) {
  const { t } = useTranslation("sources");
  const at_ms = timeOf(at);
  return <span className="num">{at_ms === null ? t("never") : `${utcText(at_ms)} UTC`}</span>;
}

function Runs({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("sources");
  const schedule = useScheduleText(source);
  const budget = useBudgetText(source);
  return (
    <dl className="source__facts">
      <Fact name={t("schedule")}>{schedule ?? t("unknown")}</Fact>
      <Upcoming source={source} />
      <Fact name={t("budget")}>{budget}</Fact>
      <Fact name={t("last_run")}>
        <Time at={source.last_run_at} />
        {source.last_job === null ? null : <span className="num faint"> #{source.last_job}</span>}
      </Fact>
      <Fact name={t("last_success")}>
        <Time at={source.last_success_at} />
      </Fact>
      <Fact name={t("rows_last_run")}>
        <span className="num">
          {source.rows_last_run === null ? "–" : countText(source.rows_last_run, i18n.language)}
        </span>
      </Fact>
    </dl>
  );
}

function Codes({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("sources");
  if (source.rejects_last_run === 0) return t("nothing_refused");
  const codes = [...source.reject_codes].sort((a, b) => b.count - a.count);
  if (codes.length === 0) return countText(source.rejects_last_run, i18n.language);
  return (
    <ul>
      {codes.map(({ code, count }) => (
        <li key={code}>
          <span className="num">{countText(count, i18n.language)}</span> × <code>{code}</code>{" "}
          <span className="dim">{rejectText(t, code)}</span>
        </li>
      ))}
    </ul>
  );
}

/** Strangers get no text of an answer or an error where the operator closed that to them. */
function Closed({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("sources");
  const { signed_in } = useSession();
  const hidden = source.last_error_code !== null && source.last_error === null;
  const silent = source.rejects_last_run > 0 && source.sample === null;
  return !signed_in && (hidden || silent) ? <p className="faint">{t("closed")}</p> : null;
}

function Faults({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("sources");
  return (
    <div>
      <dl className="source__facts">
        <Fact name={t("refused")}>
          <Codes source={source} />
        </Fact>
        <Fact name={t("last_error")}>
          {source.last_error_code === null ? (
            t("no_error")
          ) : (
            <span className="source__error">
              <Fault code={source.last_error_code} text={source.last_error} />
            </span>
          )}
        </Fact>
      </dl>
      {source.sample ? <JobSample sample={source.sample} /> : null}
      <Closed source={source} />
    </div>
  );
}

function Switches({
  source,
  onEdit,
  edit,
}: {
  source: SourceInfo;
  onEdit: () => void;
  edit: React.RefObject<HTMLButtonElement | null>;
}) {
  const { t } = useTranslation("sources");
  return (
    <div className="source__more">
      <span className="sdetails__switch">
        <EnabledSwitch source={source} />
        <span aria-hidden="true">{t("by_schedule")}</span>
      </span>
      <button
        ref={edit}
        type="button"
        className="button"
        aria-label={t("earth:sources.edit_label", { source: source.source })}
        onClick={onEdit}
      >
        {t("earth:sources.edit")}
      </button>
      <ClearAction source={source.source} />
    </div>
  );
}

/** Editing stands under the facts; the keyboard comes back to the button that began it. */
function Changes({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("sources");
  const { may_operate } = useSession();
  const [editing, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const done = () => {
    flushSync(() => setEditing(false));
    edit.current?.focus();
  };
  if (source.paused === null)
    return (
      <p className="faint">
        {t("by_settings")} <code>PLANETWIRE_FEEDS__{source.source.toUpperCase()}__…</code>
      </p>
    );
  if (!may_operate) return null;
  if (editing) return <JobSchedule source={source} onDone={done} />;
  return <Switches source={source} edit={edit} onEdit={() => setEditing(true)} />;
}

export function SourceDetails({ source }: { source: SourceInfo }) {
  return (
    <div className="sdetails">
      <div className="sdetails__facts">
        <Runs source={source} />
        <Faults source={source} />
        <Origin source={source} />
      </div>
      <Changes source={source} />
    </div>
  );
}
