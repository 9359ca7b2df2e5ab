/** What one source is set to and how it fared, and for those who may the way to change it. */
import { useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useTranslation } from "react-i18next";
import type { SourceInfo } from "../client/earth_types";
import { countText } from "./earth_format";
import { Fault } from "./Fault";
import { JobSchedule } from "./JobSchedule";
import { ClearAction, PauseAction } from "./JobSourceActions";
import { intervalText, tickText } from "./job_format";
import { useSession } from "./use_session";

export function Upcoming({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("earth");
  const ticks = source.upcoming.flatMap((at) => tickText(at, source.time_zone, i18n.language) ?? []);
  if (source.cron === null || ticks.length === 0) return null;
  return (
    <div>
      <dt>{t("sources.upcoming")}</dt>
      <dd>
        <ul className="num">
          {ticks.map((tick) => (
            <li key={tick}>{tick}</li>
          ))}
        </ul>
      </dd>
    </div>
  );
}

export function useScheduleText(source: SourceInfo): string | null {
  const { t } = useTranslation("earth");
  if (source.cron !== null) return t("sources.by_calendar", { cron: source.cron, zone: source.time_zone ?? "UTC" });
  if (source.interval_s === null) return null;
  return t("sources.every", { time: intervalText(t, source.interval_s) });
}

function Facts({ source }: { source: SourceInfo }) {
  const { t, i18n } = useTranslation("earth");
  const schedule = useScheduleText(source);
  const refused = (count: number) => countText(count, i18n.language);
  return (
    <dl className="source__facts">
      <div>
        <dt>{t("sources.kind")}</dt>
        <dd>{schedule ?? "–"}</dd>
      </div>
      <Upcoming source={source} />
      <div>
        <dt>{t("sources.rejects_last")}</dt>
        <dd className="num">{refused(source.rejects_last_run)}</dd>
      </div>
      <div>
        <dt>{t("sources.rejects_all")}</dt>
        <dd className="num">{refused(source.rejects)}</dd>
      </div>
      {source.last_error ? (
        <div>
          <dt>{t("sources.last_error")}</dt>
          <dd className="source__error">
            <Fault code={source.last_error_code} text={source.last_error} />
          </dd>
        </div>
      ) : null}
    </dl>
  );
}

/** Editing takes the facts' place; the keyboard comes back to the button that began it. */
export function JobSourceDetails({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const { may_operate } = useSession();
  const [editing, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const done = () => {
    flushSync(() => setEditing(false));
    edit.current?.focus();
  };
  if (editing && may_operate) return <JobSchedule source={source} onDone={done} />;
  return (
    <>
      <Facts source={source} />
      {may_operate ? (
        <div className="source__more">
          <button
            ref={edit}
            type="button"
            className="button"
            aria-label={t("sources.edit_label", { source: source.source })}
            onClick={() => setEditing(true)}
          >
            {t("sources.edit")}
          </button>
          <PauseAction source={source} />
          <ClearAction source={source.source} />
        </div>
      ) : null}
    </>
  );
}
