import { describe, expect, it } from "vitest";
import { drawing, orbitOf } from "./kind_satellite";

describe("regimes", () => {
  it.each([
    ["a space station", 15.5, 0.0004, "LEO", 400, 430],
    ["a navigation satellite", 2.0056, 0.005, "MEO", 20_000, 20_400],
    ["a geostationary one", 1.0027, 0.0002, "GEO", 35_700, 35_900],
    ["Molniya", 2.006, 0.7, "HEO", 38_500, 40_500],
  ])("%s", (_, MEAN_MOTION, ECCENTRICITY, regime, least_km, most_km) => {
    const orbit = orbitOf({ MEAN_MOTION, ECCENTRICITY, INCLINATION: 51.6 });
    expect(orbit?.regime).toBe(regime);
    expect(orbit?.apogee_km).toBeGreaterThan(least_km);
    expect(orbit?.apogee_km).toBeLessThan(most_km);
  });

  it("period follows from turns a day", () => {
    expect(orbitOf({ MEAN_MOTION: 16, ECCENTRICITY: 0 })?.period_min).toBe(90);
  });

  it.each([{}, { MEAN_MOTION: 0, ECCENTRICITY: 0 }, { MEAN_MOTION: 15, ECCENTRICITY: 1 }, { MEAN_MOTION: null }])(
    "elements that say nothing have no orbit: %j",
    (data) => {
      expect(orbitOf(data)).toBeNull();
    },
  );
});

describe("the values of a card", () => {
  it("have an altitude where the satellite is drawn, and an orbit where the elements mean one", () => {
    const data = { MEAN_MOTION: 16, ECCENTRICITY: 0 };
    expect(drawing.values(data, { altitude_m: 418_000 })).toMatchObject({ regime: "LEO", altitude_km: 418 });
    expect(drawing.values(data, null)).not.toHaveProperty("altitude_km");
    expect(drawing.values({}, { altitude_m: 418_000 })).toEqual({ altitude_km: 418 });
  });
});
