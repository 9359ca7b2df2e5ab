import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { JobRow, JobStatus } from "../client/earth_types";
import { jobOf } from "../testing/jobs";
import { holder, inTab, merged, nextRate, paceOf, type RateSample, supersedes, tabOf } from "./jobs_core";

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

  it("what was retried stays so, whatever an older answer says", () => {
    const failed = jobOf({ status: "failed", lease_seq: 1 });
    const retried = { ...failed, retried_as: 9 };
    expect([supersedes(retried, failed), supersedes(failed, retried)]).toEqual([true, false]);
  });

  it("an end is told once", () => {
    const done = { ...running, status: "completed" as const };
    const first = merged({ rows: new Map([[1, running]]), rates: new Map() }, [done], 0);
    expect([first.ended, first.rates.size]).toEqual([true, 0]);
    expect(merged(first, [done], 0).ended).toBe(false);
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
  const fed = (samples: readonly [at_ms: number, records: number][]) =>
    samples.reduce<RateSample | undefined>((held, [at_ms, records]) => nextRate(held, at_ms, records), undefined);

  it("follow the records, smoothed, and start over when the count falls", () => {
    expect(fed([[0, 0]])?.per_s).toBeNull();
    expect(
      fed([
        [0, 0],
        [1_000, 500],
      ])?.per_s,
    ).toBe(500);
    const third = fed([
      [0, 0],
      [1_000, 500],
      [2_000, 1_500],
    ]);
    expect(third?.per_s).toBeGreaterThan(500);
    expect(third?.per_s).toBeLessThan(1_000);
    expect(nextRate(third, 3_000, 10).per_s).toBeNull();
  });

  it("two rows at once, or a row without a new record, say nothing about speed", () => {
    const first = nextRate(undefined, 0, 0);
    expect(nextRate(first, 100, 500)).toBe(first);
    expect(nextRate(first, 9_000, 0)).toBe(first);
  });

  it("steady bursts give their mean and not their edges", () => {
    const bursts = Array.from({ length: 30 }, (_, n): [number, number] => [n * 3_000, n * 6_000]);
    expect(fed(bursts)?.per_s).toBeCloseTo(2_000);
  });

  it("the end is as far as the rest takes, runs down between two counts, and is unknown without a total", () => {
    const job = jobOf({ status: "running", records_processed: 4_000, records_total: 10_000 });
    const sample = { at_ms: 0, records: 4_000, per_s: 100 };
    expect(paceOf(job, sample, 0).remaining_ms).toBe(60_000);
    expect(paceOf(job, sample, 9_000).remaining_ms).toBe(51_000);
    expect(paceOf({ ...job, records_total: null }, sample, 0).remaining_ms).toBeNull();
    expect(paceOf({ ...job, records_total: 3_000 }, sample, 0).remaining_ms).toBeNull();
  });

  it("a job that stands still has no rate, and how long it has stood", () => {
    const job = jobOf({ status: "running", records_processed: 4_000, records_total: 10_000 });
    const pace = paceOf(job, { at_ms: 0, records: 4_000, per_s: 100 }, 30_000);
    expect(pace).toEqual({ per_s: null, remaining_ms: null, stalled_ms: 30_000 });
  });
});
