import { describe, expect, it } from "vitest";
import { jsonResponse } from "../testing/clock";
import { createHttp } from "./http";
import { fetchJobNotes, fetchSourceRows } from "./job_notes_wire";
import { retryJob } from "./job_wire";

function answering(answers: Record<string, unknown>) {
  const asked: string[] = [];
  const http = createHttp(async (path, init) => {
    asked.push(`${init?.method} ${path} ${init?.body ?? ""}`.trim());
    return jsonResponse(answers[path] ?? null);
  });
  return { http, asked };
}

describe("what is told beside a job", () => {
  it("comes oldest first, without what cannot be read", async () => {
    const act = {
      id: 2,
      at: "2026-05-25T10:00:00Z",
      who: "ann",
      role: "admin",
      what: "job.retried",
      rows_deleted: null,
    };
    const { http } = answering({
      "/api/v1/jobs/7/acts": {
        items: [{ ...act, details: { as: 9 } }, { ...act, id: 1, details: "odd" }, { id: 0 }, 7],
      },
      "/api/v1/jobs/7/log": { items: [{ at: "2026-05-25T10:00:01Z", event: "batch", text: 7 }, null, { at: "x" }] },
    });
    const { acts, lines } = await fetchJobNotes(http, 7);
    expect(acts.map(({ id, retried_as }) => [id, retried_as])).toEqual([
      [1, null],
      [2, 9],
    ]);
    expect(lines).toEqual([{ at: "2026-05-25T10:00:01Z", event: "batch", text: "" }]);
  });

  it("rows of a source are counted over all tables", async () => {
    const { http } = answering({
      "/api/v1/sources/a%2Fb/rows": { facts: 3, derived: { orbits: 2, objects: 3, odd: "x" } },
    });
    expect(await fetchSourceRows(http, "a/b")).toEqual({ facts: 3, derived: 5 });
    expect(await fetchSourceRows(http, "none")).toEqual({ facts: 0, derived: 0 });
  });

  it("a retry says that deleting is meant only where a person said so", async () => {
    const { http, asked } = answering({});
    await retryJob(http, 7);
    await retryJob(http, 8, true);
    expect(asked).toEqual(["POST /api/v1/jobs/7/retry", 'POST /api/v1/jobs/8/retry {"confirm":true}']);
  });
});
