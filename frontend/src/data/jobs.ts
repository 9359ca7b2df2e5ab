/** The jobs and sources that the page knows of: pushed rows and fetched lists merged, newest row wins. */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { JobRow, SourceInfo, TaskType } from "../client/earth_types";
import type { Http } from "../client/http";
import { cancelJob, fetchJobs, fetchSources, retryJob, submitJob } from "../client/job_wire";
import type { Timers } from "../client/timers";
import { inTab, isFinal, nextRate, type RateSample, supersedes } from "./jobs_core";
import { errorCode, retryDelay } from "./layer";

/** Rows asked for at once, and finished rows kept: as many as a person scrolls through. */
export const JOBS_SHOWN = 60;

export interface JobsView {
  readonly phase: "loading" | "ready" | "failed";
  readonly error: string | null;
  readonly rows: ReadonlyMap<number, JobRow>;
  readonly rates: ReadonlyMap<number, RateSample>;
  readonly sources: readonly SourceInfo[];
  /** Wishes on their way to the server, e.g. `cancel:7` or `collect:usgs_quakes`. */
  readonly pending: ReadonlySet<string>;
}

export interface Jobs {
  readonly store: StoreApi<JobsView>;
  take(row: JobRow): void;
  /** Read both lists again; tried until it succeeds. Resolves after the first answer. */
  reload(): Promise<void>;
  /** These reject with the HttpError of the server; the wish is `pending` meanwhile. */
  submit(task_type: TaskType, source: string): Promise<void>;
  cancel(id: number): Promise<void>;
  retry(id: number): Promise<void>;
  stop(): void;
}

export interface JobsDeps {
  http: Http;
  timers: Timers;
  random(): number;
}

const START: JobsView = {
  phase: "loading",
  error: null,
  rows: new Map(),
  rates: new Map(),
  sources: [],
  pending: new Set(),
};

function pruned(rows: Map<number, JobRow>): Map<number, JobRow> {
  for (const old of inTab(rows.values(), "finished").slice(JOBS_SHOWN)) rows.delete(old.id);
  return rows;
}

function without<T>(set: ReadonlySet<T>, item: T): Set<T> {
  const rest = new Set(set);
  rest.delete(item);
  return rest;
}

export function createJobs({ http, timers, random }: JobsDeps): Jobs {
  const store = createStore<JobsView>(() => START);
  let cancelRetry: () => void = () => undefined;
  let failures = 0;
  let stopped = false;

  function takeAll(news: readonly JobRow[]): void {
    const rows = new Map(store.getState().rows);
    const rates = new Map(store.getState().rates);
    for (const row of news) {
      if (!supersedes(row, rows.get(row.id))) continue;
      rows.set(row.id, row);
      if (isFinal(row.status)) rates.delete(row.id);
      else rates.set(row.id, nextRate(rates.get(row.id), timers.now(), row.records_processed));
    }
    store.setState({ rows: pruned(rows), rates });
  }

  async function reload(): Promise<void> {
    cancelRetry();
    try {
      const [rows, sources] = await Promise.all([fetchJobs(http, JOBS_SHOWN), fetchSources(http)]);
      failures = 0;
      takeAll(rows);
      store.setState({ phase: "ready", error: null, sources });
    } catch (error) {
      failures += 1;
      store.setState({ phase: "failed", error: errorCode(error) });
      if (!stopped) cancelRetry = timers.after(retryDelay(failures, false, random()), () => void reload());
    }
  }

  async function wish(key: string, ask: () => Promise<unknown>): Promise<void> {
    if (store.getState().pending.has(key)) return;
    store.setState({ pending: new Set([...store.getState().pending, key]) });
    try {
      await ask();
      await reload();
    } finally {
      store.setState({ pending: without(store.getState().pending, key) });
    }
  }

  return {
    store,
    take: (row) => takeAll([row]),
    reload,
    submit: (task_type, source) => wish(`${task_type}:${source}`, () => submitJob(http, task_type, source)),
    cancel: (id) => wish(`cancel:${id}`, () => cancelJob(http, id)),
    retry: (id) => wish(`retry:${id}`, () => retryJob(http, id)),
    stop() {
      stopped = true;
      cancelRetry();
    },
  };
}
