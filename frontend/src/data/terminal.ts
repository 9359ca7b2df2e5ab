/**
 * Everything the Terminal page shows: rows, the visible cities, the stream between them and the server.
 *
 * Invariants: the stream asks for exactly the visible cities; what is shown of a city is a snapshot and an unbroken run
 * of its events, of which at most the last `PAINT_MS` are not drawn yet.
 */
import { createStore, type StoreApi } from "zustand/vanilla";
import type { Backoff } from "../client/backoff";
import type { CityDetail, TerminalRow } from "../client/city_wire";
import type { Http } from "../client/http";
import { ObservationStream } from "../client/sse";
import type { CityStep } from "../client/sse_frames";
import type { StreamState } from "../client/sse_states";
import type { OpenSource } from "../client/sse_transport";
import { browserTimers, type Timers } from "../client/timers";
import { applyPatch, type CityState, cityFromDetail, rollDay } from "./city";
import { DetailLoader, type Verdict } from "./detail_loader";
import { Pace } from "./pace";
import { RowLoader } from "./row_loader";
import { type Aliases, mergeRows, rowWithCity, rowWithPatch } from "./rows";
import { SilenceWatch } from "./silence";

const TICK_MS = 15_000;
/** Events are drawn at most this often; the first after a pause at once. */
const PAINT_MS = 200;

/** `resyncing`: something was missed and is being fetched. `gap`: fetching it failed for good. */
export type Mark = "none" | "resyncing" | "gap";

export interface CityView {
  phase: "loading" | "ready" | "failed";
  /** What is shown; kept while it is fetched again. */
  state: CityState | null;
  mark: Mark;
  error: string | null;
}

export interface TerminalState {
  connection: StreamState;
  rows: readonly TerminalRow[];
  rows_phase: "loading" | "ready" | "failed";
  rows_error: string | null;
  /** Further names of each city, for the search. */
  aliases: Aliases;
  cities: Readonly<Record<string, CityView>>;
}

export interface TerminalOptions {
  http: Http;
  open: OpenSource;
  timers?: Timers;
  backoff?: Backoff;
  /** Whether the page is hidden; then no background fetches are made. */
  isHidden?: () => boolean;
  debug?: (message: string, detail: string) => void;
}

const NEW_CITY: CityView = { phase: "loading", state: null, mark: "none", error: null };

export class Terminal {
  readonly store: StoreApi<TerminalState>;
  readonly stream: ObservationStream;
  readonly #timers: Timers;
  readonly #isHidden: () => boolean;
  readonly #loader: DetailLoader;
  readonly #rows: RowLoader;
  readonly #silence: SilenceWatch;
  readonly #paint: Pace;
  /** Steps from the stream that the store does not show yet, by city. */
  #waiting = new Map<string, CityStep[]>();
  #visible: readonly string[] = [];
  #cancelTick: () => void = () => {};

