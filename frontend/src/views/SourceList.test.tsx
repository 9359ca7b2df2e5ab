// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createStore } from "zustand/vanilla";
import type { JobRow, SourceInfo } from "../client/earth_types";
import type { Jobs, JobsView } from "../data/jobs";
import { NO_HISTORY } from "../data/jobs_history";
import type { Session, SessionState } from "../data/session";
import { resources } from "../i18n";
import { jobOf, sourceOf } from "../testing/jobs";
import { SourceList } from "./SourceList";
import { JobsContext } from "./use_jobs";
import { SessionContext } from "./use_session";

beforeAll(async () => {
  await i18next.use(initReactI18next).init({
    lng: "en",
    ns: ["common", "codes", "earth", "sources"],
    resources,
    defaultNS: "common",
    interpolation: { escapeValue: false },
  });
});
afterEach(async () => {
  cleanup();
  await i18next.changeLanguage("en");
});

type Who = "stranger" | "viewer" | "operator";

function show(sources: readonly SourceInfo[], who: Who = "operator", rows: readonly JobRow[] = []) {
  const store = createStore<JobsView>(() => ({
    phase: "ready",
    error: null,
    rows: new Map(rows.map((row) => [row.id, row])),
    more: false,
    history: NO_HISTORY,
    counts: null,
    rates: new Map(),
    sources,
    pending: new Set(),
    mine: new Set(),
  }));
  const acts = {
    submit: vi.fn(async () => ({ task_id: 9, created: true })),
    cancel: vi.fn(async () => true),
    change: vi.fn(async () => true),
    rowsOf: vi.fn(async () => ({ facts: 13_412, derived: 26_824 })),
  };
  const state = { signed_in: who !== "stranger", may_operate: who === "operator" } as SessionState;
  const session = { store: createStore(() => state), refresh: vi.fn() } as unknown as Session;
  render(
    <SessionContext.Provider value={{ session, openSignIn: vi.fn() }}>
      <JobsContext.Provider value={{ store, ...acts } as unknown as Jobs}>
        <SourceList />
      </JobsContext.Provider>
    </SessionContext.Provider>,
  );
  return { store, ...acts };
}

const row = (source: string) => document.querySelector(`[data-source="${source}"]`) as HTMLElement;
const names = () => [...document.querySelectorAll("[data-source]")].map((item) => item.getAttribute("data-source"));
const actions = () =>
  screen
    .queryAllByRole("button")
    .map((button) => button.textContent)
    .filter(Boolean);
const unfold = (source: string) =>
  fireEvent.click(within(row(source)).getByRole("button", { name: `About ${source}` }));

const SATELLITES = { id: "satellites", title: "Satellites", title_zh: "卫星" };
const FAILING = sourceOf({
  source: "celestrak_gp",
  last_error_code: "bad_body",
  last_error: "all 49 records refused",
  rejects_last_run: 49,
  rejects: 312,
  reject_codes: [
    { code: "no_record", count: 9 },
    { code: "bad_time", count: 40 },
    { code: "of_a_later_version", count: 1 },
  ],
  sample: '{"EPOCH": "never"',
  rows: 13_412,
  rows_hour: 26_000,
  requests_hour: 2,
  floor_s: 7_200,
  layers: [SATELLITES],
  provenance: { publisher: "CelesTrak", licence: "Free to use", coverage: "", limits: "", zh: null },
});
const QUAKES = sourceOf({ source: "usgs_quakes", floor_s: 60, requests_hour: 12, rows_hour: 1, rows: 50_000 });
const READINGS = sourceOf({ source: "awc_metar", paused: null, has_calendar: false });

