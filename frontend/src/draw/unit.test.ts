import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shown, tempText, valueRange } from "./unit";

describe("a temperature", () => {
  it.each([
    [0, "0.0°", "32.0°"],
    [-0.04, "0.0°", "31.9°"],
    [-40, "−40.0°", "−40.0°"],
    [37.5, "37.5°", "99.5°"],
  ])("of %d °C", (temp_c, celsius, fahrenheit) => {
    expect([tempText(temp_c, "celsius"), tempText(temp_c, "fahrenheit")]).toEqual([celsius, fahrenheit]);
  });

  it("that is not known is no zero", () => {
    expect(tempText(null, "celsius")).toBe("–");
    expect(shown(0, "fahrenheit")).toBe(32);
  });
});

describe("the scale", () => {
  it("holds everything that is drawn, the high among it, and never less than a few degrees", () => {
    const value = fc.option(fc.double({ min: -60, max: 60, noNaN: true }), { nil: null });
    fc.assert(
      fc.property(
        value,
        value,
        value,
        fc.constantFrom("celsius" as const, "fahrenheit" as const),
        (a, b, high, unit) => {
          const [low, top] = valueRange(a, b, high, unit);
          for (const each of [a, b, high]) {
            if (each === null) continue;
            expect(each).toBeGreaterThan(low);
            expect(each).toBeLessThan(top);
          }
          expect(top - low).toBeGreaterThan(unit === "celsius" ? 3.99 : 7.19);
        },
      ),
    );
  });

  it("is the weather's own where there is nothing to draw", () => {
    expect(valueRange(null, null, null, "celsius")).toEqual([0, 30]);
    expect(valueRange(Number.NaN, null, null, "fahrenheit")).toEqual([32, 86]);
  });
});
