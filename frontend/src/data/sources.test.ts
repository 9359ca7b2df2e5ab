import { describe, expect, it } from "vitest";
import { createHttp } from "../client/http";
import type { SocketLike } from "../client/websocket";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { jobOf } from "../testing/jobs";
import { SOURCES_IDLE_MS } from "./jobs";
import { createSources } from "./sources";

class FakeSocket implements SocketLike {
  sent: unknown[] = [];
  closed = false;
  onopen: ((event: never) => void) | null = null;
  onmessage: ((event: never) => void) | null = null;
  onclose: ((event: never) => void) | null = null;

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(): void {
    this.closed = true;
  }

  /** What the server says. */
  says(frame: unknown): void {
    this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }

  join(): void {
    this.onopen?.(undefined as never);
    this.says({ type: "connected", epoch: "abcdef012345", heads: {} });
    this.says({ type: "subscribed", channels: ["datasource_tasks"], heads: {} });
  }
}

function opened(ledger: boolean) {
  const asked: string[] = [];
  const timers = manualTimers();
  const sockets: FakeSocket[] = [];
  const fetch = async (path: string): Promise<Response> => {
    asked.push(path);
    if (path === "/api/v1/sources") return jsonResponse({ items: [{ source: "awc_metar" }] });
    if (!ledger) return jsonResponse({ code: "half_disabled" }, 404);
    return jsonResponse(
      path.endsWith("/counts") ? { running: 0, queued: 0, dead: 0 } : { items: [], next_cursor: null },
    );
  };
  const open = () => {
    const socket = new FakeSocket();
    sockets.push(socket);
    return socket;
  };
  const sources = createSources({ http: createHttp(fetch), timers, random: () => 0.5, open: ledger ? open : null });
  sources.start();
  return { sources, asked, timers, sockets };
}

describe("the sources of a page", () => {
  it("follow their jobs over the one channel, and are read again once that is joined", async () => {
    const { sources, asked, sockets } = opened(true);
    await settle();
    const before = asked.length;
    const socket = sockets[0] as FakeSocket;
    socket.join();
    expect(socket.sent).toEqual([{ subscribe: ["datasource_tasks"] }]);
    await settle();
    expect(asked.slice(before)).toContain("/api/v1/sources");
    expect(sources.store.getState()).toEqual({ connection: "live", was_live: true });
    socket.says({ channel: "datasource_tasks", data: jobOf({ id: 7, status: "running", records_processed: 40 }) });
    expect(sources.jobs.store.getState().rows.get(7)?.records_processed).toBe(40);
    sources.stop();
    expect(socket.closed).toBe(true);
  });

  it("are read again when one was declared, changed or removed", async () => {
    const { sources, asked, sockets } = opened(true);
    (sockets[0] as FakeSocket).join();
    await settle();
    const before = asked.length;
    (sockets[0] as FakeSocket).says({ type: "layers_changed", revision: 3 });
    await settle();
    expect(asked.slice(before)).toContain("/api/v1/sources");
    sources.stop();
  });

  it("resume no layer's events on the next socket", async () => {
    const { sources, timers, sockets } = opened(true);
    (sockets[0] as FakeSocket).join();
    (sockets[0] as FakeSocket).says({ type: "heartbeat", cursor: "abcdef012345-9" });
    sockets[0]?.onclose?.(undefined as never);
    while (sockets.length === 1) timers.advance(100);
    const next = sockets.at(-1) as FakeSocket;
    expect(next).not.toBe(sockets[0]);
    next.join();
    expect(next.sent).toEqual([{ subscribe: ["datasource_tasks"] }]);
    sources.stop();
  });

  it("without a ledger are asked for alone, now and then, and open no socket", async () => {
    const { sources, asked, timers, sockets } = opened(false);
    await settle();
    expect(sources.jobs.store.getState()).toMatchObject({ phase: "ready", sources: [{ source: "awc_metar" }] });
    timers.advance(SOURCES_IDLE_MS);
    await settle();
    sources.wake();
    await settle();
    expect(asked).toEqual(["/api/v1/sources", "/api/v1/sources", "/api/v1/sources"]);
    expect(sockets).toEqual([]);
    sources.stop();
    expect(timers.pending).toBe(0);
  });
});
