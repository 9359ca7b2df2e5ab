import { describe, expect, it } from "vitest";
import { createHttp } from "../client/http";
import type { SocketLike } from "../client/websocket";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { jobOf } from "../testing/jobs";
import { createEarth, FIRST_LOAD_MS, type Notice, REGISTRY_BEHIND_MS, REGISTRY_IDLE_MS } from "./earth";

const EPOCH = "abcdefghijkl";

/** A small server: a registry of two layers, one of which can fail. */
class Server {
  revision = 1;
  declared = 0;
  objects: Record<string, number> = { satellites: 3, earthquakes: 2 };
  failing = new Set<string>();
  asked: string[] = [];
  bypassed: string[] = [];
  jobs = [jobOf({ id: 4, status: "running", lease_seq: 1, attempts: 1 })];
  posted: unknown[] = [];

  fetch = async (path: string, init?: RequestInit): Promise<Response> => {
    this.asked.push(path);
    if (init?.cache === "no-store") this.bypassed.push(path);
    const name = path.split("/").pop()?.split("?")[0] ?? "";
    if (this.failing.has(name)) return jsonResponse({ code: "store_down", detail: "down" }, 503);
    if (init?.method === "POST") {
      this.posted.push([path, init.body ? JSON.parse(String(init.body)) : null]);
      return jsonResponse({ task_id: 9, status: "queued", created: true }, 202);
    }
    return jsonResponse(this.body(name));
  };

  body(name: string): unknown {
    if (name === "layers") {
      const items = Object.entries(this.objects).map(([id, count]) => ({
        id,
        title: id,
        kind: id === "interactables" ? "meta" : "point",
        sources: [`${id}_feed`],
        count,
      }));
      return { items, next_cursor: null, declared_revision: this.declared };
    }
    if (name === "jobs") return { items: this.jobs, next_cursor: null };
    if (name === "sources") return { items: [{ source: "satellites_feed", enabled: true }], next_cursor: null };
    const count = this.objects[name] ?? 0;
    const features = Array.from({ length: count }, (_, index) => ({ id: `${name}:${index}`, kind: "x", data: {} }));
    return {
      layer: name,
      epoch: EPOCH,
      revision: this.revision,
      generated_at: "now",
      state: "live",
      total: count,
      features,
    };
  }
}

class Line implements SocketLike {
  onopen: SocketLike["onopen"] = null;
  onmessage: SocketLike["onmessage"] = null;
  onclose: SocketLike["onclose"] = null;
  sent: string[] = [];
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {}
  say(frame: unknown): void {
    this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }
  join(head: number): void {
    this.onopen?.({} as never);
    this.say({ type: "connected", epoch: EPOCH, heads: { earth_updates: head } });
    this.say({ type: "subscribed", heads: { earth_updates: head } });
  }
  changed(layer: string, revision: number, prev_revision: number, refresh_strategy: string): void {
    const data = { event: "earth.layer.changed", layers: [layer], refresh_strategy };
    this.say({ channel: "earth_updates", epoch: EPOCH, revision, prev_revision, data });
  }
}

function setUp(hidden: readonly string[] = []) {
  const timers = manualTimers();
  const server = new Server();
  const lines: Line[] = [];
  const notices: Notice[] = [];
  const earth = createEarth({
    http: createHttp(server.fetch),
    open: () => lines[lines.push(new Line()) - 1] as Line,
    timers,
    random: () => 0.5,
    onNotice: (notice) => notices.push(notice),
    hidden,
  });
  const line = () => lines[lines.length - 1] as Line;
  const view = (id: string) => earth.layer(id)?.store.getState();
  return { earth, timers, server, line, lines, notices, view };
}

async function live(hidden: readonly string[] = []) {
  const rig = setUp(hidden);
  rig.earth.start();
  rig.line().join(1);
  await settle();
  return rig;
}

describe("a layer that is not drawn", () => {
  it("is neither listed nor loaded, and its events are heard", async () => {
    const { earth, server, lines, timers } = setUp();
    server.objects = { ...server.objects, interactables: 5 };
    const heard: (number | null)[] = [];
    const unlisten = earth.listen((event) => heard.push(event?.revision ?? null));
    earth.start();
    lines[0]?.join(1);
    await settle();
    expect(earth.store.getState().layers.map(({ id }) => id)).toEqual(["satellites", "earthquakes"]);
    expect(server.asked).not.toContain("/api/v1/visualization/interactables");
    lines[0]?.changed("interactables", 2, 0, "reload");
    unlisten();
    lines[0]?.changed("interactables", 3, 2, "reload");
    timers.advance(10);
    await settle();
    expect(heard).toEqual([2]);
    expect(server.asked).not.toContain("/api/v1/visualization/interactables");
    earth.stop();
  });
});

