/**
 * The decisions of one layer, pure: an input and a model give the next model and the effects to carry out.
 *
 * Invariants: at most one fetch is under way; after a clear at revision R nothing older than R is shown again;
 * whatever arrives, the layer ends with a snapshot that is not older than its newest event.
 */
import type { Delta, Strategy } from "../client/earth_types";

/** Quick retries while the server's snapshot is older than its own event; after that it counts as a failure. */
export const STALE_TRIES = 5;

export interface LayerModel {
  readonly visible: boolean;
  /** The log in which `need` and `shown` are positions; null before the first message from the server. */
  readonly epoch: string | null;
  /** Revision of the newest event of this layer, 0 for none. */
  readonly need: number;
  /** Revision of the objects on screen; null if never loaded, or cleared. */
  readonly shown: number | null;
  /** Revision of the last clear: a snapshot below it may hold the deleted objects and is never shown. */
  readonly floor: number;
  readonly flight: { readonly id: number; readonly bypass: boolean } | null;
  readonly flights: number;
  /** A fetch is owed: `event` is settled by any snapshot that is new enough, `always` only by a later fetch. */
  readonly owed: "no" | "event" | "always";
  readonly bypass: boolean;
  readonly waiting: boolean;
  readonly failures: number;
  readonly stale_tries: number;
}

export type LayerInput =
  | { type: "show" }
  | { type: "hide" }
  | { type: "event"; epoch: string; revision: number; prev_revision: number; strategy: Strategy; delta?: Delta }
  /** Fetch without an event: after a join, a resync, or on request of the person. */
  | { type: "refresh"; bypass: boolean }
  | { type: "loaded"; flight: number; epoch: string; revision: number }
  /** The objects of a delta came. */
  | { type: "patched"; flight: number }
  | { type: "failed"; flight: number; code: string }
  /** The wait that a `retry` effect asked for is over. */
  | { type: "due" };

export type LayerEffect =
  | { type: "clear" }
  | { type: "fetch"; flight: number; bypass: boolean }
  /** Fetch these objects alone, and drop those that are gone. */
  | { type: "fetch_delta"; flight: number; delta: Delta }
  /** Put the objects of the delta in their places. */
  | { type: "patch" }
  | { type: "abort" }
  /** Show the snapshot that just came. */
  | { type: "apply" }
  | { type: "retry"; attempt: number; quick: boolean }
  | { type: "cancel_retry" }
  | { type: "complain"; code: string }
  | { type: "settle" };

export type Step = readonly [LayerModel, readonly LayerEffect[]];

export const NEW_LAYER: LayerModel = {
  visible: false,
  epoch: null,
  need: 0,
  shown: null,
  floor: 0,
  flight: null,
  flights: 0,
  owed: "no",
  bypass: false,
  waiting: false,
  failures: 0,
  stale_tries: 0,
};

export function step(model: LayerModel, input: LayerInput): Step {
  switch (input.type) {
    case "show":
      return show(model);
    case "hide":
      return hide(model);
    case "event":
      return onEvent(model, input);
    case "refresh":
      return want(model, "always", input.bypass);
    case "loaded":
      return onLoaded(model, input);
    case "patched":
      return onPatched(model, input.flight);
    case "failed":
      return onFailed(model, input);
    case "due":
      return begin({ ...model, waiting: false });
  }
}

function show(model: LayerModel): Step {
  const next: LayerModel = { ...model, visible: true };
  return model.shown === null ? want(next, "always", false) : model.owed === "no" ? [next, []] : begin(next);
}

/** Hidden layers keep their objects but fetch nothing. */
function hide(model: LayerModel): Step {
  const effects: LayerEffect[] = [];
  if (model.flight) effects.push({ type: "abort" });
  if (model.waiting) effects.push({ type: "cancel_retry" });
  const owed = model.flight || model.waiting ? "always" : model.owed;
  return [{ ...model, visible: false, flight: null, waiting: false, owed }, effects];
}

type EventInput = Extract<LayerInput, { type: "event" }>;

function onEvent(model: LayerModel, event: EventInput): Step {
  const same = model.epoch === null || model.epoch === event.epoch;
  const known = same ? Math.max(model.need, model.shown ?? 0) : 0;
  if (same && event.revision <= known) return [model, []];
  if (event.delta && canPatch(model, event)) return beginPatch(model, event.revision, event.delta);
  const clears = event.strategy === "clear_then_reload";
  // A gap: the missed event may have been a delete, so caches are bypassed.
  const gap = !same || event.prev_revision > known;
  const next: LayerModel = {
    ...model,
    epoch: event.epoch,
    need: event.revision,
    shown: clears || !same ? null : model.shown,
    floor: clears ? event.revision : same ? model.floor : 0,
    stale_tries: 0,
  };
  const [after, effects] = want(next, "event", clears || gap);
  return [after, clears ? [{ type: "clear" }, ...effects] : effects];
}

