/**
 * The server's side of the observation contract as a model: one log, its replay rules, its snapshots, a stream. A test
 * decides when a frame arrives, is lost on the way, or an answer comes; the rules are those of the contract.
 */
import type { Fetch } from "../client/http";
import type { OpenSource, SourceEvents } from "../client/sse_transport";
import { jsonResponse } from "./clock";
import { detailBody } from "./observations";

interface Event {
  revision: number;
  city: string;
  frame: Record<string, unknown>;
}

interface Connection extends SourceEvents {
  cities: readonly string[];
  queue: Record<string, unknown>[];
}

interface Pending {
  answer: () => void;
  fail: () => void;
}

const EPOCHS = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd"];

export class LogServer {
  epoch = EPOCHS[0] as string;
  head = 0;
  #lives = 0;
  #events: Event[] = [];
  readonly #last = new Map<string, number>();
  readonly #pruned = new Map<string, number>();
  readonly #history = new Map<string, Map<number, number>>();
  #connection: Connection | null = null;
  readonly #pending: Pending[] = [];
  opened = 0;

  /** A reading of the city; the same time again is a correction. */
  append(city: string, at_ms: number, temp: number): void {
    this.head += 1;
    const history = this.#history.get(city) ?? new Map<number, number>();
    this.#history.set(city, history.set(at_ms, temp));
    const frame = {
      type: "city_observation_patch.v1",
      schema_version: 1,
      epoch: this.epoch,
      city,
      source: "awc_metar",
      revision: this.head,
      prev_revision: this.#last.get(city) ?? 0,
      obs_time: new Date(at_ms).toISOString(),
      ts: 0,
      payload: { temp, series_key: "metar", unit: "celsius", runway_points: [], source_cadence_sec: 1_800 },
    };
    this.#last.set(city, this.head);
    this.#events.push({ revision: this.head, city, frame });
    if (this.#connection?.cities.includes(city)) this.#connection.queue.push(frame);
  }

  /** Forgets the events, keeps the readings. */
  prune(): void {
    for (const { city, revision } of this.#events) this.#pruned.set(city, revision);
    this.#events = [];
  }

  /** Another log begins: revisions count from nothing. */
  begin(): void {
    this.#lives += 1;
    this.epoch = EPOCHS[this.#lives % EPOCHS.length] as string;
    this.head = 0;
    this.#events = [];
    this.#last.clear();
    this.#pruned.clear();
    this.cut();
  }

  detail(city: string): Record<string, unknown> {
    const points = [...(this.#history.get(city) ?? [])].sort(([a], [b]) => a - b);
    const newest = points.at(-1);
    const primary = newest && {
      temp: newest[1],
      obs_time: new Date(newest[0]).toISOString(),
      source: "awc_metar",
      series_key: "metar",
    };
    const series = { series_key: "metar", source: "awc_metar", label: null, cadence_s: 1_800, points };
    return detailBody(city, this.head, {
      epoch: this.epoch,
      local_date: null,
      airport_primary: primary ?? null,
      timeseries: { series: points.length > 0 ? [series] : [] },
    });
  }

  readonly open: OpenSource = (url, events) => {
    const query = new URL(url, "http://test").searchParams;
    const cities = (query.get("cities") ?? "").split(",");
    const made: Connection = { ...events, cities, queue: [] };
    this.opened += 1;
    if (this.#connection) throw new Error("two open streams");
    this.#connection = made;
    const last = Object.fromEntries(cities.map((city) => [city, this.#last.get(city) ?? 0]));
    made.queue.push({ type: "connected", epoch: this.epoch, revision: this.head, cities: last, heartbeat_s: 30 });
    this.#replay(made, query.get("since_revision"), Number(query.get("replay_limit")));
    return {
      close: () => {
        if (this.#connection === made) this.#connection = null;
      },
    };
  };

  #replay(made: Connection, since: string | null, limit: number): void {
    if (since === null) return;
    const [epoch, revision] = [since.slice(0, 12), Number(since.slice(13))];
    const resync = (reason: string) =>
      made.queue.push({ type: "resync_required", reason, latest_revision: this.head, cities: made.cities });
    if (epoch !== this.epoch) resync("epoch_changed");
    else if (revision > this.head) resync("revision_ahead");
    else if (made.cities.some((city) => (this.#pruned.get(city) ?? 0) > revision)) resync("replay_window_exceeded");
    else {
      const missed = this.#events.filter((one) => one.revision > revision && made.cities.includes(one.city));
      if (missed.length > limit) resync("replay_window_exceeded");
      else made.queue.push(...missed.map(({ frame }) => frame));
    }
  }

  /** Lets the next frames arrive. */
  deliver(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const frame = this.#connection?.queue.shift();
      if (!frame) return;
      this.#connection?.onMessage(JSON.stringify(frame));
    }
  }

  /** The next frame never arrives, and nobody says so. */
  lose(): void {
    const queue = this.#connection?.queue ?? [];
    if (queue[0]?.type === "city_observation_patch.v1") queue.shift();
  }

  /** A heartbeat, once everything before it was sent. */
  beat(): void {
    this.#connection?.queue.push({ type: "heartbeat", cursor: `${this.epoch}-${this.head}` });
  }

  cut(): void {
    const lost = this.#connection;
    this.#connection = null;
    lost?.onLost();
  }

  get queued(): number {
    return this.#connection?.queue.length ?? 0;
  }

  /** Answers the oldest request, with what was true when it was asked. */
  answer(): void {
    this.#pending.shift()?.answer();
  }

  fail(): void {
    this.#pending.shift()?.fail();
  }

  get asked(): number {
    return this.#pending.length;
  }

  readonly fetch: Fetch = (path, init) => {
    const body = this.#body(path);
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        answer: () => resolve(jsonResponse(body)),
        fail: () => resolve(jsonResponse({ code: "unavailable" }, 503)),
      };
      this.#pending.push(pending);
      init?.signal?.addEventListener("abort", () => {
        const at = this.#pending.indexOf(pending);
        if (at >= 0) this.#pending.splice(at, 1);
        reject(init.signal?.reason);
      });
    });
  };

  #body(path: string): unknown {
    const match = /^\/api\/city\/([^/]+)\/(detail|summary)$/.exec(path);
    if (!match) return path === "/api/cities" ? { items: [] } : { revision: this.head, epoch: this.epoch, rows: [] };
    const detail = this.detail(decodeURIComponent(match[1] as string));
    return match[2] === "detail" ? detail : { current: detail.airport_primary ?? { obs_time: null } };
  }
}
