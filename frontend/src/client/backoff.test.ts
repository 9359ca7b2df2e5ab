import { expect, it } from "vitest";
import { createBackoff } from "./backoff";

/** S185: exponential with full jitter, 1 to 30 s. */
it("grows to 30 s, spreads over the whole interval, and begins again after a reset", () => {
  const slow = createBackoff({ random: () => 1 });
  expect(Array.from({ length: 7 }, () => slow.next())).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  expect(createBackoff({ random: () => 0 }).next()).toBe(1_000);
  slow.reset();
  expect([slow.attempts, slow.next()]).toEqual([0, 2_000]);
});
