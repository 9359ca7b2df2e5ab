// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createBackoff } from "../client/backoff";
import { createHttp } from "../client/http";
import { createArrangement, DEFAULTS } from "../data/slots";
import { Terminal } from "../data/terminal";
import { i18next, setLanguage, startI18n } from "../i18n";
import { manualTimers, settle } from "../testing/clock";
import { detailBody, fakeServer, rowBody } from "../testing/observations";
import { connected, EPOCH, fakeSources, patch } from "../testing/stream";
import { TerminalPage } from "./Terminal";

const NOW = Date.UTC(2026, 4, 26, 10, 12);
const CITIES = ["shanghai", "tokyo", "london", "new york", "hong kong"];
const ZH: Record<string, string> = { shanghai: "上海", "hong kong": "香港" };

beforeAll(startI18n);
beforeEach(() => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      disconnect() {}
    },
  );
});
afterEach(async () => {
  cleanup();
  vi.useRealTimers();
  await setLanguage("en");
});

function setUp(more: Record<string, unknown> = {}) {
  const timers = manualTimers(NOW);
  const wire = fakeSources();
  const rows = CITIES.map((city, i) => rowBody(city, { rank: i + 1, icao: `X${i}`, display_name_zh: ZH[city] }));
  const routes: Record<string, unknown> = {
    "/api/scan/terminal": { revision: 5, epoch: EPOCH, rows },
    "/api/cities": { items: [{ city: "hong kong", aliases: ["HK"] }] },
    ...Object.fromEntries(
      CITIES.map((city) => {
        const points = [[NOW - 600_000, 20]];
        const timeseries = { series: [{ series_key: "metar", source: "awc_metar", label: null, points }] };
        return [`/api/city/${encodeURIComponent(city)}/detail`, detailBody(city, 5, { timeseries })];
      }),
    ),
    ...more,
  };
  const terminal = new Terminal({
    http: createHttp(fakeServer(routes).fetch),
    open: wire.open,
    timers,
    backoff: createBackoff({ random: () => 0.5 }),
    debug: () => {},
  });
  const arrangement = createArrangement({ read: () => JSON.stringify(DEFAULTS), write: () => {} });
  render(<TerminalPage access={{ terminal, arrangement }} />);
  const pass = (ms: number) =>
    act(async () => {
      await settle();
      timers.advance(ms);
      await settle();
    });
  const send = (frame: object) => act(async () => wire.last().send(frame as never));
  const tile = (city: string) => within(screen.getByRole("region", { name: new RegExp(`^Chart of ${city}$`, "i") }));
  return { wire, pass, send, tile, routes, arrangement };
}

describe("the page", () => {
  it("shows the four cities, their numbers as they come in, and the state of the connection (S220, S221)", async () => {
    const { wire, pass, send, tile } = setUp();
    await pass(200);
    expect(screen.getByLabelText("Live connection").textContent).toBe("connecting");
    await send(connected({}, 5));
    expect(screen.getByLabelText("Live connection").textContent).toBe("live");
    await send(patch("shanghai", 11, 5, { temp: 21.5 }));
    const shown = tile("shanghai");
    expect(shown.getAllByText(/^21\.5°/).some((one) => one.closest("[data-field=temp]"))).toBe(true);
    expect(shown.getByText(/^fresh · 1 min$/)).toBeTruthy();
    const spoken = /^shanghai: 21\.5°C at 18:11 local time\. High of the day 21\.5°C at 18:11\./;
    expect(shown.getByRole("img", { name: spoken })).toBeTruthy();
    expect(window.__planetwire?.terminal?.cities).toEqual(["london", "new york", "shanghai", "tokyo"]);
    expect(window.__planetwire?.terminal?.points("shanghai", "metar")).toBe(2);
    expect(window.__planetwire?.terminal?.connection).toBe("live");
    expect(wire.sources).toHaveLength(1);
  });

  it("marks a gap on the one chart, and takes the mark away", async () => {
    const { pass, send, tile, routes } = setUp();
    await pass(200);
    await send(connected({}, 5));
    const before = routes["/api/city/tokyo/detail"];
    await send(patch("tokyo", 30, 20));
    expect(tile("tokyo").getByText("catching up")).toBeTruthy();
    expect(tile("london").queryByText("catching up")).toBeNull();
    routes["/api/city/tokyo/detail"] = { ...(before as object), revision: 30 };
    await pass(30_000);
    expect(tile("tokyo").queryByText("catching up")).toBeNull();
  });

  it("keeps a curve switched off through patches", async () => {
    const { pass, send, tile } = setUp();
    await pass(200);
    await send(connected({}, 5));
    fireEvent.click(tile("shanghai").getByRole("button", { name: /METAR/, pressed: true }));
    await send(patch("shanghai", 11, 5));
    expect(tile("shanghai").getByRole("button", { name: /METAR/, pressed: false })).toBeTruthy();
  });

  it("tells no readings from a failure", async () => {
    const empty = detailBody("shanghai", 5);
    const { pass, tile } = setUp({ "/api/city/shanghai/detail": empty, "/api/city/tokyo/detail": undefined });
    await pass(200);
    expect(tile("shanghai").getByText("No reading in the last 24 hours")).toBeTruthy();
    expect(tile("shanghai").queryByRole("alert")).toBeNull();
    expect(tile("tokyo").getByRole("alert").textContent).toContain("it is not there");
    // The server does not know it, as a city that was kept from another time: another one is the way on.
    fireEvent.click(tile("tokyo").getByRole("button", { name: "Choose a city" }));
    expect(tile("tokyo").getByRole("combobox")).toBeTruthy();
  });
});

