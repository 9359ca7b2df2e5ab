import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { objectLook } from "../draw/layer_styles";
import { valuesOf } from "../draw/layer_values";
import { LAYERS_EXAMPLE, readLayers } from "../testing/layers";
import { rowShown } from "../views/card_text";
import { card, look, PLAIN_LOOK } from "./presentation_wire";

const CLASS = { key: "low", label: "low", label_zh: "低", color: "#0000ff", alpha: 0.5, below: 1 };
const SCALE = { by: "value", value: "ash_km", classes: [CLASS] };
const ROW = { key: "ash", label: "Ash", label_zh: "火山灰", values: ["ash_km"], format: "number" };

describe("the golden example", () => {
  it("is read without losing a class or a row", async () => {
    const layers = await readLayers(LAYERS_EXAMPLE);
    expect(layers.length).toBeGreaterThan(2);
    LAYERS_EXAMPLE.items.forEach((item, index) => {
      expect(layers[index]?.look).toMatchObject(item.look as object);
      const rows = (item.card as Record<string, unknown>[]).map(({ otherwise, otherwise_zh, ...row }) => ({
        ...row,
        otherwise: otherwise === undefined ? null : { label: otherwise, label_zh: otherwise_zh },
      }));
      expect(layers[index]?.card).toMatchObject(rows);
    });
  });
});

describe("a look that is not as it should be", () => {
  it.each([null, undefined, 5, "x", [], {}, { color: 5, size: "x", late: [] }])("%j is a plain one", (odd) => {
    expect(look(odd)).toEqual(PLAIN_LOOK);
  });

  it("a class that cannot be read is left out alone", () => {
    const odd = [
      { ...CLASS, key: "colour", color: "red" },
      { ...CLASS, key: "script", color: "#0000ff;background:url(//x)" },
      { ...CLASS, key: "" },
      { ...CLASS, key: "unlabelled", label: undefined },
      // With its bound ignored it would hold everything.
      { ...CLASS, key: "bound", below: "1" },
      { ...CLASS, key: "infinite", below: Number.POSITIVE_INFINITY },
      null,
      CLASS,
      { ...CLASS, label: "again" },
    ];
    const { color } = look({ color: { ...SCALE, classes: odd } });
    expect(color?.classes.map(({ key, label }) => [key, label])).toEqual([["low", "low"]]);
  });

  it("a scale without a class, of a later kind, or of no value is none", () => {
    const odd = [
      { ...SCALE, classes: [null] },
      { ...SCALE, by: "log" },
      { ...SCALE, value: 5 },
      { ...SCALE, classes: {} },
    ];
    expect(odd.map((color) => look({ color }).color)).toEqual([null, null, null, null]);
  });

  it("numbers are kept within bounds", () => {
    const classes = Array.from({ length: 40 }, (_, index) => ({ ...CLASS, key: `c${index}`, alpha: 7, size_px: 1e9 }));
    const wild = look({ color: { ...SCALE, classes }, size: { px: 1e9 }, late: { after_s: -1, alpha: 0.3 } });
    expect([wild.color?.classes.length, wild.color?.classes[0]?.alpha, wild.color?.classes[0]?.size_px]).toEqual([
      16, 1, 64,
    ]);
    expect([wild.size, wild.late, look({ size: { px: 0.01 } }).size]).toEqual([{ px: 64 }, null, { px: 1 }]);
    expect([0.5, 0, 2, "1"].map((fill_alpha) => look({ fill_alpha }).fill_alpha)).toEqual([0.5, null, null, null]);
    expect(look({ size: { value: "vei", base_px: "3", factor: 2 } }).size).toEqual({ px: 5 });
  });
});

describe("a card that is not as it should be", () => {
  it("a row that cannot be read is left out alone, and a second one of a key", () => {
    const rows = [
      null,
      { ...ROW, key: 5 },
      { ...ROW, key: "later", format: "gauge" },
      { ...ROW, key: "nothing", values: [] },
      { ...ROW, key: "no_names", values: [5, {}] },
      { ...ROW, key: "unlabelled", label: "" },
      { ...ROW, decimals: 99, unit: {}, choices: [null, { equals: "a" }], join: 5 },
      { ...ROW, label: "again" },
    ];
    const read = card(rows);
    expect(read.map(({ key, label }) => [key, label])).toEqual([["ash", "Ash"]]);
    expect(read[0]).toMatchObject({ decimals: null, unit: "", choices: [], join: null });
  });

  it("is bounded, whatever it is", () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ ...ROW, key: `r${index}`, label: "x".repeat(10_000) }));
    const read = card(many);
    expect([read.length, read[0]?.label.length]).toEqual([24, 80]);
    expect([card(null), card({}), card("rows")]).toEqual([[], [], []]);
  });

  it("a label in English alone is shown in both languages", () => {
    expect(card([{ ...ROW, label_zh: undefined }])[0]).toMatchObject({ label: "Ash", label_zh: "Ash" });
  });
});

/** Something of the right shape with anything in it. */
const mutated = <T extends object>(whole: T) =>
  fc.tuple(fc.constantFrom(...Object.keys(whole)), fc.jsonValue()).map(([key, value]) => ({ ...whole, [key]: value }));

describe("whatever a server says", () => {
  it("a point is drawn within bounds and a row is text, a time or nothing", () => {
    const scales = mutated(SCALE).chain((scale) => mutated(CLASS).map((one) => ({ ...scale, classes: [one] })));
    const looks = fc.oneof(fc.jsonValue(), fc.record({ color: scales, size: fc.jsonValue(), late: fc.jsonValue() }));
    const cards = fc.oneof(fc.jsonValue(), fc.array(mutated(ROW)));
    const data = fc.dictionary(fc.constantFrom("ash_km", "__proto__", "x"), fc.jsonValue());
    fc.assert(
      fc.property(looks, cards, data, (odd, rows, data) => {
        const feature = { id: "x:1", kind: "volcano", lat: 1, lon: 2, observed_at: null, data };
        const drawn = objectLook(look(odd), feature, 0);
        expect(drawn.color).toMatch(/^#[0-9a-f]{6}$/i);
        expect(drawn.alpha > 0 && drawn.alpha <= 1 && drawn.size_px > 0 && drawn.size_px <= 64).toBe(true);
        for (const row of card(rows)) {
          const shown = rowShown(row, valuesOf(feature), "en");
          expect(shown === null || typeof shown === "string" || Number.isFinite(shown.at_ms)).toBe(true);
        }
      }),
    );
  });
});
