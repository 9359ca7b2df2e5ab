/** The draft of a schedule being edited, its changes, and the field that a refusal concerns. Pure. */
import type { Misfire, SourceChange, SourceInfo } from "../client/earth_types";

export interface ScheduleDraft {
  kind: "interval" | "cron";
  /** As typed; null while the field holds no number above zero. */
  interval_s: number | null;
  cron: string;
  time_zone: string;
  misfire: Misfire;
}

export function draftOf(source: SourceInfo): ScheduleDraft {
  return {
    kind: source.cron === null ? "interval" : "cron",
    interval_s: source.interval_s,
    cron: source.cron ?? "",
    time_zone: source.time_zone ?? "UTC",
    misfire: source.misfire ?? "once",
  };
}

function intervalChange(held: ScheduleDraft, { interval_s }: ScheduleDraft): SourceChange | null {
  if (interval_s === null) return null;
  return {
    ...(held.kind === "cron" ? { cron: null } : {}),
    ...(interval_s === held.interval_s ? {} : { interval_s }),
  };
}

function calendarChange(held: ScheduleDraft, draft: ScheduleDraft): SourceChange | null {
  const cron = draft.cron.trim();
  const time_zone = draft.time_zone.trim();
  if (cron === "" || time_zone === "") return null;
  return {
    ...(held.kind === "cron" && cron === held.cron ? {} : { cron }),
    ...(held.kind === "cron" && time_zone === held.time_zone ? {} : { time_zone }),
  };
}

/** Only what differs; null when the draft cannot be sent yet. An interval takes the calendar's place and back. */
export function changeOf(source: SourceInfo, draft: ScheduleDraft): SourceChange | null {
  const held = draftOf(source);
  const change = draft.kind === "interval" ? intervalChange(held, draft) : calendarChange(held, draft);
  if (change === null || draft.misfire === held.misfire) return change;
  return { ...change, misfire: draft.misfire };
}

export type ScheduleField = "interval_s" | "cron" | "time_zone" | "misfire";

const FIELDS: Readonly<Record<string, ScheduleField>> = {
  bad_interval: "interval_s",
  bad_cron: "cron",
  bad_time_zone: "time_zone",
  bad_misfire: "misfire",
};

/** The field beside which a refusal belongs; null for the form as a whole. A floor holds for both kinds. */
export function fieldOf(code: string, detail: string, kind: ScheduleDraft["kind"]): ScheduleField | null {
  if (code === "below_floor") return kind === "cron" ? "cron" : "interval_s";
  const named = (["interval_s", "cron", "time_zone", "misfire"] as const).find((name) => detail.startsWith(`${name}:`));
  return FIELDS[code] ?? named ?? null;
}
