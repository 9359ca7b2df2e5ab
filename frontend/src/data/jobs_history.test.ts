import { describe, expect, it } from "vitest";
import { jobOf } from "../testing/jobs";
import { finishedRows, type History, NO_HISTORY, PAGE_ROWS, PAGES_MAX, statusesBehind } from "./jobs_history";

const at = (read: number, next: number | null | undefined) => ({ read, next });
const history = (pages: Partial<History["pages"]>): History => ({
  ...NO_HISTORY,
  pages: { ...NO_HISTORY.pages, ...pages },
});

describe("finished jobs in pages", () => {
  it("the next page of all is that of every state behind; a state at its end is not asked", () => {
    expect(statusesBehind(NO_HISTORY, "all")).toEqual(["completed", "failed", "cancelled"]);
    const some = history({ completed: at(1, 40), failed: at(2, 10), cancelled: at(1, null) });
    expect(statusesBehind(some, "all")).toEqual(["completed"]);
    expect(statusesBehind(some, "dead")).toEqual(["failed"]);
    expect(statusesBehind(some, "cancelled")).toEqual([]);
    expect(statusesBehind(history({ failed: at(PAGES_MAX, 1) }), "failed")).toEqual([]);
  });

  it("no row is shown that an unread one might come before", () => {
    const rows = Array.from({ length: 3 * PAGE_ROWS }, (_, n) => jobOf({ id: n + 1, status: "completed" }));
    const one = history({ completed: at(3, 5), failed: at(1, 5), cancelled: at(0, null) });
    expect(finishedRows(rows, one, "all")).toHaveLength(PAGE_ROWS);
    expect(finishedRows(rows, one, "completed")).toHaveLength(3 * PAGE_ROWS);
    expect(finishedRows(rows, one, "failed")).toHaveLength(0);
  });

  it("dead is what failed and was not run again", () => {
    const rows = [
      jobOf({ id: 1, status: "failed" }),
      jobOf({ id: 2, status: "failed", retried_as: 9 }),
      jobOf({ id: 3, status: "cancelled" }),
    ];
    expect(finishedRows(rows, NO_HISTORY, "dead").map((row) => row.id)).toEqual([1]);
  });
});
