import { describe, expect, it } from "vitest";
import type { Delta, EarthEvent, Strategy } from "../client/earth_types";
import { createHttp } from "../client/http";
import { jsonResponse, manualTimers, settle } from "../testing/clock";
import { concerns, createObjectCard } from "./object_card";

const NOTHING: Delta = { upsert: [], remove: [] };
const ID = "satellites:s:1/2";

function event(layer: string, refresh_strategy: Strategy, delta: Delta = NOTHING): EarthEvent {
  const change = {
    layers: [layer],
    refresh_strategy,
    action: "database_changed",
    source: null,
    operation: null,
    records_processed: 1,
    occurred_at: "",
    delta,
  };
  return { epoch: "abcdefghijkl", revision: 2, prev_revision: 1, change };
}

function setUp() {
  const timers = manualTimers();
  const asked: string[] = [];
  const answers: ((response: Response) => void)[] = [];
  const http = createHttp((path) => {
    asked.push(path);
    return new Promise((resolve) => answers.push(resolve));
  });
  const object = createObjectCard({ http, timers, random: () => 0.5 }, "satellites", "s:1/2");
  const answer = async (body: unknown, status = 200) => {
    answers.shift()?.(jsonResponse(body, status));
    await settle();
  };
  return { timers, asked, object, answer, view: () => object.store.getState() };
}

const card = (title: string) => ({ feature: "s:1/2", kind: "satellite", title, data: { a: 1 }, provenance: {} });

describe("which events concern an open card", () => {
  it("those of its layer, those that name it, and whatever may have been missed", () => {
    expect(concerns(null, "satellites", ID)).toBe(true);
    expect(concerns(event("satellites", "reload"), "satellites", ID)).toBe(true);
    expect(concerns(event("earthquakes", "clear_then_reload"), "satellites", ID)).toBe(false);
    expect(concerns(event("interactables", "reload"), "satellites", ID)).toBe(true);
    expect(concerns(event("interactables", "delta", { upsert: ["other"], remove: [] }), "satellites", ID)).toBe(false);
    expect(concerns(event("interactables", "delta", { upsert: [ID], remove: [] }), "satellites", ID)).toBe(true);
    expect(concerns(event("interactables", "delta", { upsert: [], remove: [ID] }), "satellites", ID)).toBe(true);
  });
});

describe("the place of an open card", () => {
  // S22: a place that was looked up is told from one that the source gave, with whose list it was found in.
  it.each([
    [{ place_method: "geocode", place_precision_m: 16_500, place_resolver: "geonames" }, "geocode", 16_500, "geonames"],
    [{ place_method: "manual", place_precision_m: null }, "manual", null, null],
  ])("is read with how it was found: %j", async (told, method, precision_m, resolver) => {
    const { answer, view } = setUp();
    await answer({ ...card("ISS"), ...told });
    expect(view().card?.place).toEqual({ method, precision_m, resolver });
  });

  it.each([{}, { place_method: null }, { place_method: "guess" }, { place_method: 3 }])(
    "is the fact's own when nothing, or what nobody knows, is said: %j",
    async (told) => {
      const { answer, view } = setUp();
      await answer({ ...card("ISS"), ...told });
      expect(view().card?.place).toBeNull();
    },
  );
});

describe("an open card", () => {
  it("is fetched at once, by its id", async () => {
    const { asked, answer, view } = setUp();
    expect(asked).toEqual(["/api/v1/objects/satellites%3As%3A1/2"]);
    await answer(card("ISS"));
    expect(view().card).toMatchObject({ id: ID, feature: { id: "s:1/2", title: "ISS", data: { a: 1 } } });
  });

  it("is fetched exactly once more for any number of events during a fetch", async () => {
    const { asked, object, answer, view } = setUp();
    for (let n = 0; n < 5; n += 1) object.onEvent(event("interactables", "delta", { upsert: [ID], remove: [] }));
    await answer(card("old"));
    expect(asked).toHaveLength(2);
    await answer(card("new"));
    expect(asked).toHaveLength(2);
    expect(view().card?.feature.title).toBe("new");
  });

  it("is gone once its fact is, and only then", async () => {
    const { object, answer, view } = setUp();
    await answer(card("ISS"));
    object.onEvent(event("satellites", "clear_then_reload"));
    await answer({ code: "not_found" }, 404);
    expect(view().gone).toBe(false);
    object.onEvent(event("satellites", "reload"));
    await answer({ code: "unknown_object" }, 404);
    expect(view().gone).toBe(true);
  });

  it("keeps what it shows while the server fails, and asks again", async () => {
    const { asked, timers, object, answer, view } = setUp();
    await answer(card("ISS"));
    object.onEvent(null);
    await answer({ code: "store_down" }, 503);
    expect(view().card?.feature.title).toBe("ISS");
    timers.advance(60_000);
    await settle();
    expect(asked).toHaveLength(3);
  });

  it("asks nothing more once it is closed", async () => {
    const { asked, timers, object } = setUp();
    object.stop();
    object.onEvent(null);
    timers.advance(60_000);
    await settle();
    expect(asked).toHaveLength(1);
  });
});
