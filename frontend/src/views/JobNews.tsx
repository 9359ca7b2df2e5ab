/** Announces job changes to screen readers: of jobs this person started or ended, and every failure. Polite. */
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, JobStatus } from "../client/earth_types";
import { announcementText } from "./job_words";
import { useJobs } from "./use_jobs";

/** Only changes since the last render. A queued job is announced by its button's toast. */
function turned(rows: ReadonlyMap<number, JobRow>, before: ReadonlyMap<number, JobStatus>, mine: ReadonlySet<number>) {
  return [...rows.values()].filter((row) => {
    const held = before.get(row.id);
    if (held === row.status || (held === undefined && row.status === "queued")) return false;
    return mine.has(row.id) || (held !== undefined && row.status === "failed");
  });
}

export function JobNews() {
  const { t } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const mine = useJobs((view) => view.mine);
  const before = useRef<ReadonlyMap<number, JobStatus>>(new Map());
  const [news, setNews] = useState("");
  useEffect(() => {
    const turns = turned(rows, before.current, mine);
    before.current = new Map([...rows.values()].map((row) => [row.id, row.status]));
    if (turns.length > 0) setNews(turns.map((row) => announcementText(t, row)).join(". "));
  }, [rows, mine, t]);
  return (
    <p className="visually-hidden" role="status" aria-live="polite" data-news>
      {news}
    </p>
  );
}
