import { describe, expect, it } from "vitest";
import type { JobRow, SourceInfo } from "../client/earth_types";
import { jobOf, sourceOf } from "../testing/jobs";
import {
  budgetOf,
  inHeldOrder,
  jobsBySource,
  jobsOf,
  LEASE_LOST_MS,
  type Listed,
  NO_JOBS,
  OVERDUE_MS,
  SOURCE_STATES,
  type SourceState,
  severityOf,
  stateCounts,
  stateOf,
  worstFirst,
} from "./source_state";

const NOW_MS = Date.parse("2026-05-25T12:00:00Z");
const at = (seconds: number) => new Date(NOW_MS + seconds * 1_000).toISOString();
const HELD = at(20);

interface Case {
  state: SourceState;
  why: string;
  source?: Partial<SourceInfo>;
  holder?: Partial<JobRow>;
  queued?: Partial<JobRow>;
}

const running: Partial<JobRow> = { status: "running", lease_until: HELD };
const failed: Partial<SourceInfo> = { last_error_code: "transient" };
const old: Partial<SourceInfo> = { stale_after_s: 3_600, last_success_at: at(-3_601) };
const due: Partial<SourceInfo> = { next_run_at: at(-OVERDUE_MS / 1_000 - 1) };

const CASES: readonly Case[] = [
  { state: "waiting", why: "nothing is known of it yet" },
  { state: "waiting", why: "its next run is to come", source: { next_run_at: at(60), last_success_at: at(-60) } },
  { state: "waiting", why: "its run is a little late", source: { next_run_at: at(-OVERDUE_MS / 1_000) } },
  { state: "waiting", why: "the rest that was asked for is over", source: { cooldown_until: at(-1) } },
  { state: "cooling", why: "the provider asked for rest", source: { cooldown_until: at(60) } },
  { state: "off", why: "its schedule is off", source: { enabled: false } },
  {
    state: "off",
    why: "what is off neither fails, ages nor is late",
    source: { enabled: false, ...failed, ...old, ...due },
  },
  { state: "paused", why: "someone paused it", source: { paused: true } },
  { state: "paused", why: "that explains its failures", source: { paused: true, ...failed, ...old, ...due } },
  { state: "paused", why: "though its schedule is off too", source: { paused: true, enabled: false } },
  { state: "paused", why: "though its last job still runs", source: { paused: true }, holder: running },
  { state: "failing", why: "its last run failed", source: failed },
  { state: "failing", why: "until one succeeds, also while it tries", source: failed, holder: running },
  { state: "failing", why: "which explains that it is stale", source: { ...failed, ...old } },
  { state: "stale", why: "its last success is too old", source: old },
  { state: "stale", why: "until one succeeds, also while it tries", source: old, holder: running },
  { state: "waiting", why: "its last success is just young enough", source: { ...old, last_success_at: at(-3_600) } },
  { state: "waiting", why: "no layer says how old is too old", source: { ...old, stale_after_s: null } },
  { state: "running", why: "it collects", holder: running },
  {
    state: "running",
    why: "by hand, though its schedule is off",
    source: { enabled: false, ...failed },
    holder: running,
  },
  { state: "running", why: "the run that was due", source: due, holder: running },
  { state: "clearing", why: "its data is deleted", holder: { ...running, task_type: "clear_data" } },
  { state: "stopping", why: "its job was asked to stop", holder: { ...running, status: "cancelling" } },
  { state: "queued", why: "a job waits", queued: { created_at: at(-5) } },
  {
    state: "queued",
    why: "by hand, though its schedule is off",
    source: { enabled: false },
    queued: { created_at: at(-5) },
  },
  { state: "queued", why: "a job is tried again later", queued: { created_at: at(-9_000), scheduled_at: at(60) } },
  { state: "overdue", why: "its run is due and nobody runs it", source: due },
  { state: "overdue", why: "its job waits and nobody takes it", queued: { created_at: at(-OVERDUE_MS / 1_000 - 1) } },
  {
    state: "running",
    why: "a renewed lease may reach the page late",
    holder: { ...running, lease_until: at(-LEASE_LOST_MS / 1_000) },
  },
  { state: "held", why: "its lease is lost", holder: { ...running, lease_until: at(-LEASE_LOST_MS / 1_000 - 1) } },
  {
    state: "held",
    why: "which nothing else explains",
    source: { ...failed, ...old, paused: true },
    holder: { ...running, status: "cancelling", lease_until: at(-LEASE_LOST_MS / 1_000 - 1) },
  },
];

