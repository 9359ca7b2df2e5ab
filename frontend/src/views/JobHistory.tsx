/** Who started, stopped and repeated a job, and the last lines of its log; read while it is unfolded. */
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { JobRow } from "../client/earth_types";
import type { JobAct, JobNotes, LogLine } from "../client/job_notes_wire";
import { isFinal } from "../data/jobs_core";
import { agoText } from "./age";
import { timeOf, utcText } from "./earth_format";
import { reasonText } from "./reasons";
import { useJobsAccess } from "./use_jobs";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** A running job's log is read this often. */
const EVERY_MS = 1_500;

type Read = { notes: JobNotes | null; failed: string | null };

/** Reads at once, and again until stopped: for ever while `active`, else once more. */
function follow(read: () => Promise<void>, active: boolean): () => void {
  let timer: number | undefined;
  let stopped = false;
  const poll = async (left: number) => {
    await read();
    if (stopped || left === 0) return;
    timer = window.setTimeout(() => void poll(active ? left : left - 1), EVERY_MS);
  };
  void poll(1);
  return () => {
    stopped = true;
    window.clearTimeout(timer);
  };
}

/** A new status triggers a read: the last lines of a job that ended are written a moment later. */
function useNotes(job: JobRow, open: boolean): Read {
  const jobs = useJobsAccess();
  const [read, setRead] = useState<Read>({ notes: null, failed: null });
  const { id, status, retried_as } = job;
  // biome-ignore lint/correctness/useExhaustiveDependencies: that it was run again is news, too.
  useEffect(() => {
    if (!open) return;
    let over = false;
    const update = (next: (before: Read) => Read) => {
      if (!over) setRead(next);
    };
    const once = () =>
      jobs.notes(id).then(
        (notes) => update(() => ({ notes, failed: null })),
        (error: unknown) => update((before) => ({ ...before, failed: reasonText(error) })),
      );
    const stop = follow(once, !isFinal(status));
    return () => {
      over = true;
      stop();
    };
  }, [jobs, id, status, retried_as, open]);
  return read;
}

function Act({ act }: { act: JobAct }) {
  const { t } = useTranslation("earth");
  const now = useNow(5_000);
  const at_ms = timeOf(act.at);
  const words = {
    who: act.who,
    what: act.what,
    id: act.what === "job.retried" ? act.retried_as : act.retry_of,
    count: act.rows_deleted ?? 0,
  };
  const key = act.what === "job.submitted" && act.retry_of !== null ? "retry_of" : act.what.replace(".", "_");
  return (
    <li>
      {t(`acts.${key}`, { ...words, defaultValue: t("acts.other", words) })}
      {act.role ? <span className="faint"> {t(`role.${act.role}`, { defaultValue: act.role })}</span> : null}
      {at_ms === null ? null : (
        <time className="faint num" dateTime={act.at} title={`${utcText(at_ms)} UTC`}>
          {agoText(t, now - at_ms)}
        </time>
      )}
    </li>
  );
}

function Line({ line }: { line: LogLine }) {
  const { t } = useTranslation("earth");
  const at_ms = timeOf(line.at);
  return (
    <li data-event={line.event}>
      <time className="faint num" dateTime={line.at}>
        {at_ms === null ? "" : utcText(at_ms).slice(11)}
      </time>
      <span className="log__event">{t(`log_event.${line.event}`, { defaultValue: line.event })}</span>
      {line.text ? <span lang="en">{line.text}</span> : null}
    </li>
  );
}

/** Follows its end, unless the reader has scrolled up. */
function Log({ lines, id }: { lines: readonly LogLine[]; id: number }) {
  const { t } = useTranslation("earth");
  const list = useRef<HTMLOListElement>(null);
  const follows = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new lines are what moves the end.
  useEffect(() => {
    const box = list.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [lines]);
  if (lines.length === 0) return <p className="dim">{t("acts.no_log")}</p>;
  const noteScroll = () => {
    const box = list.current;
    if (box) follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be within reach of the keyboard.
    <ol ref={list} className="log" tabIndex={0} aria-label={t("acts.log_label", { id })} onScroll={noteScroll}>
      {lines.map((line, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name and only move up.
        <Line key={`${line.at} ${n}`} line={line} />
      ))}
    </ol>
  );
}

function Notes({ job, read }: { job: JobRow; read: Read }) {
  const { t } = useTranslation("earth");
  const { notes, failed } = read;
  return (
    <>
      {failed ? (
        <p className="job__error" role="status">
          {t("acts.failed", { reason: failed })}
        </p>
      ) : null}
      {notes === null && !failed ? <p className="dim">{t("acts.loading")}</p> : null}
      {notes === null ? null : (
        <>
          {notes.acts.length === 0 ? <p className="dim">{t("acts.nobody")}</p> : null}
          <ul className="acts">
            {notes.acts.map((act) => (
              <Act key={act.id} act={act} />
            ))}
          </ul>
          <Log lines={notes.lines} id={job.id} />
        </>
      )}
    </>
  );
}

/** Names of people are for those signed in. */
export function JobHistory({ job }: { job: JobRow }) {
  const { t } = useTranslation("earth");
  const { signed_in } = useSession();
  const [open, setOpen] = useState(false);
  const read = useNotes(job, open && signed_in);
  if (!signed_in) return null;
  return (
    <details className="history" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary aria-label={t("acts.summary_label", { id: job.id })}>{t("acts.summary")}</summary>
      {open ? <Notes job={job} read={read} /> : null}
    </details>
  );
}
