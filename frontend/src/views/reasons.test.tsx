// @vitest-environment happy-dom
import { fireEvent, screen } from "@testing-library/react";
import i18next from "i18next";
import { describe, expect, it, vi } from "vitest";
import { HttpError, NetworkError } from "../client/http";
import { button, preparePanel, showPanel } from "../testing/job_panel";
import { jobOf, sourceOf } from "../testing/jobs";
import { codeText, reasonText } from "./reasons";

vi.mock("sonner", () => ({ toast: { error: vi.fn(), warning: vi.fn(), success: vi.fn(), info: vi.fn() } }));

preparePanel("zh");

describe("a refusal on the Chinese page", () => {
  it("is said by its code, and in the server's words where the code is of a later version", () => {
    expect(reasonText(new HttpError(409, "job_final", "job 7 is completed already"))).toBe("任务已经结束");
    expect(reasonText(new HttpError(409, "job_frozen", "job 7 is frozen"))).toBe("job 7 is frozen");
    expect(reasonText(new HttpError(502, "http_502", ""))).toBe("服务器返回错误 502");
    expect(reasonText(new NetworkError("Failed to fetch"))).toBe("服务器没有响应");
    expect(reasonText(new TypeError("x is not a function"))).toBe("发生错误");
  });

  it("of a schedule stands beside its field, with what is allowed", async () => {
    const { change } = showPanel([], { sources: [sourceOf({ floor_s: 60 })] });
    change.mockRejectedValueOnce(new HttpError(400, "below_floor", "celestrak_gp may be asked every 60 s at most"));
    fireEvent.click(button("关于 celestrak_gp"));
    fireEvent.click(button("celestrak_gp 的定时"));
    fireEvent.change(screen.getByLabelText("间隔"), { target: { value: "1" } });
    fireEvent.change(screen.getByLabelText("单位"), { target: { value: "s" } });
    fireEvent.click(button("保存"));
    expect((await screen.findByRole("alert")).textContent).toBe("数据提供方不允许这么频繁");
    expect(screen.getByText(/最多允许每 1 分钟一次/)).toBeTruthy();
    expect(screen.getByLabelText("间隔").getAttribute("aria-invalid")).toBe("true");
  });

  it("of a run keeps the code to look up and the worker's words, marked as English", () => {
    showPanel([jobOf({ id: 7, status: "failed", error_code: "bad_body", error: "no element sets" })]);
    expect(screen.getByText("bad_body").tagName).toBe("CODE");
    expect(screen.getByText("无法读取数据提供方的应答")).toBeTruthy();
    expect(screen.getByText("no element sets").getAttribute("lang")).toBe("en");
  });
});

it("on the English page the server's own words say more than the code", async () => {
  await i18next.changeLanguage("en");
  expect(reasonText(new HttpError(409, "job_final", "job 7 is completed already"))).toBe("job 7 is completed already");
  expect(codeText("unreachable")).toBe("the server does not answer");
  expect(codeText("of_a_later_version")).toBe("of_a_later_version");
});
