/** Cities on the wire: rows, details and patches, read into values with one unit (°C) and one clock (ms since 1970). */
import { type LimitTable, readLimits } from "./city_limits";
import { celsius, date, fahrenheit, first, instant, list, name } from "./city_values";
import { finite, type Raw, record, text, texts, whole } from "./parse";

export interface Reading {
  temp_c: number;
  observed_ms: number;
  source: string;
  series_key: string;
  station_code: string | null;
  station_label: string | null;
}

export interface RunwayPoint {
  runway: string;
  temp_c: number;
  is_settlement: boolean | null;
}

/** One change of one city, in any version of the schema. */
export interface CityPatch {
  city: string;
  /** Null in shapes older than v1 that carry none. */
  revision: number | null;
  /** The city's revision before this one; null when the sender does not say. */
  prev_revision: number | null;
  epoch: string | null;
  source: string;
  series_key: string;
  observed_ms: number;
  temp_c: number | null;
  max_so_far_c: number | null;
  station_code: string | null;
  station_label: string | null;
  local_date: string | null;
  cadence_s: number | null;
  runway_points: readonly RunwayPoint[];
}

export type Point = readonly [epoch_ms: number, temp_c: number];

export interface WireSeries {
  series_key: string;
  source: string;
  label: string | null;
  cadence_s: number | null;
  points: readonly Point[];
}

export interface CityDetail {
  city: string;
  display_name: string;
  timezone: string;
  unit: "celsius" | "fahrenheit";
  revision: number;
  epoch: string;
  local_date: string | null;
  primary: Reading | null;
  high: { temp_c: number; observed_ms: number | null } | null;
  series: readonly WireSeries[];
  /** Each runway's own curve, by name. */
  runways: Readonly<Record<string, readonly Point[]>>;
  settlement_runway: string | null;
  settlement_label: string | null;
  /** The source that decides the city's day, as the registry names it. */
  settlement_source: string | null;
  limits: LimitTable;
  errors: readonly string[];
}

export interface TerminalRow {
  city: string;
  display_name: string;
  display_name_zh: string | null;
  airport: string | null;
  icao: string | null;
  aliases: readonly string[];
  timezone: string;
  local_date: string | null;
  unit: "celsius" | "fahrenheit";
  temp_c: number | null;
  max_c: number | null;
  observed_ms: number | null;
  source: string | null;
  limits: LimitTable;
  rank: number;
}

export interface TerminalSnapshot {
  revision: number;
  epoch: string;
  rows: readonly TerminalRow[];
}

function runwayPoint(value: unknown, unit: unknown): RunwayPoint | null {
  const raw = record(value);
  const runway = (text(raw?.runway) ?? text(raw?.rwy))?.replaceAll(/\s/g, "").toUpperCase();
  if (!raw || !runway) return null;
  const keys = ["temp", "target_runway_max", "tdz_temp", "mid_temp", "end_temp"];
  const temp_c = first(...keys.map((key) => celsius(raw[key], unit)));
  if (temp_c === null) return null;
  return { runway, temp_c, is_settlement: typeof raw.is_settlement === "boolean" ? raw.is_settlement : null };
}

function runwayPoints(value: unknown, unit: unknown): readonly RunwayPoint[] {
  return list(value)
    .map((item) => runwayPoint(item, unit))
    .filter((point): point is RunwayPoint => point !== null);
}

interface Body {
  raw: Raw;
  temp_c: number | null;
  max_so_far_c: number | null;
  runway_points: readonly RunwayPoint[];
}

function patchOf(frame: Raw, { raw, ...values }: Body): CityPatch | null {
  const city = name(frame.city);
  if (!city || (values.temp_c === null && values.runway_points.length === 0)) return null;
  const observed_ms = first(instant(frame.obs_time), instant(raw.obs_time), instant(frame.ts));
  if (observed_ms === null) return null;
  return {
    city,
    revision: whole(frame.revision),
    prev_revision: whole(frame.prev_revision),
    epoch: text(frame.epoch),
    source: name(frame.source) ?? name(raw.source) ?? "weather",
    series_key: text(raw.series_key) ?? (values.temp_c === null ? "runway" : "airport_primary"),
    observed_ms,
    ...values,
    station_code: text(raw.station_code) ?? text(raw.icao),
    station_label: text(raw.station_label),
    local_date: date(raw.city_local_date ?? frame.city_local_date),
    cadence_s: finite(raw.source_cadence_sec),
  };
}

/** Reads `city_observation_patch.v1`; null if it has nothing to show. */
export function readPatch(frame: Raw): CityPatch | null {
  const raw = record(frame.payload) ?? {};
  return patchOf(frame, {
    raw,
    temp_c: celsius(raw.temp, raw.unit),
    max_so_far_c: celsius(raw.max_so_far, raw.unit),
    runway_points: runwayPoints(raw.runway_points, raw.unit),
  });
}

/** Reads the older `city_patch`, whose values lie in `changes` and whose runways may lie in `changes.amos`. */
export function readLegacyPatch(frame: Raw): CityPatch | null {
  const raw = record(frame.changes) ?? {};
  const amos = record(raw.amos) ?? {};
  const own = runwayPoints(raw.runway_points, raw.unit);
  const nested = runwayPoints(record(amos.runway_obs)?.point_temperatures, "celsius");
  const station = { station_code: amos.icao, station_label: amos.station_label ?? amos.station_name };
  return patchOf(frame, {
    raw: { ...station, ...raw },
    temp_c: first(celsius(raw.temp_c, "celsius"), celsius(raw.temp, raw.unit)),
    max_so_far_c: first(celsius(raw.max_so_far, raw.unit), celsius(raw.current_max_so_far, raw.unit)),
    runway_points: own.length > 0 ? own : nested,
  });
}

