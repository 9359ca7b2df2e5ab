/** The right panel: sources with their two actions, and the ledger in three tabs. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { inTab, type JobTab, tabOf } from "../data/jobs_core";
import { keepJobsOpen, readJobsOpen } from "./earth_memory";
import { ChevronIcon } from "./icons";
import { JobItem } from "./JobItem";
import { JobSources } from "./JobSources";
import { useJobs } from "./use_earth";

const TABS: readonly JobTab[] = ["running", "queued", "finished"];

function Tabs({ tab, onTab }: { tab: JobTab; onTab: (tab: JobTab) => void }) {
  const { t } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const counts = { running: 0, queued: 0, finished: 0 };
  for (const row of rows.values()) counts[tabOf(row.status)] += 1;
  return (
    <div className="segmented tabs" role="tablist" aria-label={t("jobs.tabs")}>
      {TABS.map((name) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={tab === name}
          aria-controls="jobs-list"
          onClick={() => onTab(name)}
        >
          {t(`jobs.${name}`)} <span className="num tabs__count">{counts[name]}</span>
        </button>
      ))}
    </div>
  );
}

function List({ tab }: { tab: JobTab }) {
  const { t } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const phase = useJobs((view) => view.phase);
  const chosen = inTab(rows.values(), tab);
  if (chosen.length === 0) {
    const key = phase === "loading" ? "jobs.loading" : (`jobs.none_${tab}` as const);
    return <p className="jobs__none dim">{phase === "failed" ? null : t(key)}</p>;
  }
  return (
    <ul className="jobs">
      {chosen.map((job) => (
        <JobItem key={job.id} job={job} />
      ))}
    </ul>
  );
}

/** A person who has not chosen a tab sees what runs, and what has run when nothing does. */
function useTab(): readonly [JobTab, (tab: JobTab) => void] {
  const [chosen, choose] = useState<JobTab | null>(null);
  const rows = useJobs((view) => view.rows);
  if (chosen) return [chosen, choose];
  const tabs = new Set([...rows.values()].map((row) => tabOf(row.status)));
  return [TABS.find((tab) => tabs.has(tab)) ?? "running", choose];
}

export function JobPanel() {
  const { t } = useTranslation("earth");
  const [open, setOpen] = useState(readJobsOpen);
  const [tab, setTab] = useTab();
  const phase = useJobs((view) => view.phase);
  const code = useJobs((view) => view.error);
  const toggle = () => {
    setOpen(!open);
    keepJobsOpen(!open);
  };
  const label = t(open ? "jobs.close" : "jobs.open");
  return (
    <section className="panel float" aria-labelledby="jobs-title" data-open={open}>
      <header className="float__head">
        <h2 id="jobs-title">{t("jobs.title")}</h2>
        <button
          type="button"
          className="button button--quiet button--icon float__fold"
          aria-expanded={open}
          aria-label={label}
          title={label}
          onClick={toggle}
        >
          <ChevronIcon />
        </button>
      </header>
      <div className="float__body" hidden={!open}>
        {phase === "failed" ? (
          <p className="layer__remark layer__remark--bad" role="status">
            {t("sources.failed", { code })}
          </p>
        ) : null}
        <JobSources />
        <Tabs tab={tab} onTab={setTab} />
        <div id="jobs-list" role="tabpanel" aria-labelledby={`tab-${tab}`}>
          <List tab={tab} />
        </div>
      </div>
    </section>
  );
}
