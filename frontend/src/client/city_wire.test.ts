import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { detailBody, rowBody } from "../testing/observations";
import { instant } from "./city_values";
import { readDetail, readLegacyPatch, readPatch, readTerminal } from "./city_wire";
import { parseSseFrame } from "./sse_frames";

interface Golden {
  event: Record<string, unknown> & { payload: Record<string, unknown> };
  pushed: Record<string, unknown>;
}

const golden = import.meta.glob<Golden>("../../../spec/examples/city_observation_patch.*.json", {
  eager: true,
  import: "default",
});
const example = (name: string): Golden => {
  const found = golden[`../../../spec/examples/city_observation_patch.${name}.json`];
  if (!found) throw new Error(`no golden example ${name}`);
  return found;
};

describe("golden examples of the wire", () => {
  it("reads every patch of the specification", () => {
    expect(Object.keys(golden).length).toBeGreaterThanOrEqual(5);
    for (const { event } of Object.values(golden)) {
      const patch = readPatch(event);
      expect(patch).toMatchObject({ city: event.city, revision: event.revision, prev_revision: event.prev_revision });
      expect(patch?.temp_c).toBe(event.payload.temp);
    }
  });

  it("keeps runways, zero degrees among them", () => {
    expect(readPatch(example("runways").event)?.runway_points).toEqual([
      { runway: "15R/33L", temp_c: 31.25, is_settlement: true },
      { runway: "16L/34R", temp_c: 31.4, is_settlement: false },
    ]);
    const alone = readPatch(example("runway_points_only").event);
    expect(alone).toMatchObject({
      temp_c: null,
      runway_points: [{ runway: "17L/35R", temp_c: 0, is_settlement: true }],
    });
  });

  it("takes the time of acceptance for an observation without one", () => {
    const { event } = example("untimed");
    expect(readPatch(event)?.observed_ms).toBe(event.ts);
  });
});

/** S146, S147, S225: the older shape becomes the same internal patch. */
describe("legacy city_patch", () => {
  // S147
  it("is converted, whatever unit it is in", () => {
    const patch = readLegacyPatch({
      type: "city_patch",
      city: "New York",
      revision: 7,
      ts: 1_780_000_000_000,
      changes: {
        temp: 86,
        unit: "fahrenheit",
        current_max_so_far: 89.6,
        obs_time: "2026-05-26T10:02:00Z",
        source: "MADIS",
        icao: "KLGA",
      },
    });
    expect(patch).toMatchObject({
      city: "new york",
      temp_c: 30,
      max_so_far_c: 32,
      station_code: "KLGA",
      source: "madis",
    });
    expect(patch?.observed_ms).toBe(Date.parse("2026-05-26T10:02:00Z"));
  });

  it("takes `temp_c` for °C whatever the unit beside it says", () => {
    const changes = { temp_c: 20, temp: 68, unit: "fahrenheit", obs_time: "2026-05-26T10:02:00Z" };
    const read = (more: object) =>
      readLegacyPatch({ type: "city_patch", city: "miami", changes: { ...changes, ...more } });
    expect(read({})?.temp_c).toBe(20);
    expect(read({ temp: 77 })?.temp_c).toBe(20);
    expect(read({ temp_c: undefined })?.temp_c).toBe(20);
  });

  it("finds runways in `amos`, and prefers those given directly", () => {
    const amos = { icao: "RKSI", runway_obs: { point_temperatures: [{ rwy: "15r / 33l", target_runway_max: 0 }] } };
    const changes = { amos, obs_time: "2026-05-26T10:02:00Z", source: "amos" };
    const read = (more: object) =>
      readLegacyPatch({ type: "city_patch", city: "seoul", changes: { ...changes, ...more } });
    expect(read({})).toMatchObject({ series_key: "runway", runway_points: [{ runway: "15R/33L", temp_c: 0 }] });
    expect(read({ runway_points: [{ runway: "16L", temp: 3 }] })?.runway_points).toMatchObject([
      { runway: "16L", temp_c: 3 },
    ]);
    expect(read({ runway_points: [{ runway: "16L", temp: 3 }] })?.station_code).toBe("RKSI");
  });

  // S225
  it("is the golden legacy example's event, but for what only the server knows", () => {
    const { pushed, event } = example("legacy");
    const { temp_c, max_so_far_c, observed_ms, source, station_code } = readLegacyPatch(pushed) ?? {};
    const other = readPatch(event);
    expect({ temp_c, max_so_far_c, observed_ms, source, station_code }).toEqual({
      temp_c: other?.temp_c,
      max_so_far_c: other?.max_so_far_c,
      observed_ms: other?.observed_ms,
      source: other?.source,
      station_code: other?.station_code,
    });
  });
});

