import { describe, expect, it } from "vitest";
import { createBackoff } from "../client/backoff";
import { createHttp } from "../client/http";
import { type ManualTimers, manualTimers, settle } from "../testing/clock";
import { detailBody, fakeServer, rowBody } from "../testing/observations";
import { connected, EPOCH, fakeSources, patch } from "../testing/stream";
import { type CityView, Terminal } from "./terminal";

const NOON = Date.UTC(2026, 4, 26, 10);
const A = "/api/city/shanghai/detail";
const B = "/api/city/hong%20kong/detail";

async function pass(timers: ManualTimers, ms: number): Promise<void> {
  await settle();
  timers.advance(ms);
  await settle();
}

function setUp(routes: Record<string, unknown> = {}) {
  const timers = manualTimers(NOON);
  const wire = fakeSources();
  const visible = { hidden: false };
  const all: Record<string, unknown> = {
    "/api/scan/terminal": { revision: 5, epoch: EPOCH, rows: [rowBody("shanghai"), rowBody("hong kong")] },
    "/api/cities": { items: [{ city: "hong kong", aliases: ["hk"], iata: "HKG" }] },
    [A]: detailBody("shanghai", 5),
    [B]: detailBody("hong kong", 8),
    ...routes,
  };
  const server = fakeServer(all);
  const terminal = new Terminal({
    http: createHttp(server.fetch),
    open: wire.open,
    timers,
    backoff: createBackoff({ random: () => 0.5 }),
    isHidden: () => visible.hidden,
    debug: () => {},
  });
  const details = () => server.asked.filter(({ path }) => path.startsWith("/api/city/"));
  const view = (city: string): CityView => {
    const found = terminal.store.getState().cities[city];
    if (!found) throw new Error(`${city} was never shown`);
    return found;
  };
  const points = (city: string) => view(city).state?.series.flatMap(({ y }) => y) ?? [];
  return { terminal, timers, wire, server, routes: all, visible, details, view, points };
}

async function live(routes: Record<string, unknown> = {}, cities = ["shanghai", "hong kong"]) {
  const made = setUp(routes);
  const started = made.terminal.start();
  made.terminal.show(cities);
  await pass(made.timers, 200);
  await started;
  made.wire.last().send(connected(Object.fromEntries(cities.map((city) => [city, 5])), 8));
  return made;
}

describe("the first load (S182)", () => {
  it("is rows, then details of the visible cities, then one stream from the least of them", async () => {
    const { server, wire, terminal, view } = await live();
    expect(server.asked.map(({ path }) => path)).toEqual(["/api/scan/terminal", "/api/cities", A, B]);
    expect(wire.sources.map(({ url }) => url)).toEqual([
      `/api/events?cities=hong%20kong,shanghai&since_revision=${EPOCH}-5&replay_limit=500`,
    ]);
    expect(view("shanghai")).toMatchObject({ phase: "ready", mark: "none", error: null });
    expect(terminal.store.getState()).toMatchObject({
      connection: "live",
      rows_phase: "ready",
      aliases: { "hong kong": ["hk", "HKG"] },
    });
  });

  it("brings the list along: no chart shows a reading that the list beside it does not have", async () => {
    const airport_primary = {
      temp: 23,
      obs_time: new Date(NOON).toISOString(),
      source: "hko",
      series_key: "settlement",
    };
    const day_high = { temp: 25, obs_time: new Date(NOON).toISOString() };
    const { terminal } = await live({
      [B]: detailBody("hong kong", 8, { airport_primary, day_high, local_date: "2026-05-26" }),
    });
    expect(terminal.store.getState().rows[1]).toMatchObject({
      temp_c: 23,
      max_c: 25,
      observed_ms: NOON,
      source: "hko",
    });
    expect(terminal.store.getState().rows[0]).toMatchObject({ city: "shanghai", temp_c: 10 });
  });

  it("does not let one city that fails keep the others waiting", async () => {
    const { wire, timers, view } = setUpShown({ [A]: new TypeError("refused") });
    await pass(timers, 200);
    expect(wire.sources).toHaveLength(0);
    expect(view("shanghai")).toMatchObject({ phase: "loading", error: "unreachable" });
    await pass(timers, 2_000);
    expect(wire.last().url).toContain(`since_revision=${EPOCH}-8`);
  });

  it("says what is wrong with a city that the server does not know, and tries again when told", async () => {
    const { routes, terminal, timers, view } = setUpShown({ [A]: undefined });
    await pass(timers, 200);
    expect(view("shanghai")).toMatchObject({ phase: "failed", error: "not_found", state: null });
    routes[A] = detailBody("shanghai", 9);
    terminal.retry("shanghai");
    await pass(timers, 0);
    expect(view("shanghai")).toMatchObject({ phase: "ready", error: null });
  });

  it("asks again by itself, much later, for a city that it gave up", async () => {
    const { routes, timers, view, details } = setUpShown({ [A]: new TypeError("refused") });
    for (let round = 0; round < 12 && view("shanghai").phase !== "failed"; round += 1) await pass(timers, 30_000);
    expect(view("shanghai")).toMatchObject({ phase: "failed", error: "unreachable" });
    const before = details().filter(({ path }) => path === A).length;
    expect(before).toBe(8);
    await pass(timers, 100_000);
    expect(details().filter(({ path }) => path === A)).toHaveLength(before);
    routes[A] = detailBody("shanghai", 9);
    for (let round = 0; round < 3; round += 1) await pass(timers, 15_000);
    expect(view("shanghai")).toMatchObject({ phase: "ready", error: null });
  });
});

