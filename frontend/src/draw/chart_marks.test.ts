import fc from "fast-check";
import { expect, it } from "vitest";
import { spread } from "./chart_marks";

it("names of lines stand where their lines are, or as near as the others leave room", () => {
  expect(spread([10, 50, 90], 12, 100)).toEqual([10, 50, 90]);
  expect(spread([10, 12, 14], 12, 100)).toEqual([10, 22, 34]);
  expect(spread([95, 98, 99], 12, 100)).toEqual([76, 88, 100]);
  expect(spread([], 12, 100)).toEqual([]);
});

it("no two names of lines stand over each other, and none below the chart", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 8 }), (wanted) => {
      const placed = spread(
        [...wanted].sort((a, b) => a - b),
        12,
        300,
      );
      placed.forEach((y, i) => {
        expect(y).toBeLessThanOrEqual(300);
        if (i > 0) expect(y - (placed[i - 1] as number)).toBeGreaterThanOrEqual(12);
      });
    }),
  );
});
