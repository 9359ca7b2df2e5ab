import { describe, expect, it } from "vitest";
import type { FromWorker, LayerPositions, ToWorker } from "./propagation_messages";
import { createPropagator, type WorkerLike } from "./propagator";

class FakeWorker implements WorkerLike {
  messages: ToWorker[] = [];
  ended = false;
  onmessage: WorkerLike["onmessage"] = null;
  onerror: WorkerLike["onerror"] = null;
  postMessage(message: ToWorker): void {
    this.messages.push(message);
  }
  terminate(): void {
    this.ended = true;
  }
  answer(version: number, at_ms = 0): void {
    const layers: LayerPositions[] = [
      { layer: "satellites", version, buffer: new ArrayBuffer(12), missing: 0, bad: [] },
    ];
    const data: FromWorker = { type: "positions", at_ms, layers };
    this.onmessage?.({ data } as MessageEvent<FromWorker>);
  }
}

function setUp() {
  const worker = new FakeWorker();
  const seen: number[] = [];
  const errors: string[] = [];
  const propagator = createPropagator(worker, {
    onPositions: (positions) => seen.push(positions.version),
    onError: (reason) => errors.push(reason),
  });
  const ticks = () => worker.messages.filter((message) => message.type === "tick");
  return { worker, propagator, seen, errors, ticks };
}

describe("the propagator", () => {
  it("asks for nothing while it has no elements", () => {
    const { propagator, ticks } = setUp();
    propagator.tick(1);
    expect(ticks()).toHaveLength(0);
  });

  it("has one tick under way, and then only the newest that was wished", () => {
    const { worker, propagator, ticks } = setUp();
    propagator.load("satellites", 1, [{}]);
    for (const at_ms of [1, 2, 3]) propagator.tick(at_ms);
    expect(ticks()).toHaveLength(1);
    worker.answer(1);
    expect(ticks().map((tick) => tick.type === "tick" && tick.at_ms)).toEqual([1, 3]);
    worker.answer(1);
    expect(ticks()).toHaveLength(2);
  });

  it("gives a used buffer back", () => {
    const { worker, propagator, ticks } = setUp();
    propagator.load("satellites", 1, [{}]);
    propagator.tick(1);
    worker.answer(1);
    propagator.tick(2);
    expect(ticks()[1]).toMatchObject({ spare: [{ byteLength: 12 }] });
  });

  it("never hands on positions of elements that were replaced or cleared", () => {
    const { worker, propagator, seen } = setUp();
    propagator.load("satellites", 1, [{}]);
    propagator.tick(1);
    propagator.load("satellites", 2, [{}]);
    worker.answer(1);
    propagator.drop("satellites");
    worker.answer(2);
    expect(seen).toEqual([]);
  });

  it("goes on after an error", () => {
    const { worker, propagator, errors, ticks } = setUp();
    propagator.load("satellites", 1, [{}]);
    propagator.tick(1);
    worker.onerror?.({ message: "boom" } as ErrorEvent);
    propagator.tick(2);
    expect(errors).toEqual(["boom"]);
    expect(ticks()).toHaveLength(2);
  });

  it("ends its worker", () => {
    const { worker, propagator } = setUp();
    propagator.stop();
    expect(worker.ended).toBe(true);
  });
});
