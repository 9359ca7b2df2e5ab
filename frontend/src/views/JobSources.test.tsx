// @vitest-environment happy-dom
import { act, fireEvent, screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { HttpError } from "../client/http";
import { button, preparePanel, showPanel } from "../testing/job_panel";
import { jobOf, sourceOf } from "../testing/jobs";

preparePanel();

const about = () => fireEvent.click(button("About celestrak_gp"));
const edit = () => {
  about();
  fireEvent.click(button("Schedule of celestrak_gp"));
};
const field = (name: string | RegExp) => screen.getByLabelText(name) as HTMLInputElement;
const type = (name: string | RegExp, value: string) => fireEvent.change(field(name), { target: { value } });
const save = async () => act(async () => fireEvent.click(button("Save")));

describe("sources", () => {
  it("only those that feed a layer take jobs", () => {
    showPanel([]);
    const list = screen.getByRole("list", { name: "Sources" });
    expect(within(list).getByText("celestrak_gp")).toBeTruthy();
    expect(within(list).queryByText("awc_metar")).toBeNull();
  });

  it("collect at once; clearing says how many rows go and asks, and keeping does nothing", async () => {
    const { submit, rowsOf } = showPanel([]);
    fireEvent.click(button("Collect celestrak_gp now"));
    expect(submit).toHaveBeenCalledWith("collect", "celestrak_gp");
    about();
    fireEvent.click(button("Clear all data of celestrak_gp"));
    const dialog = screen.getByRole("alertdialog", { name: "Delete all data of celestrak_gp?" });
    expect(button("Delete").disabled).toBe(true);
    expect(await within(dialog).findByText("13,412 records will be deleted.")).toBeTruthy();
    expect(within(dialog).getByText(/26,824 rows made from them/)).toBeTruthy();
    expect(rowsOf).toHaveBeenCalledWith("celestrak_gp");
    fireEvent.click(button("Keep"));
    expect(submit).toHaveBeenCalledTimes(1);
    expect(screen.queryByRole("alertdialog")).toBeNull();
    fireEvent.click(button("Clear all data of celestrak_gp"));
    await screen.findByText("13,412 records will be deleted.");
    fireEvent.click(button("Delete"));
    expect(submit).toHaveBeenLastCalledWith("clear_data", "celestrak_gp");
  });

  it("rows that could not be counted are not deleted, and can be counted again", async () => {
    const { submit, rowsOf } = showPanel([]);
    rowsOf.mockRejectedValueOnce(new HttpError(503, "backend_unavailable", "PostgreSQL is away"));
    about();
    fireEvent.click(button("Clear all data of celestrak_gp"));
    expect((await screen.findByRole("alert")).textContent).toContain("PostgreSQL is away");
    expect(button("Delete").disabled).toBe(true);
    fireEvent.click(button("Delete"));
    expect(submit).not.toHaveBeenCalled();
    fireEvent.click(button("Count again"));
    await screen.findByText("13,412 records will be deleted.");
    expect(button("Delete").disabled).toBe(false);
  });

  it("a button that cannot act is off and says why", () => {
    showPanel([jobOf({ id: 7, status: "running" })], { sources: [sourceOf({ paused: null })] });
    about();
    const collect = button("Collect celestrak_gp now");
    expect([collect.disabled, collect.title]).toEqual([true, "Job #7 of this source is running"]);
    expect(button("Clear all data of celestrak_gp").disabled).toBe(false);
    const pause = button("Pause celestrak_gp");
    expect([pause.disabled, pause.title]).toEqual([true, "This server cannot hold a source"]);
  });

  it("without a session every button asks to sign in, and sends nothing", () => {
    const { openSignIn, submit, cancel } = showPanel([jobOf({ id: 7, status: "running" })], {}, false);
    fireEvent.click(button("Sign in to work with celestrak_gp"));
    fireEvent.click(button("Sign in to stop job 7"));
    expect(openSignIn).toHaveBeenCalledTimes(2);
    expect([submit.mock.calls.length, cancel.mock.calls.length]).toEqual([0, 0]);
    about();
    expect(screen.queryByRole("switch")).toBeNull();
    expect(screen.queryByRole("button", { name: "Schedule of celestrak_gp" })).toBeNull();
  });

  it("a person who may only look sees no button that would be refused", () => {
    showPanel([jobOf({ id: 7, status: "running" })], {}, true, false);
    about();
    const names = screen.getAllByRole("button").map((each) => each.getAttribute("aria-label") ?? each.textContent);
    expect(names.filter((name) => /sign in|stop|collect|clear|pause|schedule of/i.test(name ?? ""))).toEqual([]);
    expect(screen.queryByRole("switch")).toBeNull();
  });

  it("tell how they run and how they fared", () => {
    const upcoming = ["2026-06-01T04:15:00Z", "2026-06-02T04:15:00Z", "2026-06-03T04:15:00Z"];
    const source = sourceOf({ cron: "15 6 * * *", time_zone: "Europe/Berlin", upcoming, rejects: 1_200 });
    showPanel([], { sources: [{ ...source, last_error_code: "http_503", last_error: "the provider answered 503" }] });
    about();
    expect(screen.getByText("15 6 * * * (Europe/Berlin)")).toBeTruthy();
    const ticks = screen.getAllByRole("listitem").map((item) => item.textContent);
    expect(ticks.filter((text) => /06:15/.test(text ?? ""))).toHaveLength(4); // three ticks, and the row they stand in
    expect(screen.getByText("1,200")).toBeTruthy();
    expect(screen.getByText("the provider answered 503")).toBeTruthy();
  });

  it("are switched and held at once; a change on its way is not sent again", () => {
    const { change, jobs } = showPanel([]);
    const enabled = screen.getByRole("switch", { name: "Run celestrak_gp by its schedule" }) as HTMLButtonElement;
    fireEvent.click(enabled);
    expect(change).toHaveBeenLastCalledWith("celestrak_gp", { enabled: false });
    about();
    fireEvent.click(button("Pause celestrak_gp"));
    expect(change).toHaveBeenLastCalledWith("celestrak_gp", { paused: true });
    act(() => jobs.setState({ sources: [sourceOf({ paused: true })], pending: new Set(["source:celestrak_gp"]) }));
    expect([enabled.disabled, button("Resume celestrak_gp").disabled]).toEqual([true, true]);
    expect(screen.getByText("paused")).toBeTruthy();
  });
});

describe("the schedule of a source", () => {
  it("shows the provider's floor, and sends only what was changed", async () => {
    const { change } = showPanel([]);
    edit();
    expect(screen.getByText("The provider allows every 1 min at most.")).toBeTruthy();
    expect([button("Save").disabled, button("Save").title]).toEqual([true, "Nothing was changed"]);
    expect([field("Every").value, field("Unit").value]).toEqual(["10", "min"]);
    type("Every", "2");
    type("Unit", "h");
    await save();
    expect(change).toHaveBeenCalledWith("celestrak_gp", { interval_s: 7_200 });
    expect(screen.queryByRole("form")).toBeNull();
  });

  it("shows what the server refuses beside its field, until the field is changed", async () => {
    const { change } = showPanel([]);
    change.mockRejectedValueOnce(new HttpError(400, "below_floor", "may be asked every 60 s at most"));
    edit();
    type("Unit", "s");
    await save();
    const message = screen.getByRole("alert");
    expect(message.textContent).toBe("may be asked every 60 s at most");
    expect(field("Every").getAttribute("aria-describedby")?.split(" ")).toContain(message.id);
    expect(field("Every").getAttribute("aria-invalid")).toBe("true");
    type("Every", "90");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("is not sent with a field that holds no number", () => {
    showPanel([]);
    edit();
    type("Every", "often");
    expect(screen.getByRole("alert").textContent).toBe("Give a number above zero");
    expect(button("Save").disabled).toBe(true);
  });

  it("by calendar has a zone and a rule for missed runs", async () => {
    const { change } = showPanel([]);
    edit();
    fireEvent.click(field("by calendar"));
    expect([button("Save").disabled, button("Save").title]).toEqual([true, "Fill in the field first"]);
    type(/^Calendar/, "15 6 * * *");
    type("Time zone", "Asia/Shanghai");
    type("Missed runs", "skip");
    change.mockRejectedValueOnce(new HttpError(400, "bad_time_zone", "there is no zone"));
    await save();
    expect(field("Time zone").getAttribute("aria-invalid")).toBe("true");
    await save();
    const sent = { cron: "15 6 * * *", time_zone: "Asia/Shanghai", misfire: "skip" };
    expect(change).toHaveBeenLastCalledWith("celestrak_gp", sent);
  });

  it("goes back to an interval, and to the default", async () => {
    const { change } = showPanel([], { sources: [sourceOf({ cron: "15 6 * * *", time_zone: "UTC" })] });
    edit();
    fireEvent.click(field("by interval"));
    await save();
    expect(change).toHaveBeenLastCalledWith("celestrak_gp", { cron: null });
    fireEvent.click(button("Schedule of celestrak_gp"));
    await act(async () => fireEvent.click(button("Use the default")));
    const all = { interval_s: null, cron: null, time_zone: null, misfire: null };
    expect(change).toHaveBeenLastCalledWith("celestrak_gp", all);
  });

  it("by calendar is no choice where the server knows intervals alone", () => {
    showPanel([], { sources: [sourceOf({ has_calendar: false })] });
    edit();
    expect(field("by calendar").disabled).toBe(true);
    expect(field("by calendar").closest("label")?.title).toBe("This server runs sources by interval only");
    expect(screen.queryByRole("button", { name: "Use the default" })).toBeNull();
  });
});
