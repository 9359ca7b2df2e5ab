/** The ledger in three tabs: what runs, what waits, and what is over, page by page. */
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow } from "../client/earth_types";
import { COUNTED_MAX, inTab, type JobTab, shownCount, tabCounts, tabOf } from "../data/jobs_core";
import { finishedRows, JOB_FILTERS, type JobFilter, pagesRead, statusesBehind } from "../data/jobs_history";
import { countText } from "./earth_format";
import { JobItem } from "./JobItem";
import { codeText } from "./reasons";
import { useJobs, useJobsAccess } from "./use_jobs";

const TABS: readonly JobTab[] = ["running", "queued", "finished"];

/** How many there are of each kind, with a plus where there are more than that. */
function useCounts(): Readonly<Record<JobTab, string>> {
  const { i18n } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const more = useJobs((view) => view.more);
  const history = useJobs((view) => view.history);
  const ledger = useJobs((view) => view.counts);
  const known = tabCounts(rows.values());
  const text = ({ count, open }: { count: number; open: boolean }) =>
    `${countText(count, i18n.language)}${open ? "+" : ""}`;
  return {
    running: text(shownCount(known.running, ledger?.running)),
    queued: text(shownCount(known.queued, ledger?.queued)),
    finished: text({ count: known.finished, open: more && statusesBehind(history, "all").length > 0 }),
  };
}

/** Where an arrow key leads from a tab; null for any other key. */
function tabAfter(tab: JobTab, key: string): JobTab | null {
  const at = TABS.indexOf(tab);
  const steps: Record<string, number> = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    Home: 0,
    End: TABS.length - 1,
  };
  const next = steps[key];
  return next === undefined ? null : (TABS[(next + TABS.length) % TABS.length] ?? null);
}

function TabList({ tab, onTab }: { tab: JobTab; onTab: (tab: JobTab) => void }) {
  const { t } = useTranslation("earth");
  const counts = useCounts();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const next = tabAfter(tab, event.key);
    if (next === null) return;
    event.preventDefault();
    onTab(next);
    list.current?.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div ref={list} className="segmented tabs" role="tablist" aria-label={t("jobs.tabs")} onKeyDown={move}>
      {TABS.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={tab === name}
          aria-controls="jobs-list"
          tabIndex={tab === name ? 0 : -1}
          onClick={() => onTab(name)}
        >
          {t(`jobs.${name}`)} <span className="num tabs__count">{counts[name]}</span>
        </button>
      ))}
    </div>
  );
}

function Rows({ rows }: { rows: readonly JobRow[] }) {
  return (
    <ul className="jobs">
      {rows.map((job) => (
        <JobItem key={job.id} job={job} />
      ))}
    </ul>
  );
}

function Nothing({ words }: { words: "none_running" | "none_queued" | "none_finished" | "none_filter" }) {
  const { t } = useTranslation("earth");
  const phase = useJobs((view) => view.phase);
  if (phase === "failed") return null;
  return <p className="jobs__none dim">{t(phase === "loading" ? "jobs.loading" : `jobs.${words}`)}</p>;
}

/** Failures that were not retried, of any age. */
function Dead({ onShow }: { onShow: () => void }) {
  const { t, i18n } = useTranslation("earth");
  const dead = useJobs((view) => view.counts?.dead ?? 0);
  if (dead === 0) return null;
  const amount = `${countText(dead, i18n.language)}${dead >= COUNTED_MAX ? "+" : ""}`;
  return (
    <p className="jobs__dead">
      <button type="button" className="link" onClick={onShow}>
        {t("jobs.dead", { count: dead, amount })}
      </button>
    </p>
  );
}

function Filter({ filter, onFilter }: { filter: JobFilter; onFilter: (filter: JobFilter) => void }) {
  const { t } = useTranslation("earth");
  return (
    <label className="jobs__filter dim">
      {t("jobs.filter")}
      <select
        className="input"
        value={filter}
        onChange={(event) => onFilter(JOB_FILTERS.find((name) => name === event.target.value) ?? "all")}
      >
        {JOB_FILTERS.map((name) => (
          <option key={name} value={name}>
            {t(`jobs.filter_${name}`)}
          </option>
        ))}
      </select>
    </label>
  );
}

function More({ filter }: { filter: JobFilter }) {
  const { t } = useTranslation("earth");
  const jobs = useJobsAccess();
  const history = useJobs((view) => view.history);
  const loading = history.state === "loading";
  if (statusesBehind(history, filter).length === 0) return null;
  return (
    <div className="jobs__more">
      {history.state === "failed" ? (
        <p className="layer__remark--bad" role="status">
          {t("jobs.more_failed", { code: codeText(history.error) })}
        </p>
      ) : null}
      <button
        type="button"
        className="button"
        disabled={loading}
        title={loading ? t("jobs.reading_more") : undefined}
        onClick={() => void jobs.readMore(filter)}
      >
        {t(loading ? "jobs.reading_more" : "jobs.show_more")}
      </button>
    </div>
  );
}

function Finished() {
  const jobs = useJobsAccess();
  const rows = useJobs((view) => view.rows);
  const history = useJobs((view) => view.history);
  const phase = useJobs((view) => view.phase);
  const [filter, setFilter] = useState<JobFilter>("all");
  const unread = phase === "ready" && pagesRead(history, filter) === 0 && history.state === "idle";
  useEffect(() => {
    if (unread) void jobs.readMore(filter);
  }, [jobs, unread, filter]);
  const chosen = finishedRows(rows.values(), history, filter);
  return (
    <>
      {filter === "dead" ? null : <Dead onShow={() => setFilter("dead")} />}
      <Filter filter={filter} onFilter={setFilter} />
      {chosen.length > 0 ? <Rows rows={chosen} /> : null}
      {chosen.length === 0 && history.state === "idle" ? (
        <Nothing words={filter === "all" ? "none_finished" : "none_filter"} />
      ) : null}
      {phase === "ready" ? <More filter={filter} /> : null}
    </>
  );
}

function Active({ tab }: { tab: "running" | "queued" }) {
  const rows = useJobs((view) => view.rows);
  const chosen = inTab(rows.values(), tab);
  return chosen.length > 0 ? <Rows rows={chosen} /> : <Nothing words={`none_${tab}`} />;
}

/**
 * Opens with what runs, or with what has run when nothing does. Decided once the lists are there and then left to the
 * person: a tab that changes by itself puts another job under the pointer.
 */
function useTab(): readonly [JobTab, (tab: JobTab) => void] {
  const [chosen, choose] = useState<JobTab | null>(null);
  const rows = useJobs((view) => view.rows);
  const ready = useJobs((view) => view.phase === "ready");
  const tabs = new Set([...rows.values()].map((row) => tabOf(row.status)));
  const fitting = TABS.find((tab) => tabs.has(tab)) ?? "running";
  useEffect(() => {
    if (ready) choose((held) => held ?? fitting);
  }, [ready, fitting]);
  return [chosen ?? fitting, choose];
}

export function JobTabs() {
  const [tab, setTab] = useTab();
  return (
    <>
      <TabList tab={tab} onTab={setTab} />
      <div id="jobs-list" role="tabpanel" aria-labelledby={`tab-${tab}`}>
        {tab === "finished" ? <Finished /> : <Active tab={tab} />}
      </div>
    </>
  );
}
