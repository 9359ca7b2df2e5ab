/** All sources, what is wrong first, under the counts of their states. */
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, SourceInfo } from "../client/earth_types";
import {
  inHeldOrder,
  jobsBySource,
  jobsOf,
  type Listed,
  SOURCE_STATES,
  severityOf,
  stateCounts,
  stateOf,
  worstFirst,
} from "../data/source_state";
import { SourceRow } from "./SourceRow";
import { STATE_TONES } from "./source_text";
import { useJobs } from "./use_jobs";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** A list that moves under the pointer or the keyboard puts another source under the click: meanwhile it stays. */
function useSteadyOrder(listed: readonly Listed[], steady: boolean): Listed[] {
  const held = useRef<readonly string[]>([]);
  const next = steady ? inHeldOrder(listed, held.current) : worstFirst(listed);
  useEffect(() => {
    held.current = next.map(({ info }) => info.source);
  });
  return next;
}

function useListed(sources: readonly SourceInfo[], rows: ReadonlyMap<number, JobRow>): Listed[] {
  const now = useNow(5_000);
  const jobs = jobsBySource(rows.values());
  return sources.map((info) => {
    const own = jobsOf(jobs, info.source);
    return { info, jobs: own, state: stateOf(info, own, now) };
  });
}

function Summary({ listed }: { listed: readonly Listed[] }) {
  const { t } = useTranslation("sources");
  const wrong = listed.filter(({ state }) => severityOf(state) === "bad").length;
  return (
    <div className="summary" role="status" data-wrong={wrong}>
      <strong className={wrong > 0 ? "is-old" : undefined}>
        {wrong > 0 ? t("wrong", { count: wrong }) : t("all_well")}
      </strong>
      <ul className="summary__states" aria-label={t("by_state")}>
        {stateCounts(listed).map(({ state, count }) => (
          <li key={state} className={`badge ${STATE_TONES[severityOf(state)]}`}>
            {t(`state.${state}`)} <span className="num">{count}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

const COLUMNS = ["state", "source", "success", "rate", "rows", "rejects", "now"] as const;

/** What the columns are, where rows are wide enough to have any; each value has the same words for screen readers. */
function Heads() {
  const { t } = useTranslation("sources");
  return (
    <div className="srow srow--heads" aria-hidden="true">
      {COLUMNS.map((column) => (
        <span key={column}>{t(`column.${column}`)}</span>
      ))}
    </div>
  );
}

function Meanings() {
  const { t } = useTranslation("sources");
  return (
    <details className="meanings">
      <summary>{t("meanings")}</summary>
      <dl>
        {SOURCE_STATES.map((state) => (
          <div key={state}>
            <dt>
              <span className={`badge ${STATE_TONES[severityOf(state)]}`}>{t(`state.${state}`)}</span>
            </dt>
            <dd>{t(`about.${state}`)}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

export function SourceList() {
  const { t } = useTranslation("sources");
  const sources = useJobs((view) => view.sources);
  const rows = useJobs((view) => view.rows);
  const phase = useJobs((view) => view.phase);
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const { may_operate } = useSession();
  const listed = useListed(sources, rows);
  const shown = useSteadyOrder(listed, pointed || focused);
  if (sources.length === 0)
    return phase === "failed" ? null : <p className="dim">{t(phase === "ready" ? "none" : "loading")}</p>;
  return (
    <>
      <Summary listed={listed} />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: nothing is done here; the order waits while it is used. */}
      <div
        className="panel slist"
        data-operates={may_operate}
        onPointerEnter={() => setPointed(true)}
        onPointerLeave={() => setPointed(false)}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
      >
        <Heads />
        <ul aria-label={t("title")}>
          {shown.map((listed) => (
            <SourceRow key={listed.info.source} listed={listed} />
          ))}
        </ul>
      </div>
      <Meanings />
    </>
  );
}