  constructor({ http, open, timers = browserTimers, backoff, isHidden = () => false, debug }: TerminalOptions) {
    this.#timers = timers;
    this.#isHidden = isHidden;
    this.store = createStore<TerminalState>(() => ({
      connection: "idle",
      rows: [],
      rows_phase: "loading",
      rows_error: null,
      aliases: {},
      cities: {},
    }));
    this.#loader = new DetailLoader(http, timers, {
      onDetail: (city, detail) => this.#onDetail(city, detail),
      onTrouble: (city, error) => this.#setView(city, { ...this.#view(city), error }),
      onGaveUp: (city, code) => this.#onGaveUp(city, code),
    });
    this.#rows = new RowLoader(http, timers, {
      onRows: (rows) =>
        this.store.setState((old) => ({ rows: mergeRows(old.rows, rows), rows_phase: "ready", rows_error: null })),
      // Rows that were shown stay; only a first load can fail as a whole.
      onFailed: (code) =>
        this.store.setState((old) => ({ rows_phase: old.rows.length > 0 ? "ready" : "failed", rows_error: code })),
      onAliases: (aliases) => this.store.setState({ aliases }),
    });
    this.#silence = new SilenceWatch({
      http,
      timers,
      stateOf: (city) => this.#view(city).state,
      isWhole: (city) => this.#view(city).mark === "none",
      load: (city, fresh) => this.#loader.load(city, fresh),
    });
    this.#paint = new Pace(timers, PAINT_MS, () => this.#flush());
    this.stream = new ObservationStream({
      open,
      timers,
      backoff,
      debug,
      listener: {
        onState: (connection) => this.store.setState({ connection }),
        onSteps: (city, steps) => this.#onSteps(city, steps),
        onResync: (cities) => this.#onResync(cities),
      },
    });
  }

  /** Begins with the rows; call `show` for the cities. */
  async start(): Promise<void> {
    this.#tickLater();
    await this.#rows.start();
  }

  stop(): void {
    this.#cancelTick();
    this.#rows.stop();
    this.stream.stop();
    this.#loader.stop();
    for (const city of this.#visible) this.#silence.forget(city);
    this.#paint.now();
    this.#visible = [];
  }

  /** The cities on screen, all of them. */
  show(cities: readonly string[]): void {
    const next = [...new Set(cities)];
    for (const city of this.#visible.filter((old) => !next.includes(old))) this.#hide(city);
    const added = next.filter((city) => !this.#visible.includes(city));
    this.#visible = next;
    for (const city of added) {
      // What was shown before comes back at once, and is fetched again: the stream did not follow it meanwhile.
      const known = this.#view(city);
      this.#setView(city, {
        ...known,
        phase: known.state ? "ready" : "loading",
        error: null,
        mark: known.state ? "resyncing" : "none",
      });
      this.#loader.load(city, false);
    }
    this.stream.want(next);
  }

  /** Tries again what failed. */
  retry(city: string): void {
    const known = this.#view(city);
    this.#setView(city, {
      ...known,
      phase: known.state ? "ready" : "loading",
      mark: known.mark === "gap" ? "resyncing" : "none",
    });
    this.#loader.load(city, true);
  }

  retryRows(): void {
    void this.#rows.load();
  }

  /** The page can be seen again, or the network is back. */
  wake(): void {
    this.stream.wake();
    this.#check();
  }

  #hide(city: string): void {
    // Its row in the list stays, and must not miss what came last.
    if (this.#waiting.has(city)) this.#paint.now();
    this.#loader.drop(city);
    this.stream.cursors.forget(city);
    this.#silence.forget(city);
  }

  #view(city: string): CityView {
    return this.store.getState().cities[city] ?? NEW_CITY;
  }

  #setView(city: string, view: CityView): void {
    this.store.setState(({ cities }) => ({ cities: { ...cities, [city]: view } }));
  }

  #onDetail(city: string, detail: CityDetail): Verdict {
    const { take, enough, steps } = this.stream.snapshot(city, detail.epoch, detail.revision);
    const now = this.#timers.now();
    this.#silence.note(city);
    if (take) {
      // The snapshot holds them, or it would not have been taken.
      this.#waiting.delete(city);
      const state = this.#applied(cityFromDetail({ ...detail, city }, now), steps);
      this.#changeRow(city, (row) => rowWithCity(row, state));
      this.#setView(city, { phase: "ready", state, mark: enough ? "none" : "resyncing", error: null });
    } else if (enough) {
      this.#setView(city, { ...this.#view(city), mark: "none", error: null });
    }
    return enough ? "enough" : "again";
  }

  #onGaveUp(city: string, code: string): void {
    const known = this.#view(city);
    // Silence is counted from here, so the city is polled even if no event of it ever arrives.
    this.#silence.note(city);
    this.#setView(city, {
      ...known,
      phase: known.state ? "ready" : "failed",
      mark: known.state ? "gap" : "none",
      error: code,
    });
  }

  #applied(state: CityState, steps: readonly CityStep[]): CityState {
    const now = this.#timers.now();
    return steps.reduce((city, { patch }) => (patch ? applyPatch(city, patch, now) : city), state);
  }

  #onSteps(city: string, steps: readonly CityStep[]): void {
    this.#silence.note(city);
    const waiting = this.#waiting.get(city);
    if (waiting) waiting.push(...steps);
    else this.#waiting.set(city, [...steps]);
    this.#paint.ask();
  }

  /** Shows all that waits, of all cities in one change. */
  #flush(): void {
    if (this.#waiting.size === 0) return;
    const waiting = this.#waiting;
    this.#waiting = new Map();
    this.store.setState(({ cities, rows }) => {
      const next = { ...cities };
      for (const [city, steps] of waiting) {
        const view = this.#view(city);
        if (view.state) next[city] = { ...view, state: this.#applied(view.state, steps) };
      }
      return { cities: next, rows: rows.map((row) => rowAfter(row, waiting.get(row.city))) };
    });
  }

  #changeRow(city: string, change: (row: TerminalRow) => TerminalRow): void {
    this.store.setState(({ rows }) => {
      const old = rows.find((row) => row.city === city);
      const next = old && change(old);
      return next === old ? {} : { rows: rows.map((row) => (row === old && next ? next : row)) };
    });
  }

  #onResync(cities: readonly string[]): void {
    for (const city of cities.filter((each) => this.#visible.includes(each))) {
      const view = this.#view(city);
      this.#setView(city, { ...view, mark: view.state ? "resyncing" : "none" });
      this.#loader.load(city, true);
    }
  }

  #tickLater(): void {
    this.#cancelTick = this.#timers.after(TICK_MS, () => {
      this.#check();
      this.#tickLater();
    });
  }

  /** Begins new days, and polls cities of which the stream has long been silent. */
  #check(): void {
    const now = this.#timers.now();
    for (const city of this.#visible) {
      const view = this.#view(city);
      const rolled = view.state && rollDay(view.state, now);
      if (rolled && rolled !== view.state) this.#setView(city, { ...view, state: rolled });
    }
    if (this.#isHidden()) return;
    this.#silence.check(this.#visible.filter((city) => !this.#loader.isLoading(city)));
    this.#rows.fetchIfDue();
  }
}

function rowAfter(row: TerminalRow, steps: readonly CityStep[] = []): TerminalRow {
  return steps.reduce((next, { patch }) => (patch ? rowWithPatch(next, patch) : next), row);
}
