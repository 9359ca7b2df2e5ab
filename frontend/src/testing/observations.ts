/** Snapshots of the Terminal as the server writes them, and a server that answers with them. */
import type { Fetch } from "../client/http";
import { jsonResponse } from "./clock";
import { EPOCH } from "./stream";

export const LIMITS = {
  default: { fresh_s: 900, wait_s: 1_200, stale_s: 2_700 },
  awc_metar: { fresh_s: 600, wait_s: 2_700, stale_s: 4_500 },
};

/** A detail of the wire. */
export function detailBody(city: string, revision: number, more: Record<string, unknown> = {}) {
  return {
    city,
    display_name: city,
    timezone: "Asia/Shanghai",
    unit: "celsius",
    revision,
    epoch: EPOCH,
    local_date: "2023-11-15",
    airport_primary: null,
    timeseries: { series: [], metar_today_obs: [], settlement_today_obs: [] },
    day_high: null,
    runway_plate_history: {},
    settlement_station: { source: "metar", station_code: "ZSPD", label: "Pudong", runway: null },
    freshness_limits: LIMITS,
    errors: [],
    ...more,
  };
}

export function rowBody(city: string, more: Record<string, unknown> = {}) {
  return {
    city,
    display_name: city,
    timezone: "Asia/Shanghai",
    temp_symbol: "°C",
    local_date: "2023-11-15",
    current_temp: 10,
    current_max_so_far: 12,
    obs_time: "2023-11-14T22:00:00Z",
    source: "awc_metar",
    freshness_limits: LIMITS,
    rank: 1,
    ...more,
  };
}

export interface Asked {
  path: string;
  cache: RequestCache | undefined;
}

/** Answers by path; what is not there is 404. A function is called for each request. */
export function fakeServer(routes: Record<string, unknown | (() => unknown)>): { fetch: Fetch; asked: Asked[] } {
  const asked: Asked[] = [];
  return {
    asked,
    async fetch(input, init) {
      asked.push({ path: input, cache: init?.cache });
      const route = routes[input];
      if (route === undefined) return jsonResponse({ code: "not_found", detail: "no such route" }, 404);
      const body = typeof route === "function" ? (route as () => unknown)() : route;
      if (body instanceof Error) throw body;
      return body instanceof Promise ? jsonResponse(await body) : jsonResponse(body);
    },
  };
}
