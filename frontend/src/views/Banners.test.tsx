// @vitest-environment happy-dom
import { act, cleanup, render, screen } from "@testing-library/react";
import i18next from "i18next";
import { describe, expect, it } from "vitest";
import { createHttp } from "../client/http";
import { createSession } from "../data/session";
import { jsonResponse } from "../testing/clock";
import { preparePanel } from "../testing/job_panel";
import { Banners } from "./Banners";
import { SessionContext } from "./use_session";

preparePanel();

async function show(disk: unknown, language = "en") {
  await act(async () => i18next.changeLanguage(language));
  const http = createHttp(async () => jsonResponse({ signed_in: true, halves: ["earth"], disk }));
  const session = createSession({ http, setTimer: () => null, clearTimer: () => undefined });
  await session.refresh();
  render(
    <SessionContext.Provider value={{ session, openSignIn: () => undefined }}>
      <Banners />
    </SessionContext.Provider>,
  );
}

describe("room on the disk", () => {
  it("is a matter for the page only when it runs short, in its own language", async () => {
    await show("near");
    expect(screen.getByRole("status").textContent).toContain("Disk space runs short");
    cleanup();
    await show("over", "zh");
    expect(screen.getByRole("status").textContent).toContain("磁盘用量已超出预算");
    for (const nothing of [null, undefined, "else"]) {
      cleanup();
      await show(nothing);
      expect(screen.queryByRole("status")).toBeNull();
    }
  });
});
