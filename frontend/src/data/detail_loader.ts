/** Fetches city details: at most three at once, one per city, repeated until recent enough; then reports once. */
import { createBackoff } from "../client/backoff";
import { type CityDetail, readDetail } from "../client/city_wire";
import { type Http, HttpError, isRetryable } from "../client/http";
import type { Timers } from "../client/timers";

const PARALLEL = 3;
const ATTEMPTS = 8;

/** `again`: the answer was usable but not far enough. */
export type Verdict = "enough" | "again";

export interface LoaderListener {
  onDetail(city: string, detail: CityDetail): Verdict;
  /** The fetch failed and is retried later. */
  onTrouble(city: string, code: string): void;
  /** No more retries until requested. `code` is stable. */
  onGaveUp(city: string, code: string): void;
}

interface Task {
  cache: RequestCache;
  attempts: number;
  /** Requested again during a fetch, whose answer may be too old. */
  again: boolean;
  stop: AbortController;
  backoff: ReturnType<typeof createBackoff>;
  cancelWait: () => void;
}

export class DetailLoader {
  readonly #http: Http;
  readonly #timers: Timers;
  readonly #listener: LoaderListener;
  readonly #tasks = new Map<string, Task>();
  readonly #queue: (readonly [string, Task])[] = [];
  #running = 0;

  constructor(http: Http, timers: Timers, listener: LoaderListener) {
    this.#http = http;
    this.#timers = timers;
    this.#listener = listener;
  }

  isLoading(city: string): boolean {
    return this.#tasks.has(city);
  }

  /** `fresh` bypasses every cache. A load under way is followed by another one. */
  load(city: string, fresh: boolean): void {
    const cache: RequestCache = fresh ? "no-store" : "no-cache";
    const task = this.#tasks.get(city);
    if (task) {
      task.again ||= fresh;
      task.cache = fresh ? cache : task.cache;
      return;
    }
    const made = { cache, attempts: 0, again: false, stop: new AbortController(), backoff: createBackoff() };
    this.#enqueue(city, { ...made, cancelWait: () => {} });
  }

  drop(city: string): void {
    const task = this.#tasks.get(city);
    task?.cancelWait();
    task?.stop.abort(new DOMException("no longer shown", "AbortError"));
    this.#tasks.delete(city);
  }

  stop(): void {
    for (const city of [...this.#tasks.keys()]) this.drop(city);
  }

  #enqueue(city: string, task: Task): void {
    this.#tasks.set(city, task);
    this.#queue.push([city, task]);
    this.#pump();
  }

  #pump(): void {
    while (this.#running < PARALLEL && this.#queue.length > 0) {
      const [city, task] = this.#queue.shift() as readonly [string, Task];
      // The task of a city that was dropped and perhaps requested again.
      if (this.#tasks.get(city) === task) void this.#run(city, task);
    }
  }

  async #run(city: string, task: Task): Promise<void> {
    this.#running += 1;
    task.attempts += 1;
    task.again = false;
    try {
      await this.#attempt(city, task);
    } finally {
      this.#running -= 1;
      this.#pump();
    }
  }

  async #attempt(city: string, task: Task): Promise<void> {
    const mine = () => this.#tasks.get(city) === task;
    try {
      const path = `/api/city/${encodeURIComponent(city)}/detail`;
      const body = await this.#http.get<unknown>(path, { cache: task.cache, signal: task.stop.signal });
      if (!mine()) return;
      const verdict = this.#listener.onDetail(city, readDetail(body));
      if (verdict === "enough" && !task.again) this.#tasks.delete(city);
      else this.#later(city, task, "behind");
    } catch (error) {
      if (mine()) this.#failed(city, task, error);
    }
  }

  #failed(city: string, task: Task, error: unknown): void {
    if (isRetryable(error)) this.#later(city, task, error instanceof HttpError ? error.code : "unreachable");
    else this.#giveUp(city, error instanceof HttpError ? error.code : "unreadable");
  }

  #later(city: string, task: Task, code: string): void {
    if (task.attempts >= ATTEMPTS) {
      this.#giveUp(city, code);
      return;
    }
    task.cache = "no-store";
    if (!task.again) this.#listener.onTrouble(city, code);
    task.cancelWait = this.#timers.after(task.again ? 0 : task.backoff.next(), () => this.#enqueue(city, task));
  }

  #giveUp(city: string, code: string): void {
    this.#tasks.delete(city);
    this.#listener.onGaveUp(city, code);
  }
}