describe("snapshots", () => {
  it("reads curves, runways and readings, and leaves out what is no reading", () => {
    const detail = readDetail(
      detailBody("shanghai", 9, {
        unit: "fahrenheit",
        airport_primary: {
          temp: 0,
          obs_time: "2023-11-15T00:00:00Z",
          source: "amos",
          station_code: "ZSPD",
          series_key: "runway",
        },
        day_high: { temp: 1.5, obs_time: "2023-11-15T00:00:00Z" },
        timeseries: {
          series: [
            { series_key: "metar", source: "metar", label: "ZSPD", points: [[1, 2], [3, null], "x", [4, 5]] },
            7,
          ],
        },
        runway_plate_history: {
          "17L/35R": [
            { time: "2023-11-15T00:00:00Z", temp: -0.5 },
            { time: "soon", temp: 1 },
          ],
        },
        settlement_station: { runway: "17L/35R", label: "Pudong" },
      }),
    );
    expect(detail).toMatchObject({
      unit: "fahrenheit",
      primary: { temp_c: 0 },
      high: { temp_c: 1.5 },
      settlement_runway: "17L/35R",
    });
    expect(detail.series).toEqual([
      {
        series_key: "metar",
        source: "metar",
        label: "ZSPD",
        cadence_s: null,
        points: [
          [1, 2],
          [4, 5],
        ],
      },
    ]);
    expect(detail.runways["17L/35R"]).toEqual([[Date.parse("2023-11-15T00:00:00Z"), -0.5]]);
  });

  it("reads the named lists of a server that sends no curves", () => {
    const named = { metar_today_obs: [{ time: "2023-11-15T00:00:00Z", temp: 3 }], settlement_today_obs: [] };
    expect(readDetail(detailBody("paris", 1, { timeseries: named })).series).toMatchObject([{ series_key: "metar" }]);
  });

  it("refuses what is no snapshot, and drops a row that is none", () => {
    for (const body of [null, [], {}, detailBody("x", -1), { ...detailBody("x", 1), timezone: 5 }]) {
      expect(() => readDetail(body)).toThrow(TypeError);
    }
    expect(() => readTerminal({ rows: 5 })).toThrow(TypeError);
    const { rows } = readTerminal({ rows: [rowBody("tokyo", { temp_symbol: "°F" }), { city: 5 }, null] });
    expect(rows).toMatchObject([{ city: "tokyo", unit: "fahrenheit", temp_c: 10, max_c: 12 }]);
  });

  it("takes no local time for an instant", () => {
    expect(instant("2026-05-26T10:02:00")).toBeNull();
    expect(instant("2026-05-26T10:02:00+08:00")).toBe(Date.parse("2026-05-26T02:02:00Z"));
    expect([instant("10:05Z"), instant(Number.NaN), instant({})]).toEqual([null, null, null]);
  });
});

it("never throws on any frame, whatever it holds", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.anything().map((value) => String(JSON.stringify(value))),
      ),
      (text) => {
        expect(parseSseFrame(text)).toHaveProperty("kind");
      },
    ),
  );
  const types = fc.constantFrom(
    "connected",
    "heartbeat",
    "resync_required",
    "city_patch",
    "city_observation_patch.v1",
    "x.v9",
  );
  const body = fc.dictionary(
    fc.constantFrom("city", "payload", "changes", "revision", "cursor", "cities", "obs_time"),
    fc.anything(),
  );
  fc.assert(
    fc.property(types, body, (type, more) => {
      const text = JSON.stringify({ ...more, type }, (_, value) => (typeof value === "bigint" ? String(value) : value));
      expect(parseSseFrame(text)).toHaveProperty("kind");
    }),
  );
});