/** A delta applies to exactly the picture that it follows, and only while nothing else is going on; else it reloads. */
function canPatch(model: LayerModel, event: EventInput): boolean {
  const still = model.visible && model.flight === null && !model.waiting && model.owed === "no";
  const next = model.epoch === event.epoch && model.shown !== null && model.shown === event.prev_revision;
  return event.strategy === "delta" && still && next && model.need <= model.shown;
}

function beginPatch(model: LayerModel, revision: number, delta: Delta): Step {
  const id = model.flights + 1;
  const flight = { id, bypass: false };
  return [{ ...model, need: revision, flight, flights: id }, [{ type: "fetch_delta", flight: id, delta }]];
}

/** The picture is that of the event which began the patch, unless more events came meanwhile: they are owed. */
function onPatched(model: LayerModel, flight: number): Step {
  if (model.flight?.id !== flight) return [model, []];
  const landed: LayerModel = { ...model, flight: null, failures: 0 };
  if (model.owed === "no") return [{ ...landed, shown: model.need }, [{ type: "patch" }, { type: "settle" }]];
  const [after, effects] = begin(landed);
  return [after, model.shown === null ? effects : [{ type: "patch" }, ...effects]];
}

/** Mark a fetch as due and start it, unless one is in flight, a back-off runs, or the layer is hidden. */
function want(model: LayerModel, owed: "event" | "always", bypass: boolean): Step {
  const next: LayerModel = {
    ...model,
    owed: model.owed === "always" ? "always" : owed,
    bypass: model.bypass || bypass,
  };
  // Events during a back-off must not turn it into a storm; a person or a new connection may cut it short.
  return next.waiting && owed === "event" ? [next, []] : begin(next);
}

function begin(model: LayerModel): Step {
  if (!model.visible || model.flight) return [model, []];
  const id = model.flights + 1;
  const fetch: LayerEffect = { type: "fetch", flight: id, bypass: model.bypass };
  const effects: LayerEffect[] = model.waiting ? [{ type: "cancel_retry" }, fetch] : [fetch];
  const flight = { id, bypass: model.bypass };
  return [{ ...model, flight, flights: id, owed: "no", bypass: false, waiting: false }, effects];
}

type LoadedInput = Extract<LayerInput, { type: "loaded" }>;

function onLoaded(model: LayerModel, loaded: LoadedInput): Step {
  if (model.flight?.id !== loaded.flight) return [model, []];
  const landed: LayerModel = { ...model, flight: null };
  if (model.epoch !== null && model.epoch !== loaded.epoch) {
    // Which log is the present one? Only an uncached answer decides; a cached one is fetched again without caches.
    if (!model.flight.bypass) return begin({ ...landed, owed: "always", bypass: true });
    return accept({ ...landed, need: 0, floor: 0 }, loaded);
  }
  return loaded.revision >= model.need ? accept(landed, loaded) : tooOld(landed, loaded);
}

function accept(model: LayerModel, loaded: LoadedInput): Step {
  const owed = model.owed === "event" ? "no" : model.owed;
  const next: LayerModel = {
    ...model,
    epoch: loaded.epoch,
    shown: loaded.revision,
    failures: 0,
    stale_tries: 0,
    owed,
    bypass: owed === "no" ? false : model.bypass,
  };
  const [after, effects] = owed === "no" ? ([next, []] as const) : begin(next);
  return [after, [{ type: "apply" }, { type: "settle" }, ...effects]];
}

/** The snapshot does not hold the newest event; it is shown only if it is a step forward from what is there. */
function tooOld(model: LayerModel, loaded: LoadedInput): Step {
  const forward = loaded.revision >= Math.max(model.floor, model.shown ?? 0);
  const show: LayerEffect[] = forward ? [{ type: "apply" }] : [];
  const kept: LayerModel = { ...model, epoch: loaded.epoch, shown: show.length > 0 ? loaded.revision : model.shown };
  if (model.owed !== "no") {
    // The event came while this snapshot was on its way: one trailing fetch, which is not the server's fault.
    const [after, effects] = begin(kept);
    return [after, [...show, ...effects]];
  }
  const tries = model.stale_tries + 1;
  const next: LayerModel = { ...kept, stale_tries: tries, owed: "event", bypass: true };
  if (tries > STALE_TRIES) {
    const [after, effects] = backOff({ ...next, stale_tries: 0 }, "snapshot_stale");
    return [after, [...show, ...effects]];
  }
  return [{ ...next, waiting: true }, [...show, { type: "retry", attempt: tries, quick: true }]];
}

function onFailed(model: LayerModel, failed: Extract<LayerInput, { type: "failed" }>): Step {
  if (model.flight?.id !== failed.flight) return [model, []];
  const bypass = model.bypass || model.flight.bypass;
  return backOff({ ...model, flight: null, owed: "always", bypass }, failed.code);
}

function backOff(model: LayerModel, code: string): Step {
  const failures = model.failures + 1;
  return [
    { ...model, failures, waiting: true },
    [
      { type: "complain", code },
      { type: "retry", attempt: failures, quick: false },
    ],
  ];
}
