// @vitest-environment happy-dom
import { act, fireEvent, screen } from "@testing-library/react";
import { toast } from "sonner";
import { describe, expect, it, vi } from "vitest";
import type { JobRow } from "../client/earth_types";
import { HttpError } from "../client/http";
import { NO_HISTORY } from "../data/jobs_history";
import { button, preparePanel, showPanel } from "../testing/job_panel";
import { jobOf, sourceOf } from "../testing/jobs";

preparePanel();

const RUNNING = jobOf({
  id: 7,
  status: "running",
  phase: "write",
  lease_seq: 1,
  attempts: 1,
  progress: 0.4,
  records_processed: 4_000,
  records_total: 10_000,
  batches: 4,
  started_at: "2026-05-25T10:00:00Z",
});
const ENDED = { ...RUNNING, phase: null, finished_at: "2026-05-25T10:00:09Z" };
const FAILED = { ...ENDED, status: "failed" as const, error_code: "bad_body", error: "no element sets" };
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();

describe("a running job", () => {
  it("shows its phase, its progress and its records, and can be stopped", () => {
    const { cancel } = showPanel([RUNNING]);
    const bar = screen.getByRole("progressbar", { name: "Progress of job 7" });
    expect(bar).toHaveProperty("value", 0.4);
    expect(bar.getAttribute("aria-valuetext")).toBe("40%, 4,000 of 10,000 records");
    expect(screen.getByText("4,000 of 10,000 records")).toBeTruthy();
    expect(screen.getByText("writing")).toBeTruthy();
    fireEvent.click(button("Stop job 7"));
    expect(cancel).toHaveBeenCalledWith(7);
  });

  it("shows how fast it goes and how long it will take", () => {
    showPanel([RUNNING], { rates: new Map([[7, { at_ms: Date.now(), records: 4_000, per_s: 50 }]]) });
    expect(screen.getByText("50/s")).toBeTruthy();
    expect(screen.getByText("about 2 min left")).toBeTruthy();
  });

  it("without a total has a bar without a value, and says its count", () => {
    showPanel([{ ...RUNNING, progress: 0, records_total: null }]);
    expect(screen.getByRole("progressbar").getAttribute("aria-valuetext")).toBe("4,000 records");
    expect(screen.getByRole("progressbar").hasAttribute("value")).toBe(false);
  });

  it("that stands still says for how long, instead of a rate", () => {
    showPanel([RUNNING], { rates: new Map([[7, { at_ms: Date.now() - 45_000, records: 4_000, per_s: 50 }]]) });
    expect(screen.getByText(/^no new record for 4\d s$/)).toBeTruthy();
    expect(screen.queryByText("50/s")).toBeNull();
  });
});

describe("a job that is stopping", () => {
  it("says since when and what happens after a minute; its button can do nothing more and says why", () => {
    const { cancel } = showPanel([{ ...RUNNING, status: "cancelling", cancel_requested_at: ago(12) }]);
    const stopping = button("Stopping");
    expect([stopping.disabled, stopping.title]).toEqual([true, "The request to stop was sent"]);
    expect(screen.getByText(/Stop requested 1\d s ago\..*After 60\ss the ledger ends the job by itself/)).toBeTruthy();
    fireEvent.click(stopping);
    expect(cancel).not.toHaveBeenCalled();
  });

  it("for more than a minute is ended by the ledger", () => {
    showPanel([{ ...RUNNING, status: "cancelling", cancel_requested_at: ago(70) }]);
    expect(screen.getByText(/The worker does not answer: the ledger ends the job now/)).toBeTruthy();
  });

  it.each([
    [{}, "stopped; 4 batches, 4,000 records kept"],
    [{ batches: 1, records_processed: 1 }, "stopped; 1 batch, 1 record kept"],
    [{ batches: 0 }, "stopped; 4,000 records kept"],
    [{ batches: 0, records_processed: 0 }, "stopped before anything was committed"],
    [{ task_type: "clear_data" as const }, "stopped; 4,000 records deleted in 4 batches"],
  ])("tells at its end what is left of it: %j", (change, words) => {
    showPanel([{ ...ENDED, status: "cancelled", message: "stopped; committed batches are kept", ...change }]);
    expect(screen.getByText(words)).toBeTruthy();
    expect(screen.queryByText("stopped; committed batches are kept")).toBeNull();
  });
});

