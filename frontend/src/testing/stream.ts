/** A server's side of the observation stream, held by a test. */
import { createBackoff } from "../client/backoff";
import { ObservationStream, type StreamListener } from "../client/sse";
import type { CityStep } from "../client/sse_frames";
import type { OpenSource, SourceEvents } from "../client/sse_transport";
import { manualTimers } from "./clock";

export const EPOCH = "abcdef012345";

export interface FakeSource extends SourceEvents {
  url: string;
  closed: boolean;
  send(frame: Record<string, unknown>): void;
}

export interface Heard {
  states: string[];
  steps: CityStep[];
  resyncs: { cities: readonly string[]; reason: string; mark: boolean }[];
  debug: string[];
}

/** Every source that was opened; two open at once are an error. */
export function fakeSources() {
  const sources: FakeSource[] = [];
  const open: OpenSource = (url, events) => {
    if (sources.some(({ closed }) => !closed)) throw new Error("two open streams");
    const source = { url, closed: false, ...events, send: (frame: object) => events.onMessage(JSON.stringify(frame)) };
    sources.push(source);
    return {
      close() {
        source.closed = true;
      },
    };
  };
  return { sources, open, last: () => sources[sources.length - 1] as FakeSource };
}

/** A stream over fake sources and a clock that stands still. */
export function testStream() {
  const timers = manualTimers();
  const { sources, open, last } = fakeSources();
  const heard: Heard = { states: [], steps: [], resyncs: [], debug: [] };
  const listener: StreamListener = {
    onState: (state) => heard.states.push(state),
    onSteps: (_, steps) => heard.steps.push(...steps),
    onResync: (cities, reason, mark) => heard.resyncs.push({ cities, reason, mark }),
  };
  const stream = new ObservationStream({
    open,
    listener,
    timers,
    backoff: createBackoff({ random: () => 0.5 }),
    debug: (message, detail) => heard.debug.push(`${message} ${detail}`),
  });
  return { timers, sources, heard, stream, open: () => sources.filter((source) => !source.closed), last };
}

export function connected(cities: Record<string, number>, revision: number, epoch = EPOCH) {
  return { type: "connected", epoch, revision, cities, unknown: [], heartbeat_s: 30, ts: 0 };
}

export function patch(city: string, revision: number, prev_revision: number, payload: Record<string, unknown> = {}) {
  return {
    type: "city_observation_patch.v1",
    schema_version: 1,
    epoch: EPOCH,
    city,
    source: "awc_metar",
    revision,
    prev_revision,
    obs_time: new Date(Date.UTC(2026, 4, 26, 10, revision)).toISOString(),
    ts: 0,
    payload: { temp: 20 + revision, series_key: "metar", unit: "celsius", runway_points: [], ...payload },
  };
}