describe("the list of sources", () => {
  it("tells what is wrong first, of each source in a word and its figures", () => {
    show([READINGS, QUAKES, FAILING]);
    expect(names()).toEqual(["celestrak_gp", "awc_metar", "usgs_quakes"]);
    expect(screen.getByText("1 source needs a look")).toBeTruthy();
    expect(row("celestrak_gp").dataset.state).toBe("failing");
    const text = row("celestrak_gp").textContent ?? "";
    for (const part of ["failing", "26,000 rows", "2 of 1 requests", "13,412", "49", "312 in all", "could not be read"])
      expect(text).toContain(part);
    expect(row("usgs_quakes").textContent).toContain("50,000 or more");
    expect(row("usgs_quakes").textContent).toContain("12 of 60 requests");
    expect(row("usgs_quakes").textContent).toContain("1 row");
  });

  it("unfolds whose the data is, what was refused by code, and the bytes at fault", () => {
    show([FAILING]);
    unfold("celestrak_gp");
    const text = row("celestrak_gp").textContent ?? "";
    for (const part of ["CelesTrak", "Free to use", "Satellites", "one in 2 h, 1 an hour", '{"EPOCH": "never"'])
      expect(text).toContain(part);
    const codes = within(row("celestrak_gp")).getAllByRole("listitem");
    expect(codes.map((item) => item.textContent?.trim())).toEqual([
      "40 × bad_time has no valid time",
      "9 × no_record is no record",
      "1 × of_a_later_version of_a_later_version",
    ]);
  });

  it("is in Chinese where the reader is, but for the words of the worker", async () => {
    await i18next.changeLanguage("zh");
    show([FAILING]);
    fireEvent.click(screen.getByRole("button", { name: "关于 celestrak_gp" }));
    const text = row("celestrak_gp").textContent ?? "";
    for (const part of ["失败", "卫星", "没有有效的时间", "累计 312", "无法读取数据提供方的应答"])
      expect(text).toContain(part);
    const english = [...row("celestrak_gp").querySelectorAll('[lang="en"]')].map((part) => part.textContent?.trim());
    expect(english.every((part) => part?.includes("all 49 records refused"))).toBe(true);
  });

  it("keeps its order while it is pointed at or has the keyboard", () => {
    const { store } = show([QUAKES, FAILING]);
    const list = document.querySelector(".slist") as HTMLElement;
    const healed = {
      sources: [
        { ...QUAKES, last_error_code: "transient" },
        { ...FAILING, last_error_code: null },
      ],
    };
    fireEvent.pointerEnter(list);
    store.setState(healed);
    expect(names()).toEqual(["celestrak_gp", "usgs_quakes"]);
    fireEvent.pointerLeave(list);
    expect(names()).toEqual(["usgs_quakes", "celestrak_gp"]);
  });
});

describe("what can be done", () => {
  it("an operator runs, stops and pauses in the row, and clears and sets the schedule under it", async () => {
    const running = jobOf({ id: 7, status: "running", source: "usgs_quakes", records_processed: 40 });
    const { submit, cancel, change } = show([FAILING, QUAKES], "operator", [running]);
    fireEvent.click(screen.getByRole("button", { name: "Collect celestrak_gp now" }));
    expect(submit).toHaveBeenCalledWith("collect", "celestrak_gp");
    fireEvent.click(screen.getByRole("button", { name: "Stop job 7" }));
    expect(cancel).toHaveBeenCalledWith(7);
    fireEvent.click(screen.getByRole("button", { name: "Pause usgs_quakes" }));
    expect(change).toHaveBeenCalledWith("usgs_quakes", { paused: true });
    const busy = screen.getByRole("button", { name: "Collect usgs_quakes now" }) as HTMLButtonElement;
    expect([busy.disabled, busy.getAttribute("aria-description")]).toEqual([true, "Job #7 of this source is running"]);
    unfold("celestrak_gp");
    fireEvent.click(screen.getByRole("switch", { name: "Run celestrak_gp by its schedule" }));
    expect(change).toHaveBeenCalledWith("celestrak_gp", { enabled: false });
    fireEvent.click(screen.getByRole("button", { name: "Clear all data of celestrak_gp" }));
    expect((await screen.findByText("13,412 records will be deleted.")).textContent).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "Delete" }));
    expect(submit).toHaveBeenCalledWith("clear_data", "celestrak_gp");
    expect(screen.getByRole("button", { name: "Schedule of celestrak_gp" })).toBeTruthy();
  });

  it.each(["viewer", "stranger"] as const)("a %s may look, and finds no button that does nothing", (who) => {
    show([FAILING, QUAKES], who, [jobOf({ id: 7, status: "running", source: "usgs_quakes" })]);
    unfold("celestrak_gp");
    expect(actions()).toEqual(["Copy"]);
    expect(screen.queryByRole("switch")).toBeNull();
    expect(screen.getByRole("progressbar")).toBeTruthy();
  });

  it("a source of readings runs without jobs: it says by what it is set", () => {
    show([READINGS]);
    unfold("awc_metar");
    expect(actions()).toEqual([]);
    expect(row("awc_metar").textContent).toContain("PLANETWIRE_FEEDS__AWC_METAR__…");
  });

  it("a stranger who may not read texts is told so, and gets the codes", () => {
    show([{ ...FAILING, last_error: null, sample: null }], "stranger");
    unfold("celestrak_gp");
    const text = row("celestrak_gp").textContent ?? "";
    expect(text).toContain("shown to who is signed in");
    expect(text).toContain("the provider's answer could not be read");
    expect(text).toContain("40 × bad_time");
  });
});
