/** The list of all cities: from the snapshot, with what patches may change and nothing else (temperature, high, time). */
import type { CityPatch, TerminalRow } from "../client/city_wire";
import { type CityState, isReference } from "./city";
import { localDate } from "./zone";

function sameDay(row: TerminalRow, date: string): boolean {
  return row.local_date === null || row.local_date === date;
}

/** The row after one patch; the same value if the patch says nothing about it. */
export function rowWithPatch(row: TerminalRow, patch: CityPatch): TerminalRow {
  if (patch.temp_c === null || isReference(patch.series_key)) return row;
  const date = patch.local_date ?? localDate(row.timezone, patch.observed_ms);
  if (row.local_date !== null && date < row.local_date) return row;
  const known = sameDay(row, date) ? row.max_c : null;
  const seen = [known, patch.temp_c, patch.max_so_far_c].filter((value): value is number => value !== null);
  const newer = row.observed_ms === null || patch.observed_ms >= row.observed_ms;
  return {
    ...row,
    local_date: date,
    max_c: Math.max(...seen),
    ...(newer ? { temp_c: patch.temp_c, observed_ms: patch.observed_ms, source: patch.source } : {}),
  };
}

/** The row with the readings of a detail, so that the list never lags behind the chart beside it. */
export function rowWithCity(row: TerminalRow, { headline, high, local_date }: CityState): TerminalRow {
  if (!headline || headline.observed_ms < (row.observed_ms ?? 0)) return row;
  const { temp_c, observed_ms, source } = headline;
  return { ...row, temp_c, observed_ms, source, local_date, max_c: high?.temp_c ?? null };
}

/** Rows of a newer snapshot; a reading the stream brought meanwhile stays if it is newer than the snapshot's. */
export function mergeRows(known: readonly TerminalRow[], fetched: readonly TerminalRow[]): readonly TerminalRow[] {
  const before = new Map(known.map((row) => [row.city, row]));
  return fetched.map((row) => {
    const old = before.get(row.city);
    if (!old || (old.observed_ms ?? 0) <= (row.observed_ms ?? 0)) return row;
    const { temp_c, max_c, observed_ms, source, local_date } = old;
    return { ...row, temp_c, max_c, observed_ms, source, local_date };
  });
}

export type Aliases = Readonly<Record<string, readonly string[]>>;

/** Rows whose city, airport, code or other name begins with, or holds, the words. */
export function searchRows(rows: readonly TerminalRow[], query: string, more: Aliases = {}): readonly TerminalRow[] {
  const wanted = plain(query);
  if (wanted === "") return rows;
  const scored = rows
    .map((row) => ({ row, score: score(row, wanted, more[row.city] ?? []) }))
    .filter(({ score }) => score > 0);
  return scored.sort((a, b) => b.score - a.score || a.row.rank - b.row.rank).map(({ row }) => row);
}

function plain(text: string): string {
  const bare = text.normalize("NFKD").replaceAll(/\p{M}/gu, "");
  return bare
    .toLowerCase()
    .replaceAll(/[\s_-]+/g, " ")
    .trim();
}

function score(row: TerminalRow, wanted: string, more: readonly string[]): number {
  const names = [row.icao, ...row.aliases, ...more, row.city, row.display_name, row.display_name_zh, row.airport];
  const texts = names.filter((name): name is string => Boolean(name)).map(plain);
  if (texts.some((text) => text === wanted)) return 3;
  if (texts.some((text) => text.startsWith(wanted))) return 2;
  return texts.some((text) => text.includes(wanted)) ? 1 : 0;
}
