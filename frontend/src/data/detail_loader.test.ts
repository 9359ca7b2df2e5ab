import { describe, expect, it } from "vitest";
import { createHttp } from "../client/http";
import { manualTimers, settle } from "../testing/clock";
import { detailBody, fakeServer } from "../testing/observations";
import { DetailLoader, type Verdict } from "./detail_loader";

const path = (city: string) => `/api/city/${city}/detail`;

/** A server whose answers come when the test says so, and a loader that notes what it is told. */
function setUp(verdict: (revision: number) => Verdict = () => "enough") {
  const timers = manualTimers();
  const open: ((body: unknown) => void)[] = [];
  const held = () => new Promise((resolve) => void open.push(resolve));
  const routes: Record<string, unknown> = {};
  for (const city of ["a", "b", "c", "d"]) routes[path(city)] = held;
  const { fetch, asked } = fakeServer(routes);
  const told: string[] = [];
  const loader = new DetailLoader(createHttp(fetch), timers, {
    onDetail(city, { revision }) {
      told.push(`${city} ${revision}`);
      return verdict(revision);
    },
    onTrouble: (city, code) => told.push(`${city} trouble ${code}`),
    onGaveUp: (city, code) => told.push(`${city} gave up ${code}`),
  });
  const answer = async (body: unknown) => {
    open.shift()?.(body);
    await settle();
    timers.advance(0);
    await settle();
  };
  return { timers, loader, asked, told, routes, answer };
}

describe("a city's detail (S188, Q1)", () => {
  it("that is asked for afresh while it is on its way is fetched once more, past every cache", async () => {
    const { loader, asked, told, answer } = setUp();
    loader.load("a", false);
    loader.load("a", true);
    await settle();
    expect(asked).toEqual([{ path: path("a"), cache: "no-cache" }]);
    await answer(detailBody("a", 1));
    await answer(detailBody("a", 2));
    expect(asked.slice(1)).toEqual([{ path: path("a"), cache: "no-store" }]);
    expect(told).toEqual(["a 1", "a 2"]);
    expect(loader.isLoading("a")).toBe(false);
  });

  it("is one request for two that ask without haste", async () => {
    const { loader, asked, answer } = setUp();
    loader.load("a", false);
    loader.load("a", false);
    await settle();
    await answer(detailBody("a", 1));
    expect([asked.length, loader.isLoading("a")]).toEqual([1, false]);
  });

  it("is tried again past every cache when it failed or was behind, eight times at most", async () => {
    const { loader, asked, told, timers, routes } = setUp(() => "again");
    routes[path("a")] = detailBody("a", 1);
    loader.load("a", false);
    for (let round = 0; round < 20; round += 1) {
      await settle();
      timers.advance(30_000);
    }
    await settle();
    expect(asked.map(({ cache }) => cache)).toEqual(["no-cache", ...Array(7).fill("no-store")]);
    expect(told.filter((line) => line === "a trouble behind")).toHaveLength(7);
    expect(told.at(-1)).toBe("a gave up behind");
    expect([loader.isLoading("a"), timers.pending]).toEqual([false, 0]);
  });

  it("is not tried again where that cannot help", async () => {
    const { loader, asked, told, routes, timers } = setUp();
    routes[path("a")] = undefined;
    routes[path("b")] = { city: "b" };
    loader.load("a", false);
    loader.load("b", false);
    await settle();
    timers.advance(60_000);
    await settle();
    expect(told.sort()).toEqual(["a gave up not_found", "b gave up unreadable"]);
    expect(asked).toHaveLength(2);
  });
});

describe("a city that is dropped", () => {
  it("while its answer is on its way is not told of", async () => {
    const { loader, told, answer } = setUp();
    loader.load("a", false);
    await settle();
    loader.drop("a");
    await answer(detailBody("a", 1));
    expect(told).toEqual([]);
  });

  it("while it waits in the queue is asked for once if it comes back", async () => {
    const { loader, asked, told, answer } = setUp();
    for (const city of ["a", "b", "c", "d"]) loader.load(city, false);
    loader.drop("d");
    loader.load("d", false);
    await settle();
    expect(asked).toHaveLength(3);
    for (const city of ["a", "b", "c", "d"]) await answer(detailBody(city, 1));
    expect(asked.map((each) => each.path)).toEqual(["a", "b", "c", "d"].map(path));
    expect(told).toEqual(["a 1", "b 1", "c 1", "d 1"]);
  });

  it("leaves no timer behind", async () => {
    const { loader, timers, routes } = setUp();
    routes[path("a")] = new TypeError("refused");
    loader.load("a", false);
    await settle();
    expect(timers.pending).toBe(1);
    loader.stop();
    expect(timers.pending).toBe(0);
  });
});