function setUpShown(routes: Record<string, unknown>) {
  const made = setUp(routes);
  void made.terminal.start();
  made.terminal.show(["shanghai", "hong kong"]);
  return made;
}

describe("patches (S176, S183)", () => {
  // S226, S221
  it("become points, the headline and the row, all of several at once (F25)", async () => {
    const { wire, points, view, terminal, timers } = await live();
    for (const revision of [9, 10, 11])
      wire.last().send(patch("shanghai", revision, revision === 9 ? 5 : revision - 1));
    // The first is there at once, the others are drawn together.
    expect(points("shanghai")).toEqual([29]);
    timers.advance(200);
    expect(points("shanghai")).toEqual([29, 30, 31]);
    expect(view("shanghai").state?.headline?.temp_c).toBe(31);
    expect(terminal.store.getState().rows[0]).toMatchObject({ city: "shanghai", temp_c: 31, max_c: 31 });
    expect(terminal.store.getState().rows[1]).toMatchObject({ city: "hong kong", temp_c: 10 });
  });

  it("that came while a detail was on its way are applied after it, those in it are not", async () => {
    const { terminal, wire, timers, routes, points } = await live({}, ["shanghai"]);
    const answers: ((body: unknown) => void)[] = [];
    routes[B] = () => new Promise((resolve) => void answers.push(resolve));
    terminal.show(["shanghai", "hong kong"]);
    await pass(timers, 2_200);
    wire.last().send(connected({ "hong kong": 8 }, 8));
    wire.last().send(patch("hong kong", 9, 8));
    wire.last().send(patch("hong kong", 12, 9));
    expect(points("hong kong")).toEqual([]);
    answers[0]?.(detailBody("hong kong", 10));
    await pass(timers, 0);
    expect(points("hong kong")).toEqual([32]);
  });
});

it("does not draw an event over a snapshot that already holds its correction", async () => {
  const { wire, terminal, timers, points, routes } = await live();
  const at = { obs_time: new Date(NOON).toISOString() };
  wire.last().send({ ...patch("shanghai", 9, 5, { temp: 1 }), ...at });
  wire.last().send({ ...patch("shanghai", 10, 9, { temp: 2 }), ...at });
  const series = { series_key: "metar", source: "awc_metar", points: [[NOON, 3]] };
  routes[A] = detailBody("shanghai", 11, { timeseries: { series: [series] } });
  terminal.retry("shanghai");
  await settle();
  await pass(timers, 1_000);
  expect(points("shanghai")).toEqual([3]);
});

