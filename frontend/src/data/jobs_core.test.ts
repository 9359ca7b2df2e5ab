import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JobRow, JobStatus } from "../client/earth_types";
import { jobOf } from "../testing/jobs";
import { holder, inTab, nextRate, supersedes, tabOf } from "./jobs_core";

describe("which row is newer", () => {
  const running = jobOf({ status: "running", lease_seq: 1, attempts: 1, records_processed: 400 });

  it.each([
    ["more records", { ...running, records_processed: 600 }, true],
    ["fewer records", { ...running, records_processed: 200 }, false],
    ["stopping", { ...running, status: "cancelling" as const }, true],
    ["given back for another try", { ...running, status: "queued" as const }, true],
    ["the next lease, from the start", { ...running, lease_seq: 2, records_processed: 0 }, true],
    ["as it was when submitted", jobOf({ status: "queued" }), false],
    ["over", { ...running, status: "cancelled" as const }, true],
  ])("%s", (_, next, expected) => {
    expect(supersedes(next, running)).toBe(expected);
  });

  it("a final row never changes its state", () => {
    const done = { ...running, status: "cancelled" as const };
    expect(supersedes({ ...running, records_processed: 9_000 }, done)).toBe(false);
    expect(supersedes({ ...running, status: "cancelling", lease_seq: 7 }, done)).toBe(false);
  });

  it("in whatever order the rows of one life arrive, the last state wins", () => {
    const life: JobRow[] = [
      jobOf({ status: "queued" }),
      jobOf({ status: "running", lease_seq: 1, attempts: 1, records_processed: 0 }),
      jobOf({ status: "running", lease_seq: 1, attempts: 1, records_processed: 500 }),
      jobOf({ status: "queued", lease_seq: 1, attempts: 1, records_processed: 500 }),
      jobOf({ status: "running", lease_seq: 2, attempts: 2, records_processed: 100 }),
      jobOf({ status: "cancelling", lease_seq: 2, attempts: 2, records_processed: 300 }),
      jobOf({ status: "cancelled", lease_seq: 2, attempts: 2, records_processed: 300 }),
    ];
    fc.assert(
      fc.property(fc.shuffledSubarray(life, { minLength: 1 }), (arrived) => {
        let held: JobRow | undefined;
        for (const row of arrived) if (supersedes(row, held)) held = row;
        const latest = Math.max(...arrived.map((row) => life.indexOf(row)));
        expect(held).toBe(life[latest]);
      }),
    );
  });
});

describe("lists", () => {
  it("every status is in one tab", () => {
    const tabs = (["queued", "running", "cancelling", "completed", "failed", "cancelled"] as JobStatus[]).map(tabOf);
    expect(tabs).toEqual(["queued", "running", "running", "finished", "finished", "finished"]);
  });

  it("the queue is in its order, what finished is newest first", () => {
    const rows = [
      jobOf({ id: 1, status: "queued" }),
      jobOf({ id: 2, status: "completed", finished_at: "2026-05-25T10:00:00Z" }),
      jobOf({ id: 3, status: "failed", finished_at: "2026-05-25T11:00:00Z" }),
      jobOf({ id: 4, status: "queued" }),
    ];
    expect(inTab(rows, "queued").map((row) => row.id)).toEqual([1, 4]);
    expect(inTab(rows, "finished").map((row) => row.id)).toEqual([3, 2]);
  });

  it("only a write job holds its source", () => {
    const rows = [
      jobOf({ id: 1, task_type: "clear_cache", status: "running", source: "a" }),
      jobOf({ id: 2, task_type: "collect", status: "queued", source: "a" }),
      jobOf({ id: 3, task_type: "clear_data", status: "cancelling", source: "b" }),
    ];
    expect([holder(rows, "a"), holder(rows, "b")?.id]).toEqual([null, 3]);
  });
});

describe("rates", () => {
  it("follow the records, smoothed, and start over when the count falls", () => {
    const first = nextRate(undefined, 0, 0);
    const second = nextRate(first, 1_000, 500);
    const third = nextRate(second, 2_000, 1_500);
    expect([first.per_s, second.per_s, third.per_s]).toEqual([null, 500, 700]);
    expect(nextRate(third, 3_000, 10).per_s).toBeNull();
  });

  it("two rows at once say nothing about speed", () => {
    const first = nextRate(undefined, 0, 0);
    expect(nextRate(first, 100, 500)).toBe(first);
  });
});
