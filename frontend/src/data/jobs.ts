/** The jobs and sources that the page knows of: pushed rows and fetched lists merged, newest row wins. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { FinalStatus, JobCounts, JobRow, SourceChange, SourceInfo, TaskType } from "../client/earth_types";
import { type Http, HttpError } from "../client/http";
import { fetchJobNotes, fetchSourceRows, type JobNotes, type SourceRows } from "../client/job_notes_wire";
import {
  cancelJob,
  fetchJob,
  fetchJobCounts,
  fetchJobs,
  type JobPage,
  retryJob,
  type Submitted,
  submitJob,
} from "../client/job_wire";
import { changeSource, fetchSources } from "../client/source_wire";
import type { Timers } from "../client/timers";
import { inTab, isCrowded, isFinal, merged, type RateSample } from "./jobs_core";
import { type History, type JobFilter, NO_HISTORY, PAGE_ROWS, rowsKept, statusesBehind } from "./jobs_history";
import { errorCode, retryDelay } from "./layer";

/** Rows asked for at once: the newest of all states. */
export const JOBS_READ = 60;
/** A row that is not final and got no update for so long is fetched: its end may have been missed. */
export const SILENT_MS = 40_000;
/** Checked this often, and so many at a time. */
export const PROBE_MS = 15_000;
const PROBED = 5;
/** A job's end changes its source's times; they are read again after this delay. */
export const SOURCES_MS = 750;
/** Schedules are changed elsewhere too. */
export const SOURCES_IDLE_MS = 30_000;
/** With more jobs than rows are pushed, only the ledger can count them. */
export const COUNTS_MS = 5_000;

export interface JobsView {
  readonly phase: "loading" | "ready" | "failed";
  readonly error: string | null;
  readonly rows: ReadonlyMap<number, JobRow>;
  /** Whether the ledger has jobs that are not among `rows`. */
  readonly more: boolean;
  readonly history: History;
  /** Of the whole ledger, as last counted; null until it was. The rows say more as long as they are few. */
  readonly counts: JobCounts | null;
  readonly rates: ReadonlyMap<number, RateSample>;
  readonly sources: readonly SourceInfo[];
  /** Requests in flight, e.g. `cancel:7` or `collect:<source>`. */
  readonly pending: ReadonlySet<string>;
  /** Jobs that a person on this page started or ended: their changes are announced. */
  readonly mine: ReadonlySet<number>;
}

export interface Jobs {
  readonly store: StoreApi<JobsView>;
  take(row: JobRow): void;
  /** Read both lists again; tried until it succeeds. Resolves after the first answer. */
  reload(): Promise<void>;
  /** Read one more page of finished jobs; failures are in `history`. */
  readMore(filter: JobFilter): Promise<void>;
  /**
   * These reject with the HttpError of the server; the request is `pending` meanwhile. One that is already pending is
   * not sent again: null, or false.
   */
  submit(task_type: TaskType, source: string): Promise<Submitted | null>;
  cancel(id: number): Promise<boolean>;
  /** `confirm`: that the rows of a clear shall be deleted. */
  retry(id: number, confirm?: boolean): Promise<Submitted | null>;
  change(source: string, change: SourceChange): Promise<boolean>;
  /** Who started, stopped and repeated a job, and its log; for those signed in. */
  notes(id: number): Promise<JobNotes>;
  /** The rows that a clear of the source would delete now; for signed-in visitors. */
  rowsOf(source: string): Promise<SourceRows>;
  stop(): void;
}

export interface JobsDeps {
  http: Http;
  timers: Timers;
  random(): number;
  /** False where no ledger runs: then there are sources and no jobs. */
  ledger?: boolean;
}

const START: JobsView = {
  phase: "loading",
  error: null,
  rows: new Map(),
  more: false,
  history: NO_HISTORY,
  counts: null,
  rates: new Map(),
  sources: [],
  pending: new Set(),
  mine: new Set(),
};

async function sent(answer: Promise<unknown>): Promise<true> {
  await answer;
  return true;
}

function without<T>(set: ReadonlySet<T>, item: T): Set<T> {
  const rest = new Set(set);
  rest.delete(item);
  return rest;
}

const NO_JOBS: JobPage = { rows: [], next: null };

