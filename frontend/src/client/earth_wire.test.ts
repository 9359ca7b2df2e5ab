import { describe, expect, it } from "vitest";
import { jsonResponse } from "../testing/clock";
import { formatCursor, parseCursor } from "./cursor";
import { createHttp } from "./http";
import { fetchJobs, jobRow, submitJob } from "./job_wire";
import { fetchLayers, fetchSnapshot } from "./layer_wire";
import { changeSource, fetchSources } from "./source_wire";
import { parseFrame } from "./websocket_frames";

const EPOCH = "abcdefghijkl";

function serving(body: unknown, status = 200) {
  const asked: { path: string; init: RequestInit | undefined }[] = [];
  const http = createHttp(async (path, init) => {
    asked.push({ path, init });
    return jsonResponse(body, status);
  });
  return { http, asked };
}

const signal = new AbortController().signal;

describe("cursors", () => {
  it("are read as they are written", () => {
    const cursor = { epoch: EPOCH, revision: 12 };
    expect(parseCursor(formatCursor(cursor))).toEqual(cursor);
  });

  it.each(["12", "", `${EPOCH}-`, "short-1", `${EPOCH}-x`, 12, null])("%j is none", (text) => {
    expect(parseCursor(text)).toBeNull();
  });

  it("are none when they count further than numbers can: a place that is not exact is no place", () => {
    expect(parseCursor(`${EPOCH}-9007199254740991`)?.revision).toBe(9007199254740991);
    expect(parseCursor(`${EPOCH}-9007199254740992`)).toBeNull();
  });
});

describe("snapshots", () => {
  const body = {
    layer: "earthquakes",
    epoch: EPOCH,
    revision: 7,
    generated_at: "2026-05-25T10:20:30Z",
    state: "live",
    total: 3,
    truncated: true,
    features: [{ id: "usgs_quakes:a", kind: "earthquake", data: {} }, { id: 5 }, null],
  };

  it("leave out what is no feature and count what is there", async () => {
    const { http } = serving(body);
    const snapshot = await fetchSnapshot(http, "earthquakes", { bypass: false, signal });
    expect(snapshot).toMatchObject({ revision: 7, count: 1, total: 3, truncated: true });
  });

  it("ask the cache politely, or pass it by", async () => {
    const { http, asked } = serving(body);
    await fetchSnapshot(http, "a b", { bypass: false, signal });
    await fetchSnapshot(http, "a b", { bypass: true, signal });
    expect(asked.map(({ path }) => path)).toEqual(["/api/v1/visualization/a%20b", "/api/v1/visualization/a%20b"]);
    expect(asked.map(({ init }) => init?.cache)).toEqual(["no-cache", "no-store"]);
  });

  it.each([{}, [], { ...body, revision: "7" }, { ...body, epoch: null }, { ...body, features: {} }])(
    "%# without cursor or features is an error, not an emptiness",
    async (odd) => {
      const { http } = serving(odd);
      await expect(fetchSnapshot(http, "x", { bypass: false, signal })).rejects.toMatchObject({ code: "bad_snapshot" });
    },
  );
});

describe("the registry", () => {
  it("needs no more of a layer than its id", async () => {
    const { http } = serving({ items: [{ id: "volcanoes" }, { title: "nameless" }] });
    expect(await fetchLayers(http)).toMatchObject({
      layers: [{ id: "volcanoes", title: "volcanoes", title_zh: "volcanoes", count: 0 }],
      revision: 0,
    });
  });
});

