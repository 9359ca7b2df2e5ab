import { describe, expect, it } from "vitest";
import { type CityPatch, readDetail, readPatch } from "../client/city_wire";
import { detailBody } from "../testing/observations";
import { patch } from "../testing/stream";
import { applyPatch, type CityState, cityFromDetail, rollDay } from "./city";
import { inOrder, isVisible, visibleByDefault } from "./visibility";

const at = (text: string) => Date.parse(text);

function cityIn(timezone: string, now: string, more: Record<string, unknown> = {}): CityState {
  const local_date = undefined;
  return cityFromDetail(readDetail(detailBody("x", 1, { timezone, local_date, ...more })), at(now));
}

function reading(time: string, temp: number | null, more: Record<string, unknown> = {}): CityPatch {
  const { source = "awc_metar", ...payload } = more;
  const read = readPatch({ ...patch("x", 2, 1, { temp, ...payload }), obs_time: time, source });
  if (!read) throw new Error("no patch");
  return read;
}

const patched = (state: CityState, ...patches: CityPatch[]): CityState =>
  patches.reduce((city, each) => applyPatch(city, each, each.observed_ms), state);

/** frontend.md row 58, F24: the high is of the city's local day, also where that day is not 24 hours long. */
describe.each([
  ["Asia/Shanghai", "2026-05-25T15:59:00Z", "2026-05-25T16:00:00Z"],
  ["America/New_York", "2026-03-08T04:59:00Z", "2026-03-08T05:00:00Z"],
  ["America/New_York", "2026-11-02T04:59:00Z", "2026-11-02T05:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-05T13:29:00Z", "2026-04-05T13:30:00Z"],
  ["Pacific/Auckland", "2026-09-26T11:59:00Z", "2026-09-26T12:00:00Z"],
  ["Asia/Kathmandu", "2026-05-25T18:14:00Z", "2026-05-25T18:15:00Z"],
])("the high in %s at midnight", (zone, last, first) => {
  it("ends with the day: the minute before counts for the old one, midnight for the new one", () => {
    const before = patched(cityIn(zone, last), reading(last, 30));
    expect(before.high).toMatchObject({ temp_c: 30, observed_ms: at(last) });
    const next = patched(before, reading(first, 12));
    expect(next.high).toMatchObject({ temp_c: 12, observed_ms: at(first) });
    expect(next.local_date > before.local_date).toBe(true);
  });

  it("begins anew by the clock alone, and a late reading of yesterday does not come back into it", () => {
    const before = patched(cityIn(zone, last), reading(last, 30));
    const rolled = rollDay(before, at(first));
    expect(rolled.high).toBeNull();
    expect(rolled.headline?.temp_c).toBe(30);
    const late = applyPatch(rolled, reading(last, 31, { source: "other" }), at(first));
    expect(late.high).toBeNull();
    expect(rollDay(rolled, at(first))).toBe(rolled);
  });
});

describe("the high of the day", () => {
  const start = cityIn("Asia/Shanghai", "2026-05-26T06:00:00Z");

  it("takes a maximum that a station reports, also above every reading", () => {
    const told = patched(start, reading("2026-05-26T06:00:00Z", 30, { max_so_far: 31.5 }));
    expect(told.high).toMatchObject({ temp_c: 31.5, observed_ms: at("2026-05-26T06:00:00Z") });
    const lower = patched(told, reading("2026-05-26T06:01:00Z", 29, { max_so_far: 31.5 }));
    expect(lower.high?.observed_ms).toBe(at("2026-05-26T06:00:00Z"));
  });

  it("goes down again when the reading that made it is corrected", () => {
    const wrong = patched(start, reading("2026-05-26T06:00:00Z", 20), reading("2026-05-26T06:30:00Z", 99));
    expect(patched(wrong, reading("2026-05-26T06:30:00Z", 21)).high?.temp_c).toBe(21);
  });

  it("goes down again when the report that made it is corrected", () => {
    const wrong = patched(start, reading("2026-05-26T06:00:00Z", 20, { max_so_far: 99 }));
    const right = patched(wrong, reading("2026-05-26T06:00:00Z", 21, { max_so_far: 25 }));
    expect([right.high?.temp_c, right.headline?.temp_c]).toEqual([25, 21]);
  });

  it("is of today alone: a report of yesterday neither counts nor clears what was reported, and midnight does", () => {
    const told = patched(start, reading("2026-05-26T06:00:00Z", 30, { max_so_far: 31.5 }));
    const late = applyPatch(told, reading("2026-05-25T15:00:00Z", 33, { max_so_far: 40 }), at("2026-05-26T06:01:00Z"));
    expect([late.high?.temp_c, late.local_date]).toEqual([31.5, "2026-05-26"]);
    expect(rollDay(late, at("2026-05-26T16:00:00Z")).high).toBeNull();
    expect(patched(late, reading("2026-05-26T16:00:00Z", 12)).high?.temp_c).toBe(12);
  });

  it("believes the server about the day that a report is of", () => {
    const report = { max_so_far: 40, city_local_date: "2026-05-25" };
    expect(patched(start, reading("2026-05-26T06:00:00Z", 20, report)).high?.temp_c).toBe(20);
    expect(patched(start, reading("2026-05-26T06:00:00Z", 20, { max_so_far: 40 })).high?.temp_c).toBe(40);
  });

  it("is the first of equals, whichever came in first", () => {
    const a = reading("2026-05-26T05:00:00Z", 25);
    const b = reading("2026-05-26T06:00:00Z", 25, { source: "hko" });
    for (const order of [
      [a, b],
      [b, a],
    ])
      expect(patched(start, ...order).high?.observed_ms).toBe(a.observed_ms);
  });

  it("is none of a reference station or of a runway's own sensors", () => {
    const beside = patched(start, reading("2026-05-26T06:00:00Z", 40, { series_key: "reference", max_so_far: 41 }));
    expect([beside.high, beside.headline]).toEqual([null, null]);
    const runway_points = [{ runway: "17L/35R", temp: 42, is_settlement: true }];
    const plates = patched(start, reading("2026-05-26T06:00:00Z", null, { runway_points }));
    expect([plates.high, plates.headline]).toEqual([null, null]);
    expect(plates.series).toMatchObject([{ id: "runway:17L/35R", is_settlement: true, y: [42] }]);
  });

  it("comes from the snapshot when the curve does not show it", () => {
    const day_high = { temp: 33, obs_time: "2026-05-26T05:10:00Z" };
    expect(cityIn("Asia/Shanghai", "2026-05-26T06:00:00Z", { day_high }).high).toMatchObject({
      temp_c: 33,
      observed_ms: at(day_high.obs_time),
    });
  });
});

