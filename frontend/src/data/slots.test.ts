import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { citiesOf, createArrangement, DEFAULTS, parseArrangement, SLOTS, withCity } from "./slots";

describe("the kept arrangement (frontend.md: corrupt storage falls back)", () => {
  it("comes back as it was", () => {
    const kept: string[] = [];
    const keeper = { read: () => kept.at(-1) ?? null, write: (text: string) => void kept.push(text) };
    const store = createArrangement(keeper);
    store.setState((old) => withCity({ ...old, layout: 9, unit: "fahrenheit" }, 2, "oslo"));
    store.setState({ chosen: { oslo: { "metar/m": false } } });
    expect(createArrangement(keeper).getState()).toEqual(store.getState());
    expect(store.getState().slots[2]).toBe("oslo");
  });

  it("is the default where it is broken, part by part", () => {
    expect([null, "", "{", "[]", "7", '"x"'].map(parseArrangement)).toEqual(Array(6).fill(DEFAULTS));
    const part = parseArrangement(
      JSON.stringify({ layout: 5, window: "6h", active: 99, slots: ["a"], unit: 3, chosen: 8 }),
    );
    expect(part).toEqual({ ...DEFAULTS, window: "6h" });
  });

  it("keeps a city of 64 letters, and no longer name (S179)", () => {
    const slots = ["a".repeat(64), "b".repeat(65), ...Array(7).fill(null)];
    expect(parseArrangement(JSON.stringify({ slots })).slots.slice(0, 2)).toEqual(["a".repeat(64), null]);
  });

  it("never gives anything but a usable arrangement, whatever was kept", () => {
    const slots = fc.array(fc.oneof(fc.string(), fc.constant(null), fc.constant("a"), fc.anything()), {
      maxLength: 12,
    });
    const raw = fc.record(
      { layout: fc.anything(), slots, active: fc.anything(), chosen: fc.anything() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(raw, fc.anything()), (value) => {
        const text = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? 1 : each)) ?? null;
        const read = parseArrangement(text);
        const cities = read.slots.filter((city) => city !== null);
        expect(read.slots).toHaveLength(SLOTS);
        expect(new Set(cities).size).toBe(cities.length);
        expect(citiesOf(read, false).length).toBeLessThanOrEqual(read.layout);
      }),
    );
  });
});

describe("places", () => {
  it("change their cities when one is chosen that is on screen already", () => {
    const next = withCity(DEFAULTS, 0, DEFAULTS.slots[3] as string);
    expect([next.slots[0], next.slots[3]]).toEqual([DEFAULTS.slots[3], DEFAULTS.slots[0]]);
    expect(withCity(DEFAULTS, 1, null).slots[1]).toBeNull();
  });

  it("give the cities on screen: those of the layout, the active one alone on a phone (S179, S180)", () => {
    expect(citiesOf(DEFAULTS, false)).toEqual(DEFAULTS.slots.slice(0, 4));
    expect(citiesOf({ ...DEFAULTS, layout: 9 }, false)).toHaveLength(9);
    expect(citiesOf({ ...DEFAULTS, layout: 1, active: 2 }, false)).toEqual([DEFAULTS.slots[2]]);
    expect(citiesOf({ ...DEFAULTS, active: 3 }, true)).toEqual([DEFAULTS.slots[3]]);
    expect(citiesOf(withCity(DEFAULTS, 1, null), false)).toHaveLength(3);
  });
});

it("lines that another window sets come in here, its places do not", () => {
  const heard: ((text: string | null) => void)[] = [];
  const written: string[] = [];
  const store = createArrangement({
    read: () => null,
    write: (text) => written.push(text),
    watch: (listener) => heard.push(listener),
  });
  const thresholds = { tokyo: [{ value: 30, unit: "celsius" as const }] };
  const other = JSON.stringify({ ...DEFAULTS, layout: 9, thresholds });
  heard[0]?.(other);
  heard[0]?.(other);
  expect(store.getState()).toMatchObject({ layout: 4, thresholds });
  expect(written).toHaveLength(1);
});
