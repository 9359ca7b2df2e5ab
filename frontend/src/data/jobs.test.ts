import { describe, expect, it } from "vitest";
import type { JobRow } from "../client/earth_types";
import { createHttp } from "../client/http";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { jobOf } from "../testing/jobs";
import { COUNTS_MS, createJobs, PROBE_MS, SILENT_MS, SOURCES_IDLE_MS, SOURCES_MS } from "./jobs";

/** A ledger that remembers what it was asked. */
class Ledger {
  rows: JobRow[] = [];
  asked: string[] = [];
  refuse: { status: number; code: string } | null = null;

  fetch = async (path: string, init?: RequestInit): Promise<Response> => {
    const method = init?.method ?? "GET";
    this.asked.push(`${method} ${path}`);
    if (method !== "GET") return this.write(path);
    if (path === "/api/v1/sources") return jsonResponse({ items: [] });
    if (path === "/api/v1/jobs/counts") return this.counted();
    const url = new URL(path, "http://ledger");
    const id = Number(url.pathname.split("/")[4]);
    return id ? this.one(id) : jsonResponse(this.page(url.searchParams));
  };

  private counted(): Response {
    const of = (status: string) => this.rows.filter((row) => row.status === status).length;
    return jsonResponse({ running: of("running"), queued: of("queued"), dead: of("failed") });
  }

  private write(path: string): Response {
    if (this.refuse) return jsonResponse({ code: this.refuse.code, detail: "refused" }, this.refuse.status);
    if (path.endsWith("/retry")) {
      const id = Number(path.split("/")[4]);
      this.rows = [jobOf({ id: 99 }), ...this.rows.map((row) => (row.id === id ? { ...row, retried_as: 99 } : row))];
      return jsonResponse({ task_id: 99, status: "queued", created: true }, 202);
    }
    return jsonResponse({ task_id: 1, status: "queued", created: true }, 202);
  }

  private one(id: number): Response {
    const row = this.rows.find((each) => each.id === id);
    return row ? jsonResponse(row) : jsonResponse({ code: "not_found", detail: "gone" }, 404);
  }

  private page(query: URLSearchParams): unknown {
    const limit = Number(query.get("limit"));
    const before = Number(query.get("cursor") ?? Number.POSITIVE_INFINITY);
    const status = query.get("status");
    const fitting = this.rows.filter((row) => row.id < before && (status === null || row.status === status));
    const items = fitting.sort((a, b) => b.id - a.id).slice(0, limit);
    return { items, next_cursor: fitting.length > limit ? items.at(-1)?.id : null };
  }
}

async function open(rows: JobRow[]) {
  const ledger = new Ledger();
  ledger.rows = rows;
  const timers = manualTimers();
  const jobs = createJobs({ http: createHttp(ledger.fetch), timers, random: () => 0.5 });
  await jobs.reload();
  return { ledger, timers, jobs, view: () => jobs.store.getState() };
}

const completed = (count: number) => Array.from({ length: count }, (_, n) => jobOf({ id: n + 1, status: "completed" }));

describe("finished jobs", () => {
  it("are read to the last, page after page, each once", async () => {
    const { jobs, view, ledger } = await open([...completed(200), jobOf({ id: 201, status: "failed" })]);
    for (let page = 0; page < 10; page += 1) await jobs.readMore("all");
    expect(view().rows.size).toBe(201);
    const pages = ledger.asked.filter((path) => path.includes("status=completed"));
    expect([pages.length, new Set(pages).size]).toEqual([7, 7]);
    expect(view().history.state).toBe("idle");
  });

  it("that were not read are told, and can be asked for again", async () => {
    const { jobs, view, ledger } = await open(completed(100));
    const failing = createJobs({
      http: createHttp(async () => jsonResponse({ code: "store_down" }, 503)),
      timers: manualTimers(),
      random: () => 0.5,
    });
    await failing.readMore("all");
    expect(failing.store.getState().history).toMatchObject({ state: "failed", error: "store_down" });
    failing.stop();
    await Promise.all([jobs.readMore("failed"), jobs.readMore("failed")]);
    expect(ledger.asked.filter((path) => path.includes("status=failed"))).toHaveLength(1);
    expect(view().history.pages.failed).toEqual({ read: 1, next: null });
  });
});