describe("a gap (S188, S194)", () => {
  it("marks the city, fetches it past every cache, and takes the mark away when the snapshot reaches far enough", async () => {
    const { wire, details, view, points, timers, routes } = await live();
    wire.last().send(patch("shanghai", 20, 15));
    expect(view("shanghai").mark).toBe("resyncing");
    await settle();
    // The first answer is from before the gap.
    expect(details().at(-1)).toEqual({ path: A, cache: "no-store" });
    expect([view("shanghai").mark, points("shanghai")]).toEqual(["resyncing", []]);
    routes[A] = detailBody("shanghai", 15);
    await pass(timers, 2_000);
    expect([view("shanghai").mark, points("shanghai")]).toEqual(["none", [40]]);
    expect(view("hong kong").mark).toBe("none");
  });

  // F11: the cursor moves with a snapshot that came, never with one that was asked for.
  it("stays marked when it cannot be fetched, keeps the curve, and is tried again when told", async () => {
    const { wire, details, view, timers, routes, terminal } = await live();
    wire.last().send(patch("shanghai", 9, 5));
    routes[A] = new TypeError("refused");
    wire.last().send(patch("shanghai", 30, 25));
    const before = details().length;
    for (let round = 0; round < 12; round += 1) await pass(timers, 30_000);
    expect(details().filter(({ path }) => path === A).length - before).toBeLessThanOrEqual(12);
    expect(view("shanghai")).toMatchObject({ phase: "ready", mark: "gap", error: "unreachable" });
    expect(view("shanghai").state?.headline?.temp_c).toBe(29);
    routes[A] = detailBody("shanghai", 30);
    terminal.retry("shanghai");
    await pass(timers, 0);
    expect(view("shanghai").mark).toBe("none");
  });

  // S157, S173, S226: by HTTP, past every cache.
  it("that the server tells of is fetched for the cities it names (F34, S223)", async () => {
    const { wire, details, routes, timers, view } = await live();
    const before = details().length;
    routes[B] = detailBody("hong kong", 40);
    wire
      .last()
      .send({ type: "resync_required", reason: "replay_window_exceeded", latest_revision: 40, cities: ["hong kong"] });
    await pass(timers, 0);
    expect(details().slice(before)).toEqual([{ path: B, cache: "no-store" }]);
    expect(view("hong kong").mark).toBe("none");
  });
});

