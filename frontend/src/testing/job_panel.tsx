/** The job panel over stores of the test's own, with the server's part replaced by functions that remember. */
import { cleanup, render, screen } from "@testing-library/react";
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { afterEach, beforeAll, beforeEach, vi } from "vitest";
import { createStore } from "zustand/vanilla";
import type { JobRow } from "../client/earth_types";
import type { JobNotes, SourceRows } from "../client/job_notes_wire";
import type { Submitted } from "../client/job_wire";
import type { Earth } from "../data/earth";
import type { JobsView } from "../data/jobs";
import { NO_HISTORY } from "../data/jobs_history";
import type { Session, SessionState } from "../data/session";
import { resources } from "../i18n";
import { JobPanel } from "../views/JobPanel";
import { EarthContext } from "../views/use_earth";
import { JobsContext } from "../views/use_jobs";
import { SessionContext } from "../views/use_session";
import { sourceOf } from "./jobs";

/** Call once at the top of a test file that renders the panel. */
export function preparePanel(language = "en"): void {
  beforeAll(async () => {
    await i18next.use(initReactI18next).init({
      lng: language,
      ns: ["common", "earth"],
      resources,
      defaultNS: "common",
      interpolation: { escapeValue: false },
    });
  });
  beforeEach(() => localStorage.clear());
  afterEach(cleanup);
}

export function showPanel(
  rows: readonly JobRow[],
  change: Partial<JobsView> = {},
  signed_in = true,
  may_operate = signed_in,
) {
  const jobs = createStore<JobsView>(() => ({
    phase: "ready",
    error: null,
    rows: new Map(rows.map((row) => [row.id, row])),
    more: false,
    history: NO_HISTORY,
    counts: null,
    rates: new Map(),
    pending: new Set(),
    mine: new Set(),
    sources: ["celestrak_gp", "awc_metar"].map((source) => sourceOf({ source })),
    ...change,
  }));
  const acts = {
    submit: vi.fn(async (): Promise<Submitted | null> => ({ task_id: 9, created: true })),
    cancel: vi.fn(async () => true),
    retry: vi.fn(async (): Promise<Submitted | null> => ({ task_id: 9, created: true })),
    change: vi.fn(async () => true),
    readMore: vi.fn(async () => undefined),
    notes: vi.fn(async (): Promise<JobNotes> => ({ acts: [], lines: [] })),
    rowsOf: vi.fn(async (): Promise<SourceRows> => ({ facts: 13_412, derived: 26_824 })),
  };
  const store = createStore(() => ({ layers: [{ id: "satellites", sources: ["celestrak_gp"] }] }));
  const earth = { store, jobs: { store: jobs, ...acts } } as unknown as Earth;
  const openSignIn = vi.fn();
  const refresh = vi.fn(async () => undefined);
  const session = {
    store: createStore(() => ({ signed_in, may_operate }) as SessionState),
    refresh,
  } as unknown as Session;
  render(
    <SessionContext.Provider value={{ session, openSignIn }}>
      <EarthContext.Provider value={{ earth, globe: null, picked: null, pick: () => undefined }}>
        <JobsContext.Provider value={earth.jobs}>
          <JobPanel />
        </JobsContext.Provider>
      </EarthContext.Provider>
    </SessionContext.Provider>,
  );
  return { jobs, openSignIn, ...acts };
}

export const button = (name: string | RegExp) => screen.getByRole("button", { name }) as HTMLButtonElement;