describe("a failed job", () => {
  it("shows code, text and attempts, and can be run again", () => {
    const { retry } = showPanel([{ ...FAILED, attempts: 3 }]);
    expect(screen.getByText("bad_body")).toBeTruthy();
    expect(screen.getByText(/no element sets/)).toBeTruthy();
    expect(screen.getByText("3 of 3 attempts used")).toBeTruthy();
    fireEvent.click(button("Run job 7 again"));
    expect(retry).toHaveBeenCalledWith(7, undefined);
  });

  it("shows the record at fault as it came, to be copied", async () => {
    const copy = vi.spyOn(navigator.clipboard, "writeText").mockResolvedValue();
    showPanel([{ ...FAILED, sample: "<html>\n  busy" }]);
    const sample = screen.getByText(/<html>/);
    expect([sample.tagName, sample.textContent]).toEqual(["PRE", "<html>\n  busy"]);
    fireEvent.click(screen.getByText("Copy"));
    expect(copy).toHaveBeenCalledWith("<html>\n  busy");
    expect(await screen.findByText("Copied")).toBeTruthy();
  });

  it("that waits for another try tells when and why", () => {
    showPanel([{ ...FAILED, status: "queued", finished_at: null, scheduled_at: ago(-100) }]);
    expect(screen.getByText("1 of 3 attempts used")).toBeTruthy();
    expect(screen.getByText(/^tries again in (99|100) s$/)).toBeTruthy();
    expect(screen.getByText("bad_body")).toBeTruthy();
  });

  it("that was run again names the job, and has no second button", () => {
    showPanel([{ ...FAILED, retried_as: 12 }]);
    expect(screen.getByText("retried as #12")).toBeTruthy();
    expect(screen.queryByRole("button", { name: "Run job 7 again" })).toBeNull();
  });
});

describe("a completed job", () => {
  it("tells how many records were refused, with the first of them", () => {
    showPanel([{ ...ENDED, status: "completed", rejects: 3, sample: '{"NORAD_CAT_ID":"x"}' }]);
    expect(screen.getByText("3 records refused")).toBeTruthy();
    expect(screen.getByText('{"NORAD_CAT_ID":"x"}')).toBeTruthy();
    expect(button("Run job 7 again").disabled).toBe(false);
  });
});

describe("a queued job", () => {
  it("of a held source says what it waits for", () => {
    showPanel([jobOf({ id: 8 })], { sources: [sourceOf({ paused: true })] });
    expect(screen.getByText("source is paused")).toBeTruthy();
  });
});

describe("actions", () => {
  it("tell their outcome: a new job, or the one that waits already", async () => {
    const success = vi.spyOn(toast, "success");
    const info = vi.spyOn(toast, "info");
    const { retry } = showPanel([FAILED]);
    await act(async () => fireEvent.click(button("Run job 7 again")));
    expect(success).toHaveBeenLastCalledWith("Job #9 is queued", expect.anything());
    retry.mockResolvedValueOnce({ task_id: 8, created: false });
    await act(async () => fireEvent.click(button("Run job 7 again")));
    expect(info).toHaveBeenLastCalledWith("Already queued as job #8", expect.anything());
  });

  it("that failed say what the server said; an ended session leads to the dialog", async () => {
    const error = vi.spyOn(toast, "error");
    const { cancel, openSignIn } = showPanel([RUNNING]);
    cancel.mockRejectedValueOnce(new HttpError(409, "job_final", "job 7 is completed"));
    await act(async () => fireEvent.click(button("Stop job 7")));
    const detail = { id: "jobs.cancel:7", description: "job 7 is completed" };
    expect(error).toHaveBeenLastCalledWith("That did not work", detail);
    cancel.mockRejectedValueOnce(new HttpError(401, "unauthorised", "sign in"));
    await act(async () => fireEvent.click(button("Stop job 7")));
    expect(openSignIn).toHaveBeenCalledTimes(1);
  });

  it("on their way are off and say so", () => {
    showPanel([FAILED], { pending: new Set(["retry:7"]) });
    const again = button("Run job 7 again");
    expect([again.disabled, again.title]).toEqual([true, "Already sent"]);
  });
});

