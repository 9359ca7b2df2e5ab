import { describe, expect, it } from "vitest";
import { createBackoff } from "../client/backoff";
import { createHttp } from "../client/http";
import { loginCode } from "../client/session_wire";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { createSession } from "./session";

const INFO = {
  signed_in: true,
  who: "login code",
  role: "admin",
  simulated: true,
  halves: ["terminal", "moon"],
  version: "1.2.3",
  disk: "near",
};

function setUp(answer: (method: string, path: string) => Response | Error) {
  const timers = manualTimers();
  const asked: string[] = [];
  const http = createHttp(async (path, init) => {
    asked.push(`${init?.method} ${path} ${init?.body ?? ""}`.trim());
    const response = answer(init?.method ?? "", path);
    if (response instanceof Error) throw response;
    return response;
  });
  const session = createSession({
    http,
    setTimer: (callback, delay_ms) => timers.after(delay_ms, callback),
    clearTimer: (cancel: () => void) => cancel(),
    backoff: createBackoff({ random: () => 0 }),
  });
  const dropped: string[] = [];
  const start = (hash: string) => session.start(hash, () => dropped.push(hash));
  return { session, timers, asked, dropped, start };
}

const empty = () => new Response(null, { status: 204 });

describe("the one-time code of the address (contracts §3)", () => {
  it("is exchanged before anything else, and leaves the address", async () => {
    const { start, asked, dropped, session } = setUp((method) => (method === "POST" ? empty() : jsonResponse(INFO)));
    await start("#login=abc_1");
    expect(asked).toEqual(['POST /api/v1/session {"code":"abc_1"}', "GET /api/v1/session"]);
    expect(dropped).toHaveLength(1);
    expect(session.store.getState()).toMatchObject({
      phase: "ready",
      signed_in: true,
      simulated: true,
      halves: ["terminal"],
      disk: "near",
    });
  });

  it("that is refused leaves the address too, and reading goes on", async () => {
    const refused = () => jsonResponse({ code: "invalid_code" }, 401);
    const { start, dropped, session } = setUp((method) =>
      method === "POST" ? refused() : jsonResponse({ ...INFO, signed_in: false }),
    );
    await start("#login=old");
    expect(dropped).toHaveLength(1);
    expect(session.store.getState()).toMatchObject({ phase: "ready", signed_in: false, code_refused: "invalid_code" });
  });

  it("is found only under its name", () => {
    expect(["#login=a%2Bb", "#", "", "#other=1", "#login="].map(loginCode)).toEqual(["a+b", null, null, null, null]);
  });
});

describe("the session", () => {
  it.each([
    ["viewer", false],
    ["operator", true],
    ["admin", true],
    [null, false],
  ])("of a %s may operate: %s", async (role, may_operate) => {
    const { start, session } = setUp(() => jsonResponse({ ...INFO, role, signed_in: role !== null }));
    await start("");
    expect(session.store.getState()).toMatchObject({ role, may_operate });
  });

  it("is asked for again until the server answers", async () => {
    const up = { yes: false };
    const { start, timers, asked, session } = setUp(() => (up.yes ? jsonResponse(INFO) : new TypeError("refused")));
    await start("");
    expect(session.store.getState().phase).toBe("unreachable");
    timers.advance(1_000);
    await settle();
    up.yes = true;
    timers.advance(1_000);
    await settle();
    expect(session.store.getState().phase).toBe("ready");
    expect(asked).toHaveLength(3);
    expect(timers.pending).toBe(0);
  });

  it("begins with the token, ends with signing out, and says when the token is wrong", async () => {
    const state = { signed_in: false };
    const { session } = setUp((method) => {
      if (method === "GET") return jsonResponse({ ...INFO, ...state });
      state.signed_in = method === "POST";
      return empty();
    });
    await session.signInWithToken("t");
    expect(session.store.getState().signed_in).toBe(true);
    await session.signOut();
    expect(session.store.getState().signed_in).toBe(false);
    const wrong = setUp(() => jsonResponse({ code: "unauthorized" }, 401));
    await expect(wrong.session.signInWithToken("x")).rejects.toMatchObject({ status: 401 });
    wrong.session.stop();
  });
});
