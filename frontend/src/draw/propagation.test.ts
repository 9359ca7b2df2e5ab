import { describe, expect, it } from "vitest";
import { elementFault, loadElements, propagateAll } from "./propagation";
import fixture from "./propagation.fixture.json";
import { handle, type WorkerState } from "./propagation_worker";

type Omm = (typeof fixture.cases)[number]["omm"];

function positionOf(omm: Omm, at_ms: number): number[] {
  const out = new Float32Array(3);
  propagateAll(loadElements([omm]), at_ms, out);
  return [...out];
}

const GOOD = fixture.cases[2]?.omm as Omm;
const AT_MS = fixture.cases[2]?.checks[0]?.at_ms as number;

describe("positions against the published verification set", () => {
  for (const { omm, checks } of fixture.cases) {
    it(`${omm.NORAD_CAT_ID}: ${omm.OBJECT_NAME}`, () => {
      for (const { at_ms, ecef_m } of checks) {
        const found = positionOf(omm, at_ms);
        const off_m = Math.hypot(...found.map((value, axis) => value - (ecef_m[axis] as number)));
        const far_m = Math.hypot(...ecef_m);
        // Eight metres of model and clock, plus what float32 can hold at that distance.
        expect(off_m).toBeLessThan(8 + far_m * 2 ** -23);
      }
    });
  }
});

describe("bad records", () => {
  it("drop alone: one of twelve thousand is missed, the others are drawn", () => {
    const records: unknown[] = Array.from({ length: 12_000 }, (_, index) => ({ ...GOOD, NORAD_CAT_ID: index + 1 }));
    records[7_000] = { ...GOOD, MEAN_MOTION: "fast" };
    const set = loadElements(records);
    const out = new Float32Array(records.length * 3);
    expect(propagateAll(set, AT_MS, out)).toBe(1);
    expect(set.bad).toEqual([{ index: 7_000, reason: "bad_mean_motion" }]);
    expect(Number.isNaN(out[7_000 * 3] as number)).toBe(true);
    expect(out.filter((value) => Number.isNaN(value))).toHaveLength(3);
  });

  it.each([
    [null, "not_an_object"],
    [{ ...GOOD, EPOCH: "yesterday" }, "bad_epoch"],
    [{ ...GOOD, EPOCH: undefined }, "bad_epoch"],
    [{ ...GOOD, INCLINATION: null }, "bad_inclination"],
    [{ ...GOOD, ECCENTRICITY: "" }, "bad_eccentricity"],
    [{ ...GOOD, NORAD_CAT_ID: null }, "bad_norad_cat_id"],
  ])("%# says why", (record, reason) => {
    expect(elementFault(record)).toBe(reason);
  });

  it("numbers written as text are numbers, and a null designator is no fault", () => {
    expect(elementFault({ ...GOOD, MEAN_MOTION: "15.5", OBJECT_ID: null })).toBeNull();
  });

  it("has no position for an object that has decayed long ago", () => {
    const decayed = { ...GOOD, BSTAR: 0.2, MEAN_MOTION: 16.2, ECCENTRICITY: 0.001 };
    expect(positionOf(decayed as Omm, AT_MS + 400 * 86_400_000)).toEqual([Number.NaN, Number.NaN, Number.NaN]);
  });
});

describe("the worker", () => {
  const load = (version: number, records: readonly unknown[]) =>
    ({ type: "load", layer: "satellites", version, records }) as const;

  it("answers a tick with the positions of every layer, and reuses a buffer that fits", () => {
    const state: WorkerState = { sets: new Map() };
    expect(handle(state, load(3, [GOOD, {}]))).toBeNull();
    const spare = new ArrayBuffer(24);
    const answer = handle(state, { type: "tick", at_ms: AT_MS, spare: [new ArrayBuffer(8), spare] });
    expect(answer?.layers).toHaveLength(1);
    expect(answer?.layers[0]).toMatchObject({ layer: "satellites", version: 3, missing: 1 });
    expect(answer?.layers[0]?.bad[0]?.index).toBe(1);
    expect(answer?.layers[0]?.buffer).toBe(spare);
  });

  it("forgets a dropped layer", () => {
    const state: WorkerState = { sets: new Map() };
    handle(state, load(1, [GOOD]));
    handle(state, { type: "drop", layer: "satellites" });
    expect(handle(state, { type: "tick", at_ms: AT_MS, spare: [] })?.layers).toEqual([]);
  });
});