describe("choosing", () => {
  it("finds a city by its alias with the keyboard and subscribes to it", async () => {
    const { pass, tile, wire, arrangement } = setUp();
    await pass(200);
    fireEvent.click(tile("tokyo").getByRole("button", { name: /tokyo X1/ }));
    const input = tile("tokyo").getByRole("combobox");
    fireEvent.change(input, { target: { value: "hk" } });
    expect(tile("tokyo").getAllByRole("option")).toHaveLength(1);
    fireEvent.keyDown(input, { key: "Enter" });
    await pass(200);
    expect(arrangement.getState().slots[1]).toBe("hong kong");
    expect(wire.last().url).toContain("cities=hong%20kong,london,new%20york,shanghai&");
  });

  it("puts the city of the list into the active place, and leaves a place empty on purpose", async () => {
    const { pass, arrangement, tile } = setUp();
    await pass(200);
    fireEvent.click(screen.getByTitle("Show hong kong in the active chart"));
    expect(arrangement.getState().slots[0]).toBe("hong kong");
    await pass(200);
    fireEvent.click(tile("hong kong").getByRole("button", { name: "Remove hong kong from this place" }));
    expect(arrangement.getState().slots[0]).toBeNull();
    expect(screen.getByRole("region", { name: "Empty chart" })).toBeTruthy();
  });

  it("switches unit and language at once", async () => {
    const { pass, tile } = setUp();
    await pass(200);
    fireEvent.click(screen.getByRole("button", { name: "Degrees Fahrenheit" }));
    expect(tile("shanghai").getAllByText(/68\.0°/).length).toBeGreaterThan(0);
    await act(() => setLanguage("zh"));
    expect(i18next.language).toBe("zh");
    expect(screen.getByRole("heading", { name: "上海" })).toBeTruthy();
  });
});

describe("lines and files (threshold lines, export)", () => {
  async function opened() {
    const made = setUp();
    await made.pass(200);
    await made.send(connected({}, 5));
    fireEvent.click(made.tile("shanghai").getByRole("button", { name: "Lines and files: shanghai" }));
    return { ...made, panel: within(made.tile("shanghai").getByRole("dialog")) };
  }

  function type(input: HTMLElement, value: string) {
    fireEvent.change(input, { target: { value } });
    fireEvent.keyDown(input, { key: "Enter" });
    if (input.closest("form")) fireEvent.submit(input.closest("form") as HTMLFormElement);
  }

  it("sets, moves and takes away a line of the one city, and tells whether the day reached it", async () => {
    const { panel, arrangement, send, pass } = await opened();
    type(panel.getByRole("textbox", { name: "New line at (°C)" }), "21,5");
    expect(arrangement.getState().thresholds).toEqual({ shanghai: [{ value: 21.5, unit: "celsius" }] });
    expect(panel.getByText("not reached today")).toBeTruthy();
    await send(patch("shanghai", 11, 5, { temp: 21.5 }));
    await pass(200);
    expect(panel.getByText("reached at 18:11")).toBeTruthy();
    type(panel.getByRole("textbox", { name: "Move the line at 21.5 °C" }), "30");
    expect(arrangement.getState().thresholds.shanghai).toEqual([{ value: 30, unit: "celsius" }]);
    fireEvent.click(panel.getByRole("button", { name: "Remove the line at 30 °C" }));
    expect(arrangement.getState().thresholds).toEqual({});
  });

  it("says what is no temperature, and sets nothing", async () => {
    const { panel, arrangement } = await opened();
    type(panel.getByRole("textbox", { name: "New line at (°C)" }), "warm");
    expect(panel.getByText("Not a temperature")).toBeTruthy();
    expect(arrangement.getState().thresholds).toEqual({});
  });

  it("keeps a line's own unit when the page shows the other", async () => {
    const { panel, arrangement } = await opened();
    type(panel.getByRole("textbox", { name: "New line at (°C)" }), "20");
    fireEvent.click(screen.getByRole("button", { name: "Degrees Fahrenheit" }));
    expect((panel.getByRole("textbox", { name: "Move the line at 20 °C" }) as HTMLInputElement).value).toBe("20");
    type(panel.getByRole("textbox", { name: "New line at (°F)" }), "68");
    expect(arrangement.getState().thresholds.shanghai).toEqual([{ value: 20, unit: "celsius" }]);
  });

  it("closes with Escape, and the keyboard is back where it was", async () => {
    const { panel, tile } = await opened();
    fireEvent.keyDown(panel.getByRole("textbox"), { key: "Escape" });
    expect(tile("shanghai").queryByRole("dialog")).toBeNull();
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Lines and files: shanghai");
  });

  it("marks the curve that settles the day", async () => {
    const { tile } = await opened();
    expect(tile("shanghai").getByRole("img", { name: "The day is settled by this" })).toBeTruthy();
  });
});

it("says that the list could not be loaded, which is not an empty list", async () => {
  const { pass, routes } = setUp({ "/api/scan/terminal": new TypeError("refused") });
  await pass(0);
  const list = within(screen.getByRole("complementary", { name: "All cities" }));
  expect(list.getByRole("alert").textContent).toContain("the server does not answer");
  routes["/api/scan/terminal"] = { revision: 1, epoch: EPOCH, rows: [] };
  await pass(15_000);
  expect(list.queryByRole("alert")).toBeNull();
  expect(list.getByText("There are no cities.")).toBeTruthy();
});
