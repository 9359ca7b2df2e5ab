import { describe, expect, it } from "vitest";
import { createHttp } from "../client/http";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { createSearch, PAUSE_MS } from "./search";

function item(key: string) {
  return {
    id: `satellites:s:${key}`,
    layer: "satellites",
    feature: `s:${key}`,
    kind: "satellite",
    title: key,
    subtitle: "",
    lat: null,
    lon: 1.5,
  };
}

function setUp() {
  const timers = manualTimers();
  const asked: string[] = [];
  const answers: ((response: Response) => void)[] = [];
  const search = createSearch(
    createHttp((path) => {
      asked.push(path);
      return new Promise((resolve) => answers.push(resolve));
    }),
    timers,
  );
  const ask = async (question: string) => {
    search.ask(question);
    timers.advance(PAUSE_MS);
    await settle();
  };
  return { timers, asked, answers, search, ask, view: () => search.store.getState() };
}

describe("the search", () => {
  it("asks once after a pause in typing", async () => {
    const { search, timers, asked, answers, view } = setUp();
    for (const question of ["i", "is", "iss"]) search.ask(question);
    expect(view()).toMatchObject({ question: "iss", phase: "asking" });
    timers.advance(PAUSE_MS);
    await settle();
    expect(asked).toEqual(["/api/v1/search?q=iss&limit=12"]);
    answers[0]?.(jsonResponse({ items: [item("ISS"), { id: "no layer" }, 7] }));
    await settle();
    expect(view()).toMatchObject({ phase: "ready", at: 0 });
    expect(view().found).toEqual([item("ISS")]);
  });

  it("shows the answer to the last question, whatever order the answers come in", async () => {
    const { ask, answers, view } = setUp();
    await ask("first");
    await ask("second");
    answers[1]?.(jsonResponse({ items: [item("second")] }));
    await settle();
    answers[0]?.(jsonResponse({ items: [item("first")] }));
    await settle();
    expect(view().found.map(({ title }) => title)).toEqual(["second"]);
  });

  it("does not ask for nothing, and an emptied box is empty at once", async () => {
    const { ask, asked, answers, view } = setUp();
    await ask("  ?! ");
    expect(asked).toEqual([]);
    await ask("東京");
    answers[0]?.(jsonResponse({ items: [item("x")] }));
    await settle();
    await ask("");
    expect(view()).toMatchObject({ phase: "idle", found: [] });
  });

  it("says that it failed, and why", async () => {
    const { ask, answers, view } = setUp();
    await ask("iss");
    answers[0]?.(jsonResponse({ code: "store_down" }, 503));
    await settle();
    expect(view()).toMatchObject({ phase: "failed", error: "store_down", found: [] });
  });

  it("moves the chosen line round and round", async () => {
    const { ask, answers, search, view } = setUp();
    search.move(1);
    expect(view().at).toBe(0);
    await ask("iss");
    answers[0]?.(jsonResponse({ items: [item("a"), item("b"), item("c")] }));
    await settle();
    const seen = [1, 1, 1, -1].map((step) => {
      search.move(step as 1 | -1);
      return view().at;
    });
    expect(seen).toEqual([1, 2, 0, 2]);
  });
});