describe("opening the page", () => {
  it("joins first and loads then, so that nothing falls in between", async () => {
    const { earth, server, line, view } = setUp();
    earth.start();
    await settle();
    expect(server.asked.filter((path) => path.endsWith("/layers"))).toEqual([]);
    line().join(1);
    await settle();
    expect([view("satellites")?.count, view("earthquakes")?.count]).toEqual([3, 2]);
    expect(earth.jobs.store.getState().rows.get(4)?.status).toBe("running");
  });

  it("loads without a socket after a moment", async () => {
    const { earth, timers, view } = setUp();
    earth.start();
    timers.advance(FIRST_LOAD_MS);
    await settle();
    expect(view("satellites")?.count).toBe(3);
  });

  it("a layer that was switched off is neither loaded nor lost", async () => {
    const { earth, server, view } = await live(["earthquakes"]);
    expect(view("earthquakes")?.count).toBeNull();
    expect(server.asked.some((path) => path.includes("visualization/earthquakes"))).toBe(false);
    earth.setVisible("earthquakes", true);
    await settle();
    expect(view("earthquakes")?.count).toBe(2);
  });

  it("a registry that does not answer is tried again", async () => {
    const { earth, timers, server, line, view } = setUp();
    server.failing.add("layers");
    earth.start();
    line().join(1);
    await settle();
    expect(earth.store.getState()).toMatchObject({ registry: "failed", registry_error: "store_down" });
    server.failing.clear();
    timers.advance(2_000);
    await settle();
    expect(view("satellites")?.count).toBe(3);
  });
});

describe("changes", () => {
  it("a delete empties its layer and no other; a failing refetch is one notice, taken back on success", async () => {
    const { server, line, view, notices, timers } = await live();
    notices.length = 0;
    server.failing.add("satellites");
    server.revision = 2;
    line().changed("satellites", 2, 1, "clear_then_reload");
    expect([view("satellites")?.count, view("earthquakes")?.count]).toEqual([0, 2]);
    await settle();
    expect(notices).toEqual([{ key: "layer:satellites", layer: "satellites", code: "store_down" }]);
    server.failing.clear();
    server.objects.satellites = 0;
    timers.advance(2_000);
    await settle();
    expect([view("satellites")?.count, view("satellites")?.phase]).toEqual([0, "ready"]);
    expect(notices.at(-1)).toEqual({ key: "layer:satellites", layer: "satellites", code: null });
  });

  it("a new epoch reloads every layer past every cache", async () => {
    const { server, line } = await live();
    server.bypassed = [];
    line().say({ type: "resync_required", channel: "earth_updates", reason: "replay_window_exceeded" });
    await settle();
    const reloaded = server.bypassed.filter((path) => path.includes("visualization"));
    expect(reloaded).toEqual(["/api/v1/visualization/satellites", "/api/v1/visualization/earthquakes"]);
  });

  it("a reconnect that resumed asks for no layer again; one that could not checks them all", async () => {
    const { server, line, lines, timers } = await live();
    server.asked = [];
    line().onclose?.({} as never);
    timers.advance(30_000);
    line().join(1);
    await settle();
    expect(lines.length).toBeGreaterThan(1);
    expect(server.asked.filter((path) => path.includes("visualization"))).toEqual([]);
  });

  it("a layer that the registry learns of later appears by itself", async () => {
    const { server, timers, view } = await live();
    server.objects.volcanoes = 5;
    timers.advance(REGISTRY_IDLE_MS);
    await settle();
    expect(view("volcanoes")?.count).toBe(5);
  });

  it("a layer that is declared, or taken away, is told and read, also from a process that knows it later", async () => {
    const { earth, server, timers, line, view } = await live();
    server.objects.volcanoes = 5;
    line().say({ type: "layers_changed", revision: 7 });
    server.declared = 6;
    timers.advance(0);
    await settle();
    server.declared = 7;
    delete server.objects.satellites;
    timers.advance(REGISTRY_BEHIND_MS);
    await settle();
    expect(view("volcanoes")?.count).toBe(5);
    expect(view("satellites")).toBeUndefined();
    expect(earth.store.getState().layers.map(({ id }) => id)).toEqual(["earthquakes", "volcanoes"]);
    server.asked.length = 0;
    timers.advance(REGISTRY_IDLE_MS - 1);
    await settle();
    expect(server.asked.filter((path) => path.endsWith("/layers"))).toEqual([]);
  });

  it("pushed rows move the jobs", async () => {
    const { earth, line } = await live();
    const row = jobOf({ id: 4, status: "cancelled", lease_seq: 1, records_processed: 400 });
    line().say({ channel: "datasource_tasks", data: row });
    expect(earth.jobs.store.getState().rows.get(4)).toMatchObject({ status: "cancelled", records_processed: 400 });
  });
});

describe("wishes", () => {
  it("are sent once, are pending meanwhile, and read the ledger again", async () => {
    const { earth, server } = await live();
    const first = earth.jobs.submit("collect", "usgs_quakes");
    const second = earth.jobs.submit("collect", "usgs_quakes");
    expect(earth.jobs.store.getState().pending.has("collect:usgs_quakes")).toBe(true);
    server.jobs = [jobOf({ id: 9 })];
    await Promise.all([first, second]);
    expect(server.posted).toEqual([["/api/v1/jobs", { task_type: "collect", source: "usgs_quakes" }]]);
    expect(earth.jobs.store.getState().rows.get(9)?.status).toBe("queued");
    expect(earth.jobs.store.getState().pending.size).toBe(0);
  });

  it("tell their failure and are no longer pending", async () => {
    const { earth, server } = await live();
    server.failing.add("cancel");
    await expect(earth.jobs.cancel(4)).rejects.toMatchObject({ code: "store_down" });
    expect(earth.jobs.store.getState().pending.size).toBe(0);
  });
});

describe("leaving the page", () => {
  it("leaves no timer behind", async () => {
    const { earth, timers } = await live();
    earth.stop();
    await settle();
    expect(timers.pending).toBe(0);
  });
});
