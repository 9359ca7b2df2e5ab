/** Fetches the list of all cities each minute, sooner after a failure, and once the further names of each. */
import { readTerminal, type TerminalRow } from "../client/city_wire";
import { type Http, HttpError } from "../client/http";
import { record, texts } from "../client/parse";
import type { Timers } from "../client/timers";
import type { Aliases } from "./rows";

const EVERY_MS = 60_000;
const RETRY_MS = 5_000;

export interface RowListener {
  onRows(rows: readonly TerminalRow[]): void;
  /** `code` is stable. It is tried again by itself. */
  onFailed(code: string): void;
  onAliases(aliases: Aliases): void;
}

export class RowLoader {
  readonly #http: Http;
  readonly #timers: Timers;
  readonly #listener: RowListener;
  #due_ms = 0;
  #stop = new AbortController();

  constructor(http: Http, timers: Timers, listener: RowListener) {
    this.#http = http;
    this.#timers = timers;
    this.#listener = listener;
  }

  async start(): Promise<void> {
    this.#stop = new AbortController();
    await Promise.all([this.load(), this.#loadAliases()]);
  }

  stop(): void {
    this.#stop.abort(new DOMException("page left", "AbortError"));
  }

  /** Fetches the list if it is due. */
  fetchIfDue(): void {
    if (this.#timers.now() >= this.#due_ms) void this.load();
  }

  async load(): Promise<void> {
    const { signal } = this.#stop;
    this.#due_ms = this.#timers.now() + EVERY_MS;
    try {
      const body = await this.#http.get<unknown>("/api/scan/terminal", { cache: "no-cache", signal });
      this.#listener.onRows(readTerminal(body).rows);
    } catch (error) {
      if (signal.aborted) return;
      this.#due_ms = this.#timers.now() + RETRY_MS;
      const code = error instanceof HttpError ? error.code : error instanceof TypeError ? "unreadable" : "unreachable";
      this.#listener.onFailed(code);
    }
  }

  async #loadAliases(): Promise<void> {
    try {
      const body = await this.#http.get<unknown>("/api/cities", { signal: this.#stop.signal });
      const items = record(body)?.items;
      const entries = (Array.isArray(items) ? items : []).map(record);
      const named = entries.filter((entry) => typeof entry?.city === "string");
      const aliases = named.map((entry) => [entry?.city, [...texts(entry?.aliases), ...texts([entry?.iata])]]);
      this.#listener.onAliases(Object.fromEntries(aliases));
    } catch {
      // Cities are still found by their name and airport.
    }
  }
}