describe("rows without news", () => {
  it("are asked for: an end that was not pushed is found, and what the ledger dropped goes", async () => {
    const running = jobOf({ id: 1, status: "running", lease_seq: 1 });
    const { ledger, timers, view } = await open([running, jobOf({ id: 2 })]);
    ledger.rows = [{ ...running, status: "completed" }];
    for (let waited_ms = 0; waited_ms <= SILENT_MS; waited_ms += PROBE_MS) {
      timers.advance(PROBE_MS);
      await settle();
    }
    expect([...view().rows.values()].map(({ id, status }) => [id, status])).toEqual([[1, "completed"]]);
  });

  it("are left alone while news come", async () => {
    const running = jobOf({ id: 1, status: "running", lease_seq: 1 });
    const { ledger, timers, jobs } = await open([running]);
    for (let look = 0; look < 5; look += 1) {
      timers.advance(PROBE_MS);
      jobs.take({ ...running, records_processed: look });
      await settle();
    }
    expect(ledger.asked.filter((path) => path.endsWith("/jobs/1"))).toEqual([]);
  });
});

describe("sources", () => {
  it("are read again soon after a job ended, and now and then", async () => {
    const running = jobOf({ id: 1, status: "running", lease_seq: 1 });
    const { ledger, timers, jobs } = await open([running]);
    const reads = () => ledger.asked.filter((path) => path.endsWith("/sources")).length;
    jobs.take({ ...running, status: "completed" });
    timers.advance(SOURCES_MS);
    await settle();
    expect(reads()).toBe(2);
    timers.advance(SOURCES_IDLE_MS);
    await settle();
    expect(reads()).toBe(3);
  });
});

describe("counts", () => {
  const reads = (ledger: { asked: string[] }) => ledger.asked.filter((path) => path.endsWith("/counts")).length;

  it("of the whole ledger are read with the lists, and often while there are more jobs than rows are pushed", async () => {
    const queued = Array.from({ length: 80 }, (_, n) => jobOf({ id: n + 1 }));
    const { ledger, timers, view } = await open(queued);
    await settle();
    expect(view().counts).toEqual({ running: 0, queued: 80, dead: 0 });
    timers.advance(SOURCES_IDLE_MS);
    await settle();
    ledger.rows = queued.slice(0, 70);
    const before = reads(ledger);
    timers.advance(COUNTS_MS);
    await settle();
    expect([reads(ledger), view().counts?.queued]).toEqual([before + 1, 70]);
  });

  it("that are not to be had leave the lists as they are", async () => {
    const jobs = createJobs({
      http: createHttp(async (path) =>
        path.endsWith("/counts") ? jsonResponse({ code: "not_found" }, 404) : jsonResponse({ items: [] }),
      ),
      timers: manualTimers(),
      random: () => 0.5,
    });
    await jobs.reload();
    await settle();
    expect(jobs.store.getState()).toMatchObject({ phase: "ready", error: null, counts: null });
    jobs.stop();
  });
});

describe("wishes", () => {
  it("a retry names the new job on the old one, and both are the person's own", async () => {
    const { jobs, view } = await open([jobOf({ id: 1, status: "failed" })]);
    expect(await jobs.retry(1)).toEqual({ task_id: 99, created: true });
    expect(view().rows.get(1)?.retried_as).toBe(99);
    expect([...view().mine]).toEqual([99]);
  });

  it("two clicks are one wish", async () => {
    const { jobs, ledger } = await open([jobOf({ id: 1, status: "failed" })]);
    expect(await Promise.all([jobs.retry(1), jobs.retry(1)])).toEqual([{ task_id: 99, created: true }, null]);
    expect(await Promise.all([jobs.change("a", { paused: true }), jobs.change("a", { paused: true })])).toEqual([
      true,
      false,
    ]);
    expect(ledger.asked.filter((path) => !path.startsWith("GET"))).toHaveLength(2);
  });

  it("refused by the state of the job show the job as it is", async () => {
    const running = jobOf({ id: 1, status: "running", lease_seq: 1 });
    const { jobs, ledger, view } = await open([running]);
    ledger.rows = [{ ...running, status: "completed" }];
    ledger.refuse = { status: 409, code: "job_final" };
    await expect(jobs.cancel(1)).rejects.toMatchObject({ code: "job_final" });
    expect(view().rows.get(1)?.status).toBe("completed");
  });
});