describe("the state of a source", () => {
  it.each(CASES)("is $state: $why", ({ state, source, holder, queued }) => {
    const jobs = { holder: holder ? jobOf(holder) : null, queued: queued ? jobOf(queued) : null };
    expect(stateOf(sourceOf(source ?? {}), jobs, NOW_MS)).toBe(state);
  });

  it("has a case for each word", () => {
    expect(new Set(CASES.map(({ state }) => state))).toEqual(new Set(SOURCE_STATES));
  });
});

describe("the jobs of a source", () => {
  it("are the one that holds it and the first in line; what has ended or writes nothing is none", () => {
    const rows = [
      jobOf({ id: 1, status: "completed" }),
      jobOf({ id: 2, status: "cancelling" }),
      jobOf({ id: 5, status: "queued" }),
      jobOf({ id: 4, status: "queued", task_type: "clear_data" }),
      jobOf({ id: 3, status: "running", task_type: "clear_cache" }),
      jobOf({ id: 6, status: "running", source: "usgs_quakes" }),
      jobOf({ id: 7, status: "running", task_type: "earth_refresh", source: null }),
    ];
    const jobs = jobsBySource(rows);
    const ids = (source: string) => Object.values(jobsOf(jobs, source)).map((job) => job?.id ?? null);
    expect(ids("celestrak_gp")).toEqual([2, 4]);
    expect(ids("usgs_quakes")).toEqual([6, null]);
    expect(ids("awc_metar")).toEqual([null, null]);
  });
});

describe("the list", () => {
  const listed = (pairs: Record<string, SourceState>): Listed[] =>
    Object.entries(pairs).map(([source, state]) => ({ info: sourceOf({ source }), jobs: NO_JOBS, state }));
  const names = (sources: readonly Listed[]) => sources.map(({ info }) => info.source).join(" ");

  it("begins with what is worst and ends with what is off; what is well keeps its place whatever it does", () => {
    const sources = listed({
      a: "off",
      b: "waiting",
      c: "running",
      d: "paused",
      e: "stale",
      f: "failing",
      g: "cooling",
    });
    expect(names(worstFirst(sources))).toBe("f e d b c g a");
    expect(names(worstFirst(listed({ c: "queued", b: "stopping", a: "waiting" })))).toBe("a b c");
  });

  it("keeps an order that is held, new sources last", () => {
    const sources = listed({ a: "failing", n: "failing", b: "waiting", c: "running" });
    expect(names(inHeldOrder(sources, ["c", "gone", "b", "a"]))).toBe("c b a n");
  });

  it("counts by state, worst first, and the severity never falls along the words", () => {
    expect(stateCounts(listed({ a: "waiting", b: "failing", c: "waiting" }))).toEqual([
      { state: "failing", count: 1 },
      { state: "waiting", count: 2 },
    ]);
    const order = ["bad", "warn", "busy", "idle"];
    const ranks = SOURCE_STATES.map((state) => order.indexOf(severityOf(state)));
    expect(ranks).toEqual([...ranks].sort());
  });
});

it.each([
  [60, 60],
  [7_200, 1],
  [0.5, 7_200],
  [0, null],
  [null, null],
])("a floor of %s s allows %s requests an hour", (floor_s, budget) => {
  expect(budgetOf(floor_s)).toBe(budget);
});
