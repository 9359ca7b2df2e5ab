/** How fresh a layer is and how its state is shown: one word and one tone, worst news first. */
import type { LayerInfo } from "../client/earth_types";
import type { LayerView } from "../data/layer";

export type Tone = "" | "badge--ok" | "badge--warn" | "badge--bad";
export type StateWord = "loading" | "live" | "stale" | "empty" | "unavailable" | "simulated" | "failed";

/** Three limits old counts as far too old. */
const FAR_TOO_OLD = 3;

/** Class of an age against the layer's own limit; without a limit an age is only a number. */
export function freshnessOf(age_ms: number, stale_after_s: number | null): "dim" | "is-stale" | "is-old" {
  if (stale_after_s === null || stale_after_s <= 0) return "dim";
  const limit_ms = stale_after_s * 1_000;
  if (age_ms <= limit_ms) return "dim";
  return age_ms <= limit_ms * FAR_TOO_OLD ? "is-stale" : "is-old";
}

export interface LookInput {
  view: Pick<LayerView, "phase" | "count" | "state">;
  info: Pick<LayerInfo, "state" | "stale_after_s">;
  age_ms: number | null;
  live: boolean;
}

export interface Look {
  word: StateWord;
  tone: Tone;
}

/** The snapshot's state is older than the registry's, which is read again after every change. */
export function lookOf({ view, info, age_ms, live }: LookInput): Look {
  if (view.phase === "failed") return { word: "failed", tone: "badge--bad" };
  if (view.count === null && view.phase !== "idle") return { word: "loading", tone: "" };
  if (info.state === "unavailable") return { word: "unavailable", tone: "" };
  if (view.count === 0 || (view.count === null && info.state === "empty")) return { word: "empty", tone: "" };
  if (info.state === "stale" || isStale(age_ms, info.stale_after_s)) return { word: "stale", tone: "badge--warn" };
  if (info.state === "simulated") return { word: "simulated", tone: "badge--warn" };
  return { word: "live", tone: live ? "badge--ok" : "" };
}

function isStale(age_ms: number | null, stale_after_s: number | null): boolean {
  return age_ms !== null && freshnessOf(age_ms, stale_after_s) !== "dim";
}
