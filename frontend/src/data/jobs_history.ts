/**
 * Finished jobs page by page. Each final status is paged by itself, since the ledger pages one status at a time: with
 * k pages of each, the newest k pages of all together are complete. Pure.
 */
import type { FinalStatus, JobRow } from "../client/earth_types";
import { inTab } from "./jobs_core";

/** Rows a page: as many as a person scrolls through before asking for more. */
export const PAGE_ROWS = 30;
/** Beyond this the panel is the wrong tool; it also bounds what is kept. */
export const PAGES_MAX = 20;

/** `dead`: failed, and no other job does the work again. */
export type JobFilter = "all" | FinalStatus | "dead";
export const JOB_FILTERS: readonly JobFilter[] = ["all", "completed", "failed", "cancelled", "dead"];

const FINAL: readonly FinalStatus[] = ["completed", "failed", "cancelled"];

export interface Pages {
  readonly read: number;
  /** Cursor of the next page; null after the last, undefined before the first. */
  readonly next: number | null | undefined;
}

export interface History {
  readonly pages: Readonly<Record<FinalStatus, Pages>>;
  readonly state: "idle" | "loading" | "failed";
  readonly error: string | null;
}

const UNREAD: Pages = { read: 0, next: undefined };
export const NO_HISTORY: History = {
  pages: { completed: UNREAD, failed: UNREAD, cancelled: UNREAD },
  state: "idle",
  error: null,
};

export function statusesOf(filter: JobFilter): readonly FinalStatus[] {
  if (filter === "all") return FINAL;
  return filter === "dead" ? ["failed"] : [filter];
}

function fits(row: JobRow, filter: JobFilter): boolean {
  if (filter === "all") return true;
  if (filter === "dead") return row.status === "failed" && row.retried_as === null;
  return row.status === filter;
}

/** Pages that are complete for the filter: the fewest of its statuses that are not at their end. */
export function pagesRead(history: History, filter: JobFilter): number {
  const open = statusesOf(filter).flatMap((status) => {
    const { read, next } = history.pages[status];
    return next === null ? [] : [read];
  });
  return open.length === 0 ? PAGES_MAX : Math.min(...open);
}

/** What has to be read for one more complete page; empty when there is no more. */
export function statusesBehind(history: History, filter: JobFilter): readonly FinalStatus[] {
  const read = pagesRead(history, filter);
  if (read >= PAGES_MAX) return [];
  return statusesOf(filter).filter((status) => {
    const pages = history.pages[status];
    return pages.next !== null && pages.read === read;
  });
}

/** The rows of the finished tab, and no row that an older, unread one might come before. */
export function finishedRows(rows: Iterable<JobRow>, history: History, filter: JobFilter): JobRow[] {
  const chosen = inTab(rows, "finished").filter((row) => fits(row, filter));
  return chosen.slice(0, Math.max(1, pagesRead(history, filter)) * PAGE_ROWS);
}

/** How many finished rows are worth keeping in memory. */
export function rowsKept(history: History): number {
  const read = FINAL.reduce((sum, status) => sum + history.pages[status].read, 0);
  return Math.max(2, read + 2) * PAGE_ROWS;
}