describe("the lists", () => {
  const three = [RUNNING, jobOf({ id: 8 }), { ...ENDED, id: 9, status: "completed" as const }];
  const tab = (name: RegExp) => screen.getByRole("tab", { name });

  it("open with what runs; each tab tells how many it has", () => {
    showPanel(three);
    expect(screen.getAllByRole("tab").map((one) => one.textContent)).toEqual(["Running 1", "Queued 1", "Finished 1"]);
    expect(screen.getByText("#7")).toBeTruthy();
    fireEvent.click(tab(/Queued/));
    expect(screen.queryByText("#7")).toBeNull();
    fireEvent.click(button("Cancel job 8"));
  });

  it("stay on their tab when its last job ends", () => {
    const { jobs } = showPanel(three);
    act(() => jobs.setState({ rows: new Map([[9, three[2] as JobRow]]) }));
    expect(tab(/Running/).getAttribute("aria-selected")).toBe("true");
    expect(screen.getByText("Nothing is running.")).toBeTruthy();
  });

  it("are walked with the arrow keys, and one of them is in the order of the Tab key", () => {
    showPanel(three);
    fireEvent.keyDown(tab(/Running/), { key: "ArrowLeft" });
    expect(document.activeElement).toBe(tab(/Finished/));
    fireEvent.keyDown(tab(/Finished/), { key: "Home" });
    fireEvent.keyDown(tab(/Running/), { key: "ArrowRight" });
    expect(screen.getAllByRole("tab").map((one) => one.tabIndex)).toEqual([-1, 0, -1]);
    expect(screen.getByRole("tabpanel", { name: /Queued/ })).toBeTruthy();
  });

  it("of finished jobs are read page by page, filtered by how they ended", () => {
    const dead = { ...FAILED, id: 10 };
    const { readMore } = showPanel([dead, { ...FAILED, id: 11, retried_as: 12 }, { ...ENDED, status: "completed" }]);
    expect(readMore).toHaveBeenCalledWith("all");
    fireEvent.change(screen.getByLabelText("Show"), { target: { value: "dead" } });
    expect([screen.queryByText("#10"), screen.queryByText("#11"), screen.queryByText("#7")].map(Boolean)).toEqual([
      true,
      false,
      false,
    ]);
    fireEvent.click(button("Show more"));
    expect(readMore).toHaveBeenLastCalledWith("dead");
  });

  it("say how many there are at least while not all are known, and have no button for more once all are", () => {
    const end = { read: 1, next: null };
    const { jobs } = showPanel([{ ...ENDED, status: "completed" }], { more: true });
    expect(tab(/Finished/).textContent).toBe("Finished 1+");
    const pages = { completed: end, failed: end, cancelled: end };
    act(() => jobs.setState({ history: { ...NO_HISTORY, pages } }));
    expect(tab(/Finished/).textContent).toBe("Finished 1");
    expect(screen.queryByRole("button", { name: "Show more" })).toBeNull();
  });

  it("of more jobs than the page is sent show the ledger's own count", () => {
    const many = Array.from({ length: 50 }, (_, n) => jobOf({ id: n + 1 }));
    const { jobs } = showPanel(many);
    expect(tab(/Queued/).textContent).toBe("Queued 50+");
    act(() => jobs.setState({ counts: { running: 3, queued: 1_234, dead: 0 } }));
    expect(tab(/Queued/).textContent).toBe("Queued 1,234");
    expect(tab(/Running/).textContent).toBe("Running 0");
    act(() => jobs.setState({ counts: { running: 3, queued: 10_000, dead: 0 } }));
    expect(tab(/Queued/).textContent).toBe("Queued 10,000+");
  });

  it("tell of failures that nobody looked after, and lead to them", () => {
    const { readMore } = showPanel([{ ...ENDED, status: "completed" }], {
      counts: { running: 0, queued: 0, dead: 1_234 },
    });
    fireEvent.click(button("1,234 failed jobs were not run again"));
    expect((screen.getByLabelText("Show") as HTMLSelectElement).value).toBe("dead");
    expect(readMore).toHaveBeenLastCalledWith("dead");
    expect(screen.queryByRole("button", { name: /were not run again/ })).toBeNull();
  });

  it("that did not load is an error and not an emptiness", () => {
    showPanel([], { phase: "failed", error: "unreachable", sources: [] });
    expect(screen.getByText(/Sources and jobs did not load \(the server does not answer\)/)).toBeTruthy();
    expect(screen.queryByText("Nothing is running.")).toBeNull();
  });
});

describe("what is told to those who do not see it", () => {
  const told = () => document.querySelector("[data-news]")?.textContent;
  const turn = (jobs: ReturnType<typeof showPanel>["jobs"], row: JobRow) =>
    act(() => jobs.setState({ rows: new Map([...jobs.getState().rows, [row.id, row]]) }));

  it("are the turns of one's own jobs, and every failure", () => {
    const { jobs } = showPanel([RUNNING, jobOf({ id: 8, status: "running" })], { mine: new Set([7]) });
    turn(jobs, { ...RUNNING, status: "cancelling", cancel_requested_at: ago(1) });
    expect(told()).toBe("Job #7: stopping");
    turn(jobs, { ...ENDED, status: "cancelled" });
    expect(told()).toBe("Job #7: stopped; 4 batches, 4,000 records kept");
    turn(jobs, jobOf({ id: 8, status: "failed", error_code: "transient" }));
    expect(told()).toBe("Job #8: failed, the provider does not answer");
  });

  it("are not the turns of the schedule's jobs, nor what was there before", () => {
    const { jobs } = showPanel([FAILED, jobOf({ id: 8, status: "running" })]);
    turn(jobs, jobOf({ id: 8, status: "completed" }));
    expect(told()).toBe("");
  });
});
