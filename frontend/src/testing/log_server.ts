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
  /** Cities of which a frame was lost on this connection. */
  lost: Set<string>;
}

/** A reading as it was stored: in which life of the log, and as which of its events. */
interface Stored {
  life: number;
  revision: number;
  at_ms: number;
  temp: number;
}

interface Pending {
  answer: () => void;
  fail: () => void;
}

export class LogServer {
  head = 0;
  #life = 0;
  #events: Event[] = [];
  readonly #last = new Map<string, number>();
  readonly #pruned = new Map<string, number>();
  readonly #stored = new Map<string, Stored[]>();
  #connection: Connection | null = null;
  /** The one that the page has closed last. */
  #left: Connection | null = null;
  readonly #pending: Pending[] = [];
  opened = 0;

  get epoch(): string {
    return `epoch${String(this.#life).padStart(7, "0")}`;
  }

  /** A reading of the city; the same time again is a correction. */
  append(city: string, at_ms: number, temp: number): void {
    this.head += 1;
    this.#readings(city).push({ life: this.#life, revision: this.head, at_ms, temp });
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
    this.#life += 1;
    this.head = 0;
    this.#events = [];
    this.#last.clear();
    this.#pruned.clear();
    this.cut();
  }

  #readings(city: string): Stored[] {
    const stored = this.#stored.get(city) ?? [];
    this.#stored.set(city, stored);
    return stored;
  }

  /** How many readings of the city there are up to this revision of the present log, those of former logs included. */
  count(city: string, revision = this.head): number {
    return this.#readings(city).filter((one) => one.life < this.#life || one.revision <= revision).length;
  }

  /** The city's snapshot as it is now, or as it was after its first `count` readings. */
  detail(city: string, count = Number.POSITIVE_INFINITY): Record<string, unknown> {
    const history = new Map(
      this.#readings(city)
        .slice(0, count)
        .map(({ at_ms, temp }) => [at_ms, temp] as const),
    );
    const points = [...history].sort(([a], [b]) => a - b);
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
    const made: Connection = { ...events, cities, queue: [], lost: new Set() };
    this.opened += 1;
    if (this.#connection) throw new Error("two open streams");
    this.#connection = made;
    const last = Object.fromEntries(cities.map((city) => [city, this.#last.get(city) ?? 0]));
    made.queue.push({ type: "connected", epoch: this.epoch, revision: this.head, cities: last, heartbeat_s: 30 });
    this.#replay(made, query.get("since_revision"), Number(query.get("replay_limit")));
    return {
      close: () => {
        if (this.#connection !== made) return;
        this.#connection = null;
        this.#left = made;
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

  /** A frame arrives that was on its way when the page closed its stream. */
  late(): void {
    const frame = this.#left?.queue.shift();
    if (frame) this.#left?.onMessage(JSON.stringify(frame));
  }

  /** The next frame never arrives, and nobody says so. */
  lose(): void {
    const connection = this.#connection;
    const frame = connection?.queue[0];
    if (!connection || frame?.type !== "city_observation_patch.v1") return;
    connection.lost.add(frame.city as string);
    connection.queue = connection.queue.slice(1).filter(({ type }) => type !== "heartbeat");
  }

  /** Whether a frame of the city was lost on the open connection. */
  hasLost(city: string): boolean {
    return this.#connection?.lost.has(city) ?? false;
  }

  /** A heartbeat, once everything before it was sent. None where a frame was lost: it would say that all came. */
  beat(): void {
    if (this.#connection?.lost.size !== 0) return;
    this.#connection.queue.push({ type: "heartbeat", cursor: `${this.epoch}-${this.head}` });
  }

  /** The cities that the open connection asked for. */
  get asked_cities(): readonly string[] | null {
    return this.#connection?.cities ?? null;
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
