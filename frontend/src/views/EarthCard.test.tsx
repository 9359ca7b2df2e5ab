// @vitest-environment happy-dom
import { act, render, screen } from "@testing-library/react";
import i18next from "i18next";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createStore } from "zustand/vanilla";
import type { Feature, LayerInfo } from "../client/earth_types";
import type { Earth } from "../data/earth";
import { jsonResponse, settle } from "../testing/clock";
import { preparePanel } from "../testing/job_panel";
import { layerOf } from "../testing/layers";
import { EarthCard } from "./EarthCard";
import { EarthContext } from "./use_earth";

preparePanel();
// The server's card of the object is not what these tests are about: it has none.
beforeEach(() => vi.stubGlobal("fetch", async () => jsonResponse({ code: "not_found" }, 404)));
afterEach(async () => {
  vi.unstubAllGlobals();
  await i18next.changeLanguage("en");
});

const PLACE = { lat: 38, lon: 142, observed_at: "2026-05-25T10:20:30Z" };

function show(info: LayerInfo, kind: string, data: Record<string, unknown>) {
  const feature: Feature = { id: "x:1", source: "x", kind, title: "it", data, ...PLACE };
  const view = { features: [feature], visible: true };
  const earth = {
    store: createStore(() => ({ layers: [info] })),
    layer: () => ({ store: createStore(() => view) }),
    listen: () => () => undefined,
  } as unknown as Earth;
  const picked = { layer: info.id, feature: feature.id };
  return render(
    <EarthContext.Provider value={{ earth, globe: null, picked, pick: () => undefined }}>
      <EarthCard />
    </EarthContext.Provider>,
  );
}

/** Each row's label and value, without how long ago a time was. */
function rows(): string[] {
  return screen.getAllByRole("term").map((label) => {
    const value = label.nextElementSibling?.cloneNode(true) as Element;
    value.querySelector(".card__ago")?.remove();
    return `${label.textContent}: ${value.textContent?.trim()}`;
  });
}

const GENERAL = ["Position: 38.00° N 142.00° E", "Source: x"];

it("a card has the rows that its layer declares, whatever the kind, and then those of every card", async () => {
  show(layerOf("earthquakes"), "quarry blast", { mag: 2, mag_type: "ml", tsunami: 0 });
  await act(settle);
  expect(rows()).toEqual(["Magnitude: 2.0 ml", "Time: 2026-05-25 10:20:30 UTC", ...GENERAL]);
});

it("labels are in the page's language, and follow it", async () => {
  show(layerOf("earthquakes"), "earthquake", { mag: 5, mag_type: "mww", tsunami: 1 });
  await act(() => i18next.changeLanguage("zh").then(settle));
  expect(rows().slice(0, 3)).toEqual(["震级: 5.0 mww", "时间: 2026-05-25 10:20:30 UTC", "海啸: 已发布通告"]);
});

it("a layer that declares no rows has a card with kind and time", async () => {
  show({ ...layerOf("earthquakes"), id: "volcanoes", card: [] }, "volcano", { mag: 5 });
  await act(settle);
  expect(rows()).toEqual(["Kind: volcano", "Observed: 2026-05-25 10:20:30 UTC", ...GENERAL]);
});
