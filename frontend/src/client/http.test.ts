import { describe, expect, it, vi } from "vitest";
import { jsonResponse } from "../testing/clock";
import { createHttp, HttpError, isRetryable, NetworkError } from "./http";

const answering = (response: () => Promise<Response>) => createHttp(() => response());

describe("http", () => {
  it("reads JSON, and nothing from an empty answer", async () => {
    expect(await answering(async () => new Response('{"a":1}')).get("/x")).toEqual({ a: 1 });
    expect(await answering(async () => new Response(null, { status: 204 })).send("POST", "/x", {})).toBeUndefined();
  });

  it("turns a problem document into its code, and an answer of a proxy into its status", async () => {
    const problem = answering(async () => jsonResponse({ code: "unknown_city", detail: "no such city" }, 404));
    await expect(problem.get("/x")).rejects.toMatchObject({
      status: 404,
      code: "unknown_city",
      message: "no such city",
    });
    const proxy = answering(async () => new Response("<html>", { status: 502, headers: { "Retry-After": "7" } }));
    await expect(proxy.get("/x")).rejects.toMatchObject({ status: 502, code: "http_502", retry_after_s: 7 });
    const html = answering(async () => new Response("<html>"));
    await expect(html.get("/x")).rejects.toMatchObject({ code: "not_json" });
  });

  it("tells no answer from a refusal, and an abort from both", async () => {
    const down = answering(async () => {
      throw new TypeError("refused");
    });
    await expect(down.get("/x")).rejects.toBeInstanceOf(NetworkError);
    const stop = new AbortController();
    stop.abort(new DOMException("left", "AbortError"));
    await expect(down.get("/x", { signal: stop.signal })).rejects.toMatchObject({ name: "AbortError" });
    expect(isRetryable(new NetworkError("x"))).toBe(true);
    expect([500, 503, 429, 404, 400].map((status) => isRetryable(new HttpError(status, "c", "m")))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  it("sends a body as JSON and asks for the cache it was told", async () => {
    const fetch = vi.fn(async (_: string, __?: RequestInit) => new Response("{}"));
    await createHttp(fetch).send("PATCH", "/x", { on: true }, { cache: "no-store" });
    expect(fetch.mock.calls[0]?.[1]).toMatchObject({ method: "PATCH", body: '{"on":true}', cache: "no-store" });
    expect(fetch.mock.calls[0]?.[1]?.headers).toMatchObject({ "Content-Type": "application/json" });
  });
});
