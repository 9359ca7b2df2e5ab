import { describe, expect, it } from "vitest";
import { readDetail, readPatch, readTerminal, type TerminalRow } from "../client/city_wire";
import { detailBody, rowBody } from "../testing/observations";
import { patch } from "../testing/stream";
import { cityFromDetail } from "./city";
import { mergeRows, rowWithCity, rowWithPatch, searchRows } from "./rows";

const rows = (...bodies: object[]): readonly TerminalRow[] => readTerminal({ rows: bodies }).rows;
const row = (more: Record<string, unknown> = {}): TerminalRow => rows(rowBody("shanghai", more))[0] as TerminalRow;

function reading(time: string, temp: number | null, payload: Record<string, unknown> = {}) {
  const read = readPatch({ ...patch("shanghai", 2, 1, { temp, ...payload }), obs_time: time });
  if (!read) throw new Error("no patch");
  return read;
}

/** S175: a patch changes the temperature, the high and the time, and nothing else. */
describe("a patch on a row", () => {
  // S175
  it("moves the three values", () => {
    const before = row();
    const next = rowWithPatch(before, reading("2023-11-15T01:00:00Z", 13));
    expect(next).toEqual({ ...before, temp_c: 13, max_c: 13, observed_ms: Date.parse("2023-11-15T01:00:00Z") });
    expect(rowWithPatch(before, reading("2023-11-15T01:00:00Z", 0)).temp_c).toBe(0);
  });

  it("that is late raises the high but is not the present temperature (F22)", () => {
    const next = rowWithPatch(row(), reading("2023-11-14T21:00:00Z", 19));
    expect(next).toMatchObject({ temp_c: 10, max_c: 19, observed_ms: Date.parse("2023-11-14T22:00:00Z") });
  });

  it("of a new local day begins a new high, and one of yesterday says nothing", () => {
    expect(rowWithPatch(row(), reading("2023-11-15T16:00:00Z", 5))).toMatchObject({
      max_c: 5,
      local_date: "2023-11-16",
    });
    const before = row();
    expect(rowWithPatch(before, reading("2023-11-14T15:00:00Z", 30))).toBe(before);
  });

  it("of a reference station or of runways alone says nothing", () => {
    const before = row();
    expect(rowWithPatch(before, reading("2023-11-15T01:00:00Z", 30, { series_key: "reference" }))).toBe(before);
    const runway_points = [{ runway: "A", temp: 1 }];
    expect(rowWithPatch(before, reading("2023-11-15T01:00:00Z", null, { runway_points }))).toBe(before);
  });
});

it("takes the readings of a detail, unless the list knows a newer one", () => {
  const detail = (obs_time: string | null) => {
    const airport_primary = obs_time && { temp: 7, obs_time, source: "hko", series_key: "settlement" };
    const now = Date.parse("2023-11-15T01:00:00Z");
    return cityFromDetail(readDetail(detailBody("shanghai", 9, { airport_primary })), now);
  };
  const before = row();
  const observed_ms = Date.parse("2023-11-14T22:00:00Z");
  const next = { temp_c: 7, source: "hko", observed_ms, max_c: null, local_date: "2023-11-15" };
  expect(rowWithCity(before, detail("2023-11-14T22:00:00Z"))).toEqual({ ...before, ...next });
  expect(rowWithCity(before, detail("2023-11-14T21:59:00Z"))).toBe(before);
  expect(rowWithCity(before, detail(null))).toBe(before);
});

it("keeps what the stream brought when an older list comes in, and takes a newer one (F27)", () => {
  const live = rowWithPatch(row(), reading("2023-11-15T01:00:00Z", 13));
  expect(mergeRows([live], [row()])[0]).toMatchObject({ temp_c: 13, max_c: 13 });
  const newer = row({ obs_time: "2023-11-15T02:00:00Z", current_temp: 9 });
  expect(mergeRows([live], [newer])[0]).toBe(newer);
  expect(mergeRows([live], [])).toEqual([]);
});

describe("the search", () => {
  const all = rows(
    rowBody("hong kong", {
      display_name: "Hong Kong",
      display_name_zh: "香港",
      icao: "VHHH",
      aliases: ["hk", "HKG"],
      rank: 2,
    }),
    rowBody("sao paulo", { display_name: "São Paulo", airport: "Guarulhos", icao: "SBGR", rank: 3 }),
    rowBody("paris", { display_name: "Paris", airport: "Le Bourget", icao: "LFPB", rank: 1 }),
  );
  const found = (query: string) => searchRows(all, query).map(({ city }) => city);

  it.each([
    ["香港", ["hong kong"]],
    ["vhhh", ["hong kong"]],
    ["HK", ["hong kong"]],
    ["hong-kong", ["hong kong"]],
    ["sao", ["sao paulo"]],
    ["são p", ["sao paulo"]],
    ["guarulhos", ["sao paulo"]],
    ["pa", ["paris", "sao paulo"]],
    ["nowhere", []],
    ["  ", ["hong kong", "sao paulo", "paris"]],
  ])("finds %s", (query, cities) => {
    expect(found(query)).toEqual(cities);
  });
});
