// @vitest-environment happy-dom
import { cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createStore } from "zustand/vanilla";
import type { JobRow } from "../client/earth_types";
import type { Earth } from "../data/earth";
import type { JobsView } from "../data/jobs";
import type { Session, SessionState } from "../data/session";
import { resources } from "../i18n";
import { jobOf } from "../testing/jobs";
import { JobPanel } from "./JobPanel";
import { EarthContext } from "./use_earth";
import { SessionContext } from "./use_session";

beforeAll(async () => {
  await i18next.use(initReactI18next).init({ lng: "en", ns: ["common", "earth"], resources, defaultNS: "common" });
});

beforeEach(() => localStorage.clear());
afterEach(cleanup);

function setUp(rows: readonly JobRow[], change: Partial<JobsView> = {}, signed_in = true) {
  const jobs = createStore<JobsView>(() => ({
    phase: "ready",
    error: null,
    rows: new Map(rows.map((row) => [row.id, row])),
    rates: new Map(),
    pending: new Set(),
    sources: ["celestrak_gp", "awc_metar"].map((source) => ({
      source,
      enabled: true,
      interval_s: 600,
      last_error_code: null,
      last_error: null,
      last_success_at: null,
      next_run_at: null,
      cooldown_until: null,
    })),
    ...change,
  }));
  const acts = {
    submit: vi.fn(async () => undefined),
    cancel: vi.fn(async () => undefined),
    retry: vi.fn(async () => undefined),
  };
  const store = createStore(() => ({ layers: [{ id: "satellites", sources: ["celestrak_gp"] }] }));
  const earth = { store, jobs: { store: jobs, ...acts } } as unknown as Earth;
  const openSignIn = vi.fn();
  const session = { store: createStore(() => ({ signed_in }) as SessionState) } as Session;
  render(
    <SessionContext.Provider value={{ session, openSignIn }}>
      <EarthContext.Provider value={{ earth, globe: null, picked: null, pick: () => undefined }}>
        <JobPanel />
      </EarthContext.Provider>
    </SessionContext.Provider>,
  );
  return { jobs, openSignIn, ...acts };
}

const button = (name: string | RegExp) => screen.getByRole("button", { name });
const RUNNING = jobOf({
  id: 7,
  status: "running",
  lease_seq: 1,
  attempts: 1,
  progress: 0.4,
  records_processed: 4_000,
  records_total: 10_000,
  started_at: "2026-05-25T10:00:00Z",
});

describe("a running job", () => {
  it("shows its progress and its records, and can be stopped", () => {
    const { cancel } = setUp([RUNNING]);
    expect(screen.getByRole("progressbar")).toHaveProperty("value", 0.4);
    expect(screen.getByText("4,000 of 10,000 records")).toBeTruthy();
    fireEvent.click(button("Stop job 7"));
    expect(cancel).toHaveBeenCalledWith(7);
  });

  it("that is stopping says so, and its button can do nothing more", () => {
    const { cancel } = setUp([{ ...RUNNING, status: "cancelling", cancel_requested_at: new Date().toISOString() }]);
    const stopping = button(/^Stopping/) as HTMLButtonElement;
    expect(stopping.disabled).toBe(true);
    fireEvent.click(stopping);
    expect(cancel).not.toHaveBeenCalled();
  });

  it("that was stopped tells what was kept", () => {
    setUp([{ ...RUNNING, status: "cancelled", finished_at: "2026-05-25T10:00:09Z" }]);
    expect(screen.getByText("stopped, 4,000 kept")).toBeTruthy();
  });
});

describe("a failed job", () => {
  it("shows its code and can be run again", () => {
    const { retry } = setUp([
      {
        ...RUNNING,
        status: "failed",
        error_code: "http_503",
        error: "the provider answered 503",
        finished_at: "2026-05-25T10:00:09Z",
      },
    ]);
    expect(screen.getByText("http_503")).toBeTruthy();
    fireEvent.click(button("Run job 7 again"));
    expect(retry).toHaveBeenCalledWith(7);
  });
});

describe("sources", () => {
  it("only those that feed a layer take jobs", () => {
    setUp([]);
    const list = screen.getByRole("list", { name: "Sources" });
    expect(within(list).getByText("celestrak_gp")).toBeTruthy();
    expect(within(list).queryByText("awc_metar")).toBeNull();
  });

  it("collect at once; clearing is asked back first, and keeping does nothing", () => {
    const { submit } = setUp([]);
    fireEvent.click(button("Collect celestrak_gp now"));
    expect(submit).toHaveBeenCalledWith("collect", "celestrak_gp");
    fireEvent.click(button("Clear all data of celestrak_gp"));
    fireEvent.click(button("Keep"));
    expect(submit).toHaveBeenCalledTimes(1);
    fireEvent.click(button("Clear all data of celestrak_gp"));
    fireEvent.click(button("Delete"));
    expect(submit).toHaveBeenLastCalledWith("clear_data", "celestrak_gp");
  });

  it("a button that cannot act is off and says why", () => {
    setUp([RUNNING]);
    const collect = button("Collect celestrak_gp now") as HTMLButtonElement;
    expect([collect.disabled, collect.title]).toEqual([true, "Job #7 of this source is running"]);
    expect((button("Clear all data of celestrak_gp") as HTMLButtonElement).disabled).toBe(false);
  });

  it("without a session every button asks to sign in, and sends nothing", () => {
    const { openSignIn, submit, cancel } = setUp([RUNNING], {}, false);
    fireEvent.click(button("Sign in to work with celestrak_gp"));
    fireEvent.click(button("Sign in to stop job 7"));
    expect(openSignIn).toHaveBeenCalledTimes(2);
    expect([submit.mock.calls.length, cancel.mock.calls.length]).toEqual([0, 0]);
  });
});

describe("the lists", () => {
  it("open with what runs; each tab tells how many it has", () => {
    setUp([RUNNING, jobOf({ id: 8 }), jobOf({ id: 9, status: "completed", finished_at: "2026-05-25T10:00:00Z" })]);
    const tabs = screen.getAllByRole("tab").map((tab) => tab.textContent);
    expect(tabs).toEqual(["Running 1", "Queued 1", "Finished 1"]);
    expect(screen.getByText("#7")).toBeTruthy();
    fireEvent.click(screen.getByRole("tab", { name: /Queued/ }));
    expect(screen.queryByText("#7")).toBeNull();
    fireEvent.click(button("Cancel job 8"));
  });

  it("that did not load is an error and not an emptiness", () => {
    setUp([], { phase: "failed", error: "unreachable", sources: [] });
    expect(screen.getByRole("status").textContent).toContain("unreachable");
    expect(screen.queryByText("Nothing is running.")).toBeNull();
  });
});