export function createJobs({ http, timers, random, ledger = true }: JobsDeps): Jobs {
  const store = createStore<JobsView>(() => START);
  const received = new Map<number, number>();
  let cancelRetry: () => void = () => undefined;
  let cancelProbe: () => void = () => undefined;
  let cancelSources: () => void = () => undefined;
  let sourcesDue = Number.POSITIVE_INFINITY;
  let failures = 0;
  let stopped = false;

  function drop(rows: Map<number, JobRow>, id: number): void {
    rows.delete(id);
    received.delete(id);
  }

  function takeAll(news: readonly JobRow[]): void {
    const { rows, rates, ended } = merged(store.getState(), news, timers.now());
    for (const { id } of news) received.set(id, timers.now());
    const old = inTab(rows.values(), "finished").slice(rowsKept(store.getState().history));
    for (const row of old) drop(rows, row.id);
    store.setState({ rows, rates, more: store.getState().more || old.length > 0 });
    if (ended) readSourcesSoon(SOURCES_MS);
  }

  async function readJobs(): Promise<JobPage> {
    return ledger ? await fetchJobs(http, { limit: JOBS_READ }) : NO_JOBS;
  }

  async function reload(): Promise<void> {
    cancelRetry();
    try {
      const [page, sources] = await Promise.all([readJobs(), fetchSources(http)]);
      failures = 0;
      store.setState({ phase: "ready", error: null, sources, more: page.next !== null });
      takeAll(page.rows);
      void readCounts();
      readSourcesSoon(SOURCES_IDLE_MS);
    } catch (error) {
      failures += 1;
      store.setState({ phase: "failed", error: errorCode(error) });
      if (!stopped) cancelRetry = timers.after(retryDelay(failures, false, random()), () => void reload());
    }
  }

  function readSourcesSoon(delay_ms: number): void {
    const due = timers.now() + delay_ms;
    if (stopped || due >= sourcesDue) return;
    cancelSources();
    sourcesDue = due;
    cancelSources = timers.after(delay_ms, () => void readSources());
  }

  async function readSources(): Promise<void> {
    sourcesDue = Number.POSITIVE_INFINITY;
    try {
      store.setState({ sources: await fetchSources(http) });
    } catch {
      // The rows shown stay; the connection's state shows the failure.
    }
    await readCounts();
    readSourcesSoon(isCrowded(store.getState().rows.values()) ? COUNTS_MS : SOURCES_IDLE_MS);
  }

  async function readCounts(): Promise<void> {
    if (!ledger) return;
    try {
      store.setState({ counts: await fetchJobCounts(http) });
    } catch {
      // Without it the rows are counted.
    }
  }

  /** Rows without recent updates, the oldest first: only the busiest jobs are pushed. */
  function silent(): number[] {
    const limit = timers.now() - SILENT_MS;
    const since = (id: number) => received.get(id) ?? 0;
    const ids = [...store.getState().rows.values()].flatMap((row) => (isFinal(row.status) ? [] : [row.id]));
    return ids.filter((id) => since(id) < limit).sort((a, b) => since(a) - since(b));
  }

  async function refetch(id: number): Promise<void> {
    try {
      const row = await fetchJob(http, id);
      if (row) takeAll([row]);
    } catch (error) {
      if (!(error instanceof HttpError && error.status === 404)) return;
      const rows = new Map(store.getState().rows);
      drop(rows, id);
      store.setState({ rows });
    }
  }

  function probeLater(): void {
    cancelProbe = timers.after(PROBE_MS, () => {
      const ids = silent().slice(0, PROBED);
      void Promise.all(ids.map(refetch)).then(() => {
        if (!stopped) probeLater();
      });
    });
  }

  async function readPage(status: FinalStatus): Promise<void> {
    const { read, next } = store.getState().history.pages[status];
    const cursor = next === undefined || next === null ? {} : { cursor: next };
    const page = await fetchJobs(http, { limit: PAGE_ROWS, status, ...cursor });
    const { history } = store.getState();
    const pages = { ...history.pages, [status]: { read: read + 1, next: page.next } };
    store.setState({ history: { ...history, pages } });
    takeAll(page.rows);
  }

  async function readMore(filter: JobFilter): Promise<void> {
    const { history } = store.getState();
    const behind = statusesBehind(history, filter);
    if (history.state === "loading" || behind.length === 0) return;
    store.setState({ history: { ...history, state: "loading", error: null } });
    const results = await Promise.allSettled(behind.map(readPage));
    const failed = results.find((result) => result.status === "rejected");
    const after = store.getState().history;
    const error = failed ? errorCode(failed.reason) : null;
    store.setState({ history: { ...after, state: failed ? "failed" : "idle", error } });
  }

  function mark(id: number): void {
    store.setState({ mine: new Set([...store.getState().mine, id]) });
  }

  async function wish<T>(key: string, ask: () => Promise<T>): Promise<T | null> {
    if (store.getState().pending.has(key)) return null;
    store.setState({ pending: new Set([...store.getState().pending, key]) });
    try {
      const answer = await ask();
      await reload();
      return answer;
    } catch (error) {
      if (error instanceof HttpError && error.status === 409) await reload(); // what is shown is out of date
      throw error;
    } finally {
      store.setState({ pending: without(store.getState().pending, key) });
    }
  }

  async function retryAsk(id: number, confirm: boolean): Promise<Submitted> {
    const answer = await retryJob(http, id, confirm);
    mark(answer.task_id);
    await refetch(id); // an old row is not pushed: what it was retried as is read here
    return answer;
  }

  async function submitAsk(task_type: TaskType, source: string): Promise<Submitted> {
    const answer = await submitJob(http, task_type, source);
    mark(answer.task_id);
    return answer;
  }

  probeLater();
  return {
    store,
    take: (row) => takeAll([row]),
    reload,
    readMore,
    submit: (task_type, source) => wish(`${task_type}:${source}`, () => submitAsk(task_type, source)),
    async cancel(id) {
      mark(id);
      return (await wish(`cancel:${id}`, () => sent(cancelJob(http, id)))) === true;
    },
    retry: (id, confirm = false) => wish(`retry:${id}`, () => retryAsk(id, confirm)),
    async change(source, change) {
      return (await wish(`source:${source}`, () => sent(changeSource(http, source, change)))) === true;
    },
    notes: (id) => fetchJobNotes(http, id),
    rowsOf: (source) => fetchSourceRows(http, source),
    stop() {
      stopped = true;
      cancelRetry();
      cancelProbe();
      cancelSources();
    },
  };
}
