import { describe, expect, it } from "vitest";
import { readDetail } from "../client/city_wire";
import { type CityState, cityFromDetail } from "../data/city";
import { detailBody } from "../testing/observations";
import { trend_c } from "./summary";

const NOW_MS = Date.UTC(2023, 10, 15, 6);
const MINUTE_MS = 60_000;

/** A city whose curve holds these readings, by minutes before its headline. */
function city(readings: readonly (readonly [minutes: number, temp: number])[]): CityState {
  const state = cityFromDetail(readDetail(detailBody("x", 1)), NOW_MS);
  const [series_key, source] = ["metar", "awc_metar"];
  const x = readings.map(([minutes]) => NOW_MS - minutes * MINUTE_MS);
  const y = readings.map(([, temp]) => temp);
  const curve = {
    id: "metar/awc_metar",
    series_key,
    source,
    runway: null,
    is_settlement: false,
    cadence_s: null,
    x,
    y,
  };
  const headline = { series_key, source, observed_ms: NOW_MS, temp_c: y.at(-1) ?? 0 };
  return { ...state, series: [curve], headline } as unknown as CityState;
}

describe("the trend that a chart is said to have", () => {
  it("is the change over the last hour, and of nothing before it", () => {
    expect(
      trend_c(
        city([
          [300, 5],
          [61, 10],
          [60, 12],
          [30, 13],
          [0, 14.5],
        ]),
      ),
    ).toBe(2.5);
    expect(
      trend_c(
        city([
          [300, 5],
          [20, 13],
          [0, 12],
        ]),
      ),
    ).toBe(-1);
  });

  it("is unknown without a second reading in that hour", () => {
    expect(
      trend_c(
        city([
          [90, 5],
          [0, 14],
        ]),
      ),
    ).toBeNull();
    expect(trend_c({ ...city([[0, 14]]), headline: null })).toBeNull();
  });
});
