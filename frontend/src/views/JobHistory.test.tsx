// @vitest-environment happy-dom
import { act, cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HttpError } from "../client/http";
import type { JobAct, JobNotes } from "../client/job_notes_wire";
import { button, preparePanel, showPanel } from "../testing/job_panel";
import { jobOf } from "../testing/jobs";

preparePanel();

const RUNNING = jobOf({ id: 7, status: "running", lease_seq: 1, attempts: 1, started_at: "2026-05-25T10:00:00Z" });
const CLEARED = { ...RUNNING, task_type: "clear_data" as const, status: "completed" as const };

function actOf(values: Partial<JobAct>): JobAct {
  const at = "2026-05-25T10:00:00Z";
  return {
    id: 1,
    at,
    who: "ann",
    role: "admin",
    what: "job.submitted",
    rows_deleted: null,
    retried_as: null,
    retry_of: null,
    ...values,
  };
}

const NOTES: JobNotes = {
  acts: [actOf({}), actOf({ id: 2, what: "job.cancelled", who: "ben", role: "operator" })],
  lines: [{ at: "2026-05-25T10:00:01Z", event: "batch", text: "batch 1 committed: 100 records" }],
};

beforeEach(() => vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

/** Unfolds what is told of a job; happy-dom does not tell of it by itself. */
async function unfold(id: number): Promise<void> {
  const details = screen.getByLabelText(`Who started job ${id}, and its log`).closest("details") as HTMLDetailsElement;
  await act(async () => {
    details.open = true;
    fireEvent(details, new Event("toggle"));
  });
}

describe("who and log of a job", () => {
  it("are read when they are unfolded, and while the job goes on again and again", async () => {
    const { notes } = showPanel([RUNNING]);
    notes.mockResolvedValue(NOTES);
    expect(notes).not.toHaveBeenCalled();
    await unfold(7);
    expect(screen.getByText(/Started by ann/)).toBeTruthy();
    expect(screen.getByText(/Stopped by ben/).textContent).toContain("operator");
    expect(screen.getByRole("list", { name: "Log of job 7" }).textContent).toContain("10:00:01batch");
    expect(screen.getByText("batch 1 committed: 100 records").lang).toBe("en");
    await act(async () => vi.advanceTimersByTimeAsync(1_500));
    await act(async () => vi.advanceTimersByTimeAsync(1_500));
    expect(notes).toHaveBeenCalledTimes(3);
  });

  it("of a job that is over are read twice, since its last lines are written a moment later", async () => {
    const { notes } = showPanel([{ ...RUNNING, status: "completed" }]);
    fireEvent.click(screen.getByRole("tab", { name: /Finished/ }));
    await unfold(7);
    for (let step = 0; step < 5; step += 1) await act(async () => vi.advanceTimersByTimeAsync(1_500));
    expect(notes).toHaveBeenCalledTimes(2);
    expect(screen.getByText(/Started by the schedule/)).toBeTruthy();
    expect(screen.getByText(/No log/)).toBeTruthy();
  });

  it("tell what a clear deleted, what was run again, and a word of a later version as it is", async () => {
    const { notes } = showPanel([RUNNING]);
    const acts = [
      actOf({ id: 1, what: "data.cleared", rows_deleted: 13_412 }),
      actOf({ id: 2, what: "job.retried", retried_as: 9 }),
      actOf({ id: 3, retry_of: 5 }),
      actOf({ id: 4, what: "job.blessed" }),
    ];
    notes.mockResolvedValue({ acts, lines: [] });
    await unfold(7);
    const shown = screen.getAllByRole("listitem").map((item) => item.textContent);
    for (const words of [
      "13,412 records deleted, as ann asked",
      "Run again by ann as #9",
      "Started by ann, in place of #5",
      "job.blessed: ann",
    ])
      expect(shown.some((text) => text?.startsWith(words))).toBe(true);
  });

  it("that did not load say why, and what was read stays", async () => {
    const { notes } = showPanel([RUNNING]);
    notes.mockResolvedValueOnce(NOTES);
    await unfold(7);
    notes.mockRejectedValue(new HttpError(503, "backend_unavailable", "PostgreSQL is away"));
    await act(async () => vi.advanceTimersByTimeAsync(1_500));
    expect(screen.getByText(/PostgreSQL is away/)).toBeTruthy();
    expect(screen.getByText(/Started by ann/)).toBeTruthy();
  });

  it("are not for those who are not signed in", () => {
    showPanel([RUNNING], {}, false);
    expect(screen.queryByText("Who and log")).toBeNull();
  });
});

describe("running a clear again", () => {
  it("says how many rows go and asks before anything is sent", async () => {
    vi.useRealTimers();
    const { retry, rowsOf } = showPanel([CLEARED]);
    fireEvent.click(screen.getByRole("tab", { name: /Finished/ }));
    fireEvent.click(button("Run job 7 again"));
    expect(retry).not.toHaveBeenCalled();
    await screen.findByText("13,412 records will be deleted.");
    expect(rowsOf).toHaveBeenCalledWith("celestrak_gp");
    expect(screen.getByText(/Job #7 cleared this source before/)).toBeTruthy();
    fireEvent.click(button("Keep"));
    expect(retry).not.toHaveBeenCalled();
    fireEvent.click(button("Run job 7 again"));
    await screen.findByText("13,412 records will be deleted.");
    fireEvent.click(button("Delete"));
    expect(retry).toHaveBeenCalledWith(7, true);
  });
});