describe("jobs and sources", () => {
  it("a row of a kind or state that is not known is left out", () => {
    expect(jobRow({ id: 1, task_type: "collect", status: "running" })).toMatchObject({
      id: 1,
      progress: 0,
      source: null,
    });
    expect(jobRow({ id: 1, task_type: "collect", status: "lost" })).toBeNull();
    expect(jobRow({ id: -1, task_type: "collect", status: "running" })).toBeNull();
  });

  it("progress stays between nothing and all", () => {
    const progress = [-1, 0.4, 7].map((value) =>
      jobRow({ id: 1, task_type: "collect", status: "running", progress: value }),
    );
    expect(progress.map((row) => row?.progress)).toEqual([0, 0.4, 1]);
  });

  it("lists are read from their items", async () => {
    const { http, asked } = serving({ items: [{ id: 2, task_type: "clear_data", status: "failed" }], next_cursor: 2 });
    expect(await fetchJobs(http, { limit: 60 })).toMatchObject({ rows: [{ id: 2 }], next: 2 });
    await fetchJobs(http, { limit: 30, status: "failed", cursor: 2 });
    expect(asked.map(({ path }) => path)).toEqual([
      "/api/v1/jobs?limit=60",
      "/api/v1/jobs?limit=30&status=failed&cursor=2",
    ]);
    const sources = serving({ items: [{ source: "usgs_quakes", last_error_code: "http_500" }, {}] });
    expect(await fetchSources(sources.http)).toMatchObject([
      { source: "usgs_quakes", enabled: true, last_error_code: "http_500" },
    ]);
  });

  it("columns of a later ledger may be missing: nothing was counted, nothing is known", async () => {
    const row = jobRow({ id: 1, task_type: "collect", status: "running" });
    expect(row).toMatchObject({ phase: null, batches: 0, rejects: 0, sample: null, retried_as: null });
    const sources = serving({ items: [{ source: "usgs_quakes" }] });
    expect(await fetchSources(sources.http)).toMatchObject([{ paused: null, has_calendar: false, upcoming: [] }]);
    const later = serving({ items: [{ source: "usgs_quakes", paused: false, cron: null, misfire: "skip" }] });
    expect(await fetchSources(later.http)).toMatchObject([{ paused: false, has_calendar: true, misfire: "skip" }]);
  });

  it("a change of a source sends its keys alone, null included", async () => {
    const { http, asked } = serving({ source: "usgs_quakes" });
    await changeSource(http, "usgs_quakes", { cron: null, interval_s: 90 });
    expect([asked[0]?.path, asked[0]?.init?.method]).toEqual(["/api/v1/sources/usgs_quakes", "PATCH"]);
    expect(JSON.parse(String(asked[0]?.init?.body))).toEqual({ cron: null, interval_s: 90 });
  });

  it("a submission says whether it made a new job", async () => {
    const { http, asked } = serving({ task_id: 8, status: "queued", created: false }, 202);
    expect(await submitJob(http, "collect", "usgs_quakes")).toEqual({ task_id: 8, created: false });
    expect(JSON.parse(String(asked[0]?.init?.body))).toEqual({ task_type: "collect", source: "usgs_quakes" });
  });
});

describe("frames", () => {
  it.each([
    [
      { type: "connected", epoch: EPOCH, heads: {} },
      { kind: "connected", epoch: EPOCH },
    ],
    [
      { type: "subscribed", heads: { earth_updates: 5 } },
      { kind: "subscribed", head: 5 },
    ],
    [
      { type: "subscribed", heads: { earth_updates: `${EPOCH}-5` } },
      { kind: "subscribed", head: { epoch: EPOCH, revision: 5 } },
    ],
    [{ type: "subscribed" }, { kind: "subscribed", head: null }],
    [
      { type: "heartbeat", cursor: null },
      { kind: "heartbeat", cursor: null },
    ],
    [
      { type: "resync_required", channel: "earth_updates", reason: "x" },
      { kind: "resync", channel: "earth_updates", reason: "x" },
    ],
    [
      { type: "error", code: "bad_message" },
      { kind: "error", code: "bad_message" },
    ],
    [
      { channel: "earth_updates", data: { event: "earth.layer.changed", layers: [] } },
      { kind: "unknown", label: "earth_updates" },
    ],
    [
      { channel: "weather", data: {} },
      { kind: "unknown", label: "weather" },
    ],
  ])("%#", (frame, expected) => {
    expect(parseFrame(JSON.stringify(frame))).toEqual(expected);
  });

  it("the seed's own example is understood", () => {
    const data = {
      event: "earth.layer.changed",
      action: "database_changed",
      source: "celestrak_tle",
      table: "collected_data",
      operation: "DELETE",
      layers: ["satellites"],
      refresh_strategy: "clear_then_reload",
      records_processed: 11_125,
      occurred_at: "2026-05-25T10:20:30Z",
    };
    const frame = parseFrame(
      JSON.stringify({ channel: "earth_updates", epoch: EPOCH, revision: 3, prev_revision: 2, data }),
    );
    expect(frame).toMatchObject({
      kind: "event",
      event: {
        revision: 3,
        prev_revision: 2,
        change: { layers: ["satellites"], refresh_strategy: "clear_then_reload" },
      },
    });
  });
});
