// @vitest-environment happy-dom
import { act, render, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { createStore } from "zustand/vanilla";
import type { LayerInfo, Snapshot } from "../client/earth_types";
import { HttpError } from "../client/http";
import type { Earth } from "../data/earth";
import { createLayer } from "../data/layer";
import { PLAIN_LOOK } from "../data/presentation";
import { manualTimers, settle } from "../testing/clock";
import { preparePanel } from "../testing/job_panel";
import { EarthLayers } from "./EarthLayers";
import { EarthContext } from "./use_earth";
import { JobsContext } from "./use_jobs";

preparePanel();

const WORDS = { publisher: "", licence: "", coverage: "", limits: "", zh: null };
const QUAKES: LayerInfo = {
  id: "earthquakes",
  title: "Earthquakes",
  title_zh: "地震",
  group: "hazards",
  kind: "point",
  sources: ["usgs_quakes"],
  provenance: WORDS,
  look: PLAIN_LOOK,
  card: [],
  count: 1,
  state: "live",
  last_success_at: null,
  stale_after_s: 900,
};

function snapshot(revision: number): Snapshot {
  const feature = { id: "usgs_quakes:1", source: "usgs_quakes", kind: "earthquake", title: "M 5", data: {} };
  const features = [{ ...feature, lat: null, lon: null, observed_at: null }];
  const counts = { count: 1, total: 1, truncated: false, features };
  return { layer: QUAKES.id, epoch: "abcdefghijkl", revision, generated_at: "now", state: "live", ...counts };
}

// S68, S69, S70: what a person sees of it; the same line goes when the layer is back.
it("a clear whose refetch fails shows an empty layer and one line that says why", async () => {
  const answers: (Snapshot | Error)[] = [snapshot(5), new HttpError(503, "overloaded", "later"), snapshot(6)];
  const timers = manualTimers();
  const layer = createLayer(QUAKES.id, {
    fetch: async () => {
      const answer = answers.shift();
      if (answer === undefined || answer instanceof Error) throw answer;
      return answer;
    },
    timers,
    random: () => 0.5,
    onNotice: () => undefined,
  });
  const earth = {
    store: createStore(() => ({ layers: [QUAKES], registry: "ready", registry_error: null, connection: "live" })),
    jobs: { store: createStore(() => ({ sources: [] })) },
    layer: () => layer,
  } as unknown as Earth;
  layer.setVisible(true);
  await settle();
  render(
    <EarthContext.Provider value={{ earth, globe: null, picked: null, pick: () => undefined }}>
      <JobsContext.Provider value={earth.jobs}>
        <EarthLayers />
      </JobsContext.Provider>
    </EarthContext.Provider>,
  );
  const count = () => screen.getByLabelText("Earthquakes", { selector: "output" }).textContent;
  expect([count(), screen.queryByText(/Cleared/)]).toEqual(["1", null]);
  const change = { layers: [QUAKES.id], refresh_strategy: "clear_then_reload" as const, action: "database_changed" };
  const rest = {
    source: null,
    operation: null,
    records_processed: 1,
    occurred_at: "",
    delta: { upsert: [], remove: [] },
  };
  await act(async () => {
    layer.apply({ epoch: "abcdefghijkl", revision: 6, prev_revision: 5, change: { ...change, ...rest } });
    await settle();
  });
  expect(count()).toBe("0");
  expect(screen.getByText(/Cleared/).textContent).toContain("the server has too much to write");
  await act(async () => {
    timers.advance(2_000);
    await settle();
  });
  expect([count(), screen.queryByText(/Cleared/)]).toEqual(["1", null]);
});
