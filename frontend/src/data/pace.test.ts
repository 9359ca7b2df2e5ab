import { expect, it } from "vitest";
import { manualTimers } from "../testing/clock";
import { Pace } from "./pace";

it("runs at once after a quiet time, and then once for all that was asked meanwhile", () => {
  const timers = manualTimers();
  const ran: number[] = [];
  const began = timers.now();
  const pace = new Pace(timers, 200, () => ran.push(timers.now() - began));
  pace.ask();
  expect(ran).toEqual([0]);
  for (let i = 0; i < 10; i += 1) {
    pace.ask();
    timers.advance(50);
  }
  expect(ran).toEqual([0, 200, 400]);
  timers.advance(1_000);
  expect(ran).toEqual([0, 200, 400, 600]);
  pace.ask();
  expect(ran).toHaveLength(5);
  expect(timers.pending).toBe(0);
});

it("runs now when told, and not again for what had been waiting", () => {
  const timers = manualTimers();
  let ran = 0;
  const pace = new Pace(timers, 200, () => {
    ran += 1;
  });
  pace.ask();
  pace.ask();
  pace.now();
  timers.advance(1_000);
  expect(ran).toBe(2);
});
