/** Turns of jobs for people who do not see the list: those this person asked for, and every failure. Polite. */
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow, JobStatus } from "../client/earth_types";
import { toldText } from "./job_words";
import { useJobs } from "./use_earth";

/** Only what changed since the last look. That a job was queued is the answer to its button, and told there. */
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
    if (turns.length > 0) setNews(turns.map((row) => toldText(t, row)).join(". "));
  }, [rows, mine, t]);
  return (
    <p className="visually-hidden" role="status" aria-live="polite" data-news>
      {news}
    </p>
  );
}
