/** The right panel: sources with what can be done to them, and the ledger in three tabs. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { keepJobsOpen, readJobsOpen } from "./earth_memory";
import { FoldButton } from "./FoldButton";
import { JobNews } from "./JobNews";
import { JobSources } from "./JobSources";
import { JobTabs } from "./JobTabs";
import { codeText } from "./reasons";
import { useJobs } from "./use_jobs";

export function JobPanel() {
  const { t } = useTranslation("earth");
  const [open, setOpen] = useState(readJobsOpen);
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
        <FoldButton open={open} label={label} className="float__fold" onToggle={toggle} />
      </header>
      <JobNews />
      <div className="float__body" hidden={!open}>
        {phase === "failed" ? (
          <p className="layer__remark layer__remark--bad" role="status">
            {t("sources.failed", { code: codeText(code) })}
          </p>
        ) : null}
        <JobSources />
        <JobTabs />
      </div>
    </section>
  );
}