it("keeps what one patch told of a curve when the next does not say it", () => {
  const runway_points = [{ runway: "17L/35R", temp: 20, is_settlement: true }];
  const first = reading("2026-05-26T06:00:00Z", 20, { runway_points, source_cadence_sec: 300 });
  const second = reading("2026-05-26T06:05:00Z", 21, { runway_points: [{ runway: "17L/35R", temp: 21 }] });
  const both = patched(cityIn("Asia/Shanghai", "2026-05-26T06:00:00Z"), first, second);
  expect(both.series).toMatchObject([
    { id: "metar/awc_metar", cadence_s: 300, y: [20, 21] },
    { id: "runway:17L/35R", cadence_s: 300, y: [20, 21], is_settlement: true },
  ]);
});

it("changes nothing of the value it was given", () => {
  const start = cityIn("Asia/Shanghai", "2026-05-26T06:00:00Z");
  const kept = structuredClone(start);
  patched(start, reading("2026-05-26T06:00:00Z", 20, { runway_points: [{ runway: "A", temp: 1 }] }));
  expect(start).toEqual(kept);
});

/** S204: which curves are shown. */
describe("curves shown by default", () => {
  const state = patched(
    cityIn("Asia/Hong_Kong", "2026-05-26T06:00:00Z"),
    reading("2026-05-26T06:00:00Z", 28),
    reading("2026-05-26T06:00:00Z", 27, { source: "hko", series_key: "settlement" }),
    reading("2026-05-26T06:00:00Z", null, { source: "amos", runway_points: [{ runway: "07L", temp: 29 }] }),
  );
  const find = (key: string) => {
    const found = state.series.find(({ series_key }) => series_key === key);
    if (!found) throw new Error(key);
    return found;
  };

  it("leave METAR out where another station settles the day, and only there", () => {
    expect(visibleByDefault(find("metar"), state.series)).toBe(false);
    expect(visibleByDefault(find("settlement"), state.series)).toBe(true);
    expect(visibleByDefault(find("metar"), [find("metar")])).toBe(true);
  });

  it("leave the runways' summary out where the deciding runway has a curve of its own", () => {
    const summary = { source: "amos", series_key: "runway" };
    const both = (is_settlement: boolean) =>
      patched(
        cityIn("Asia/Seoul", "2026-05-26T06:00:00Z"),
        reading("2026-05-26T06:00:00Z", 31, {
          ...summary,
          runway_points: [{ runway: "15R/33L", temp: 31, is_settlement }],
        }),
      ).series;
    const shown = (all: CityState["series"]) => all.filter((one) => visibleByDefault(one, all)).map(({ id }) => id);
    expect(shown(both(true))).toEqual(["runway:15R/33L"]);
    expect(shown(both(false))).toEqual(["runway/amos", "runway:15R/33L"]);
  });

  it("give way to what somebody chose, patch after patch", () => {
    const chosen = { [find("metar").id]: true, [find("settlement").id]: false };
    const next = patched(state, reading("2026-05-26T06:10:00Z", 30));
    const metar = next.series.find(({ series_key }) => series_key === "metar");
    expect(metar && isVisible(metar, next.series, chosen)).toBe(true);
    expect(isVisible(find("settlement"), next.series, chosen)).toBe(false);
  });

  it("are in an order of their own", () => {
    expect(inOrder(state.series).map(({ series_key }) => series_key)).toEqual(["settlement", "metar", "runway:07L"]);
    const runway_points = [{ runway: "25R", temp: 29, is_settlement: true }];
    const deciding = patched(state, reading("2026-05-26T06:01:00Z", null, { source: "amos", runway_points }));
    expect(inOrder(deciding.series).map(({ id }) => id)).toEqual([
      "runway:25R",
      "settlement/hko",
      "metar/awc_metar",
      "runway:07L",
    ]);
  });
});