function point(value: unknown): Point | null {
  const pair = Array.isArray(value) ? value : null;
  const raw = record(value);
  const x = pair ? instant(pair[0]) : instant(raw?.time);
  const y = finite(pair ? pair[1] : raw?.temp);
  return x === null || y === null ? null : [x, y];
}

function points(value: unknown): readonly Point[] {
  return list(value)
    .map(point)
    .filter((item): item is Point => item !== null);
}

function wireSeries(value: unknown): WireSeries | null {
  const raw = record(value);
  const series_key = text(raw?.series_key);
  if (!raw || !series_key) return null;
  return {
    series_key,
    source: name(raw.source) ?? "weather",
    label: text(raw.label),
    cadence_s: finite(raw.cadence_s) ?? finite(raw.source_cadence_sec),
    points: points(raw.points),
  };
}

function reading(value: unknown): Reading | null {
  const raw = record(value);
  const temp_c = finite(raw?.temp);
  const observed_ms = instant(raw?.obs_time);
  if (!raw || temp_c === null || observed_ms === null) return null;
  return {
    temp_c,
    observed_ms,
    source: name(raw.source) ?? "weather",
    series_key: text(raw.series_key) ?? "airport_primary",
    station_code: text(raw.station_code),
    station_label: text(raw.station_label),
  };
}

function high(value: unknown): CityDetail["high"] {
  const raw = record(value);
  const temp_c = finite(raw?.temp);
  return temp_c === null ? null : { temp_c, observed_ms: instant(raw?.obs_time) };
}

function allSeries(timeseries: Raw): readonly WireSeries[] {
  const given = list(timeseries.series)
    .map(wireSeries)
    .filter((series): series is WireSeries => series !== null);
  if (given.length > 0) return given;
  const named = (series_key: string, source: string, value: unknown): WireSeries => {
    return { series_key, source, label: null, cadence_s: null, points: points(value) };
  };
  // Servers that send only the two named lists.
  const lists = [
    named("metar", "metar", timeseries.metar_today_obs),
    named("settlement", "settlement", timeseries.settlement_today_obs),
  ];
  return lists.filter((series) => series.points.length > 0);
}

/** Reads `/api/city/{name}/detail`. Throws TypeError when it does not say which city or position it is of. */
export function readDetail(body: unknown): CityDetail {
  const raw = record(body);
  const city = name(raw?.city);
  const revision = whole(raw?.revision);
  const timezone = text(raw?.timezone);
  if (!raw || !city || revision === null || !timezone) throw new TypeError("not a city detail");
  const station = record(raw.settlement_station);
  const plates = Object.entries(record(raw.runway_plate_history) ?? {});
  return {
    city,
    display_name: text(raw.display_name) ?? city,
    timezone,
    unit: fahrenheit(raw.unit) ? "fahrenheit" : "celsius",
    revision,
    epoch: text(raw.epoch) ?? "",
    local_date: date(raw.local_date),
    primary: reading(raw.airport_primary),
    high: high(raw.day_high),
    series: allSeries(record(raw.timeseries) ?? {}),
    runways: Object.fromEntries(plates.map(([runway, value]) => [runway, points(value)])),
    settlement_runway: text(station?.runway) ?? text(station?.settlement_runway),
    settlement_label: text(station?.label) ?? text(station?.station_label),
    settlement_source: name(station?.source),
    limits: readLimits(raw.freshness_limits),
    errors: texts(raw.errors),
  };
}

function row(value: unknown, index: number, usual: LimitTable): TerminalRow | null {
  const raw = record(value);
  const city = name(raw?.city);
  const timezone = text(raw?.timezone);
  if (!raw || !city || !timezone) return null;
  return {
    city,
    display_name: text(raw.display_name) ?? city,
    display_name_zh: text(raw.display_name_zh),
    airport: text(raw.airport),
    icao: text(raw.icao),
    aliases: texts(raw.aliases),
    timezone,
    local_date: date(raw.local_date),
    unit: fahrenheit(raw.temp_symbol) ? "fahrenheit" : "celsius",
    temp_c: finite(raw.current_temp),
    max_c: finite(raw.current_max_so_far),
    observed_ms: instant(raw.obs_time),
    source: text(raw.source),
    limits: readLimits(raw.freshness_limits, usual),
    rank: finite(raw.rank) ?? index,
  };
}

/** Reads `/api/scan/terminal`; a row that names no city or zone is left out. Throws TypeError without rows. */
export function readTerminal(body: unknown): TerminalSnapshot {
  const raw = record(body);
  if (!raw || !Array.isArray(raw.rows)) throw new TypeError("not a list of cities");
  const usual = readLimits(raw.freshness_limits);
  const read = raw.rows.map((value, index) => row(value, index, usual));
  const rows = read.filter((item): item is TerminalRow => item !== null);
  return { revision: whole(raw.revision) ?? 0, epoch: text(raw.epoch) ?? "", rows };
}
