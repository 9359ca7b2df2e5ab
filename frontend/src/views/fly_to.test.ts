import { beforeEach, expect, it, vi } from "vitest";
import type { Found } from "../client/object_wire";
import { flyTo } from "./fly_to";

const FOUND: Found = {
  id: "1",
  layer: "satellites",
  feature: "25544",
  kind: "satellite",
  title: "ISS",
  subtitle: "",
  lat: null,
  lon: null,
};
const PLACE = { lat: 1, lon: 2, altitude_m: 420_000, extent_m: 0 };

beforeEach(() => {
  vi.useFakeTimers();
  return () => vi.useRealTimers();
});

/** A globe that has the object's place from this look on. */
function globe(from: number) {
  let looks = 0;
  const fly = vi.fn();
  const placeOf = vi.fn(() => {
    looks += 1;
    return looks >= from ? PLACE : null;
  });
  return { fly, placeOf, camera: { fly } as never };
}

it("an object without a place yet is flown to as soon as it has one", () => {
  const made = globe(4);
  flyTo(made, FOUND);
  vi.advanceTimersByTime(599);
  expect(made.fly).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(made.fly.mock.calls).toEqual([[1, 2, 420_000, 0]]);
  vi.runAllTimers();
  expect(made.placeOf).toHaveBeenCalledTimes(4);
});

it("after ten seconds nobody waits for it any more: a globe does not turn by itself minutes later", () => {
  const made = globe(Number.POSITIVE_INFINITY);
  flyTo(made, FOUND);
  vi.advanceTimersByTime(10_000);
  expect(made.placeOf).toHaveBeenCalledTimes(51);
  expect(vi.getTimerCount()).toBe(0);
});

it("another choice ends the wait, and a place that search knows needs none", () => {
  const made = globe(2);
  flyTo(made, FOUND)();
  vi.runAllTimers();
  expect(made.fly).not.toHaveBeenCalled();
  flyTo(globe(Number.POSITIVE_INFINITY), { ...FOUND, lat: 5, lon: 6 });
  expect(vi.getTimerCount()).toBe(0);
});