describe("the visible cities", () => {
  it("are all that is asked for; one that comes back is there at once and fetched again (frontend.md rows 43, 46)", async () => {
    const { terminal, wire, timers, view, points, routes, details } = await live();
    wire.last().send(patch("shanghai", 9, 5));
    terminal.show(["hong kong"]);
    await pass(timers, 200);
    expect(wire.last().url).toContain("cities=hong%20kong&");
    routes[A] = detailBody("shanghai", 12);
    const before = details().length;
    terminal.show(["hong kong", "shanghai"]);
    expect(points("shanghai")).toEqual([29]);
    expect(view("shanghai").mark).toBe("resyncing");
    await pass(timers, 200);
    expect(
      details()
        .slice(before)
        .map(({ path }) => path),
    ).toEqual([A]);
    wire.last().send(connected({ shanghai: 12 }, 12));
    wire.last().send(patch("shanghai", 13, 12));
    expect(points("shanghai")).toEqual([33]);
    expect(wire.sources.filter(({ closed }) => !closed)).toHaveLength(1);
  });

  it("that come back are waited for: the stream does not replay what their snapshot will hold", async () => {
    const { terminal, wire, timers, routes } = await live();
    terminal.show(["hong kong"]);
    await pass(timers, 200);
    wire.last().send(connected({ "hong kong": 8 }, 50));
    wire.last().send({ type: "heartbeat", cursor: `${EPOCH}-50` });
    const answers: ((body: unknown) => void)[] = [];
    routes[A] = () => new Promise((resolve) => void answers.push(resolve));
    terminal.show(["hong kong", "shanghai"]);
    await pass(timers, 200);
    expect(wire.sources.filter(({ closed }) => !closed)).toEqual([]);
    answers[0]?.(detailBody("shanghai", 55));
    await pass(timers, 0);
    expect(wire.last().url).toContain(`cities=hong%20kong,shanghai&since_revision=${EPOCH}-50&`);
  });

  it("are no longer asked for once they are hidden, and an answer that is late changes nothing", async () => {
    const { terminal, timers, routes, details, view } = setUpShown({ [A]: new TypeError("refused") });
    await pass(timers, 200);
    terminal.show(["hong kong"]);
    const before = details().filter(({ path }) => path === A).length;
    await pass(timers, 60_000);
    expect(details().filter(({ path }) => path === A)).toHaveLength(before);
    const answers: ((body: unknown) => void)[] = [];
    routes[A] = () => new Promise((resolve) => void answers.push(resolve));
    terminal.show(["hong kong", "shanghai"]);
    await settle();
    terminal.show(["hong kong"]);
    answers[0]?.(detailBody("shanghai", 5));
    await settle();
    expect(view("shanghai")).toMatchObject({ phase: "loading", state: null });
  });

  it("are loaded three at a time", async () => {
    const names = ["a", "b", "c", "d", "e"];
    let running = 0;
    let most = 0;
    const answers: (() => void)[] = [];
    const slow = (name: string) => () => {
      running += 1;
      most = Math.max(most, running);
      return new Promise((resolve) => {
        answers.push(() => {
          running -= 1;
          resolve(detailBody(name, 1));
        });
      });
    };
    const { terminal, view } = setUp(Object.fromEntries(names.map((name) => [`/api/city/${name}/detail`, slow(name)])));
    terminal.show(names);
    for (let turn = 0; turn < names.length; turn += 1) {
      await settle();
      answers.shift()?.();
    }
    await settle();
    expect(most).toBe(3);
    expect(names.map((name) => view(name).phase)).toEqual(names.map(() => "ready"));
  });

  it("are left alone once the page is left, and nothing keeps running", async () => {
    const { terminal, timers, wire } = await live();
    terminal.stop();
    await settle();
    expect(timers.pending).toBe(0);
    expect(wire.sources.every(({ closed }) => closed)).toBe(true);
    expect(terminal.store.getState().connection).toBe("idle");
  });
});

