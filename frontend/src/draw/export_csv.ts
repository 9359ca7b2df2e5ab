/** The readings of a chart as a table: one row a time, one column a curve, in the unit and the zone that are shown. */
import type { Series } from "../data/series";
import { zoneOffset_ms } from "../data/zone";
import { shown, UNIT_LETTER, type Unit } from "./unit";

export interface Exported {
  /** Of the curves that are shown. */
  series: readonly Series[];
  labels: readonly string[];
  window: readonly [from_ms: number, to_ms: number];
  zone: string;
  unit: Unit;
}

/** Spreadsheets read the file as UTF-8 only with this before it. */
const BYTE_ORDER_MARK = "\ufeff";

/** ISO 8601 with the zone's offset at that instant. */
export function localIso(zone: string, instant_ms: number): string {
  const offset_min = Math.round(zoneOffset_ms(zone, instant_ms) / 60_000);
  const wall = new Date(instant_ms + offset_min * 60_000).toISOString().slice(0, 19);
  const [hours, minutes] = [Math.floor(Math.abs(offset_min) / 60), Math.abs(offset_min) % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return `${wall}${offset_min < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
}

/** A cell that a spreadsheet neither splits nor runs as a formula. */
function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csvText({ series, labels, window: [from_ms, to_ms], zone, unit }: Exported): string {
  const rows = new Map<number, string[]>();
  series.forEach((one, column) => {
    one.x.forEach((time, i) => {
      if (time < from_ms || time >= to_ms) return;
      const row = rows.get(time) ?? new Array<string>(series.length).fill("");
      row[column] = String(Math.round(shown(one.y[i] as number, unit) * 100) / 100 || 0);
      rows.set(time, row);
    });
  });
  const head = ["time_utc", "time_local", ...labels.map((label) => `${label} (°${UNIT_LETTER[unit]})`)];
  const times = [...rows.keys()].sort((a, b) => a - b);
  const body = times.map((time) => [
    new Date(time).toISOString().replace(".000Z", "Z"),
    localIso(zone, time),
    ...(rows.get(time) ?? []),
  ]);
  return `${BYTE_ORDER_MARK}${[head.map(cell), ...body].map((row) => row.join(",")).join("\r\n")}\r\n`;
}