describe("a long silence (S178, Q30)", () => {
  const MINUTELY = { series_key: "runway", source: "amos", cadence_s: 60, points: [[NOON, 20]] };
  const SUMMARY = "/api/city/shanghai/summary";

  function silent(more: Record<string, unknown> = {}) {
    const hourly = { series_key: "metar", source: "metar", cadence_s: 1_800, points: [[NOON, 20]] };
    const beside = { series_key: "reference", source: "amos", cadence_s: 60, points: [[NOON, 20]] };
    const primary = { temp: 20, obs_time: new Date(NOON).toISOString(), source: "amos", series_key: "runway" };
    return live({
      [A]: detailBody("shanghai", 5, { timeseries: { series: [MINUTELY] }, airport_primary: primary }),
      [B]: detailBody("hong kong", 8, { timeseries: { series: [hourly, beside] } }),
      [SUMMARY]: { current: { obs_time: new Date(NOON).toISOString() } },
      "/api/city/hong%20kong/summary": { current: { obs_time: null } },
      ...more,
    });
  }

  it("has the visible cities asked lightly after two minutes, or twice the source's cadence", async () => {
    const { details, timers, wire } = await silent();
    const before = details().length;
    const beat = () => wire.last().send({ type: "heartbeat", cursor: `${EPOCH}-8` });
    for (let second = 0; second < 3_690; second += 15) {
      if (second % 30 === 0) beat();
      await pass(timers, 15_000);
      if (second === 105) expect(details()).toHaveLength(before);
    }
    const asked = details().slice(before);
    expect(asked.filter(({ path }) => path === SUMMARY).length).toBeGreaterThan(20);
    expect(asked.filter(({ path }) => path !== SUMMARY)).toEqual([
      { path: "/api/city/hong%20kong/summary", cache: "no-cache" },
    ]);
  });

  it("fetches the curves past every cache when the light answer is newer than what is shown", async () => {
    const { details, timers, routes, points } = await silent();
    const before = details().length;
    routes[SUMMARY] = { current: { obs_time: new Date(NOON + 60_000).toISOString() } };
    const newer = { ...MINUTELY, points: [...MINUTELY.points, [NOON + 60_000, 21]] };
    routes[A] = detailBody("shanghai", 9, { timeseries: { series: [newer] } });
    for (let round = 0; round < 9; round += 1) await pass(timers, 15_000);
    expect(details().slice(before)).toEqual([
      { path: SUMMARY, cache: "no-cache" },
      { path: A, cache: "no-store" },
    ]);
    expect(points("shanghai")).toEqual([20, 21]);
  });

  it("changes nothing when the light question fails", async () => {
    const { details, timers, view } = await silent({ [SUMMARY]: new TypeError("refused") });
    const before = details().length;
    for (let round = 0; round < 9; round += 1) await pass(timers, 15_000);
    expect(
      details()
        .slice(before)
        .map(({ path }) => path),
    ).toEqual([SUMMARY]);
    expect(view("shanghai")).toMatchObject({ mark: "none", error: null, phase: "ready" });
  });

  it("asks nothing while nobody looks, and looks when somebody comes back", async () => {
    const { server, timers, visible, terminal, wire } = await live();
    visible.hidden = true;
    const before = server.asked.length;
    for (let round = 0; round < 20; round += 1) {
      wire.last().send({ type: "heartbeat", cursor: `${EPOCH}-8` });
      await pass(timers, 30_000);
    }
    expect(server.asked).toHaveLength(before);
    visible.hidden = false;
    terminal.wake();
    await settle();
    expect(server.asked.slice(before).map(({ path }) => path)).toContain("/api/scan/terminal");
  });

  it("begins the city's new day at its midnight without any event", async () => {
    const { view, timers, wire } = await live({}, ["shanghai"]);
    wire.last().send(patch("shanghai", 9, 5));
    expect(view("shanghai").state).toMatchObject({ local_date: "2026-05-26", high: { temp_c: 29 } });
    for (let round = 0; round < 13; round += 1) await pass(timers, 1_800_000);
    expect(view("shanghai").state).toMatchObject({ local_date: "2026-05-27", high: null });
  });
});

describe("the rows", () => {
  it("keep what the stream brought when the list that comes in is older", async () => {
    const { terminal, timers, wire, server } = await live();
    wire.last().send(patch("shanghai", 9, 5));
    const lists = () => server.asked.filter(({ path }) => path === "/api/scan/terminal").length;
    const before = lists();
    await pass(timers, 60_000);
    expect(lists()).toBeGreaterThan(before);
    expect(terminal.store.getState().rows[0]).toMatchObject({ city: "shanghai", temp_c: 29 });
  });

  it("tell a failed first load from an empty list, and keep what they have later", async () => {
    const made = setUp({ "/api/scan/terminal": new TypeError("refused") });
    await made.terminal.start();
    expect(made.terminal.store.getState()).toMatchObject({ rows_phase: "failed", rows_error: "unreachable", rows: [] });
    made.routes["/api/scan/terminal"] = { revision: 1, epoch: EPOCH, rows: [rowBody("shanghai")] };
    await pass(made.timers, 15_000);
    expect(made.terminal.store.getState()).toMatchObject({ rows_phase: "ready", rows_error: null });
    made.routes["/api/scan/terminal"] = { rows: "what" };
    await pass(made.timers, 60_000);
    expect(made.terminal.store.getState()).toMatchObject({
      rows_phase: "ready",
      rows_error: "unreadable",
      rows: [{ city: "shanghai" }],
    });
    made.terminal.stop();
  });
});
