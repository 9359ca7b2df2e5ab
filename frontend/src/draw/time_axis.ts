/** A time axis on the city's own clock: whole local hours, also on days when the clocks change, in any browser zone. */
import { addDays, instantOf_ms, localDate, wallClock_ms } from "../data/zone";

const MINUTE_MS = 60_000;
const STEPS_MIN = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1_440];
const TICKS_MAX = 200;

/** The smallest step in minutes that leaves `space_px` to each label. */
export function axisStep_min(span_ms: number, width_px: number, space_px: number): number {
  const room = Math.max(1, Math.floor(width_px / space_px));
  return STEPS_MIN.find((step) => span_ms / (step * MINUTE_MS) <= room) ?? 1_440;
}

/** Instants at which the zone's clock shows whole steps of its day; readings that never were are left out. */
export function axisSplits(zone: string, min_ms: number, max_ms: number, step_min: number): number[] {
  const splits: number[] = [];
  const last = localDate(zone, max_ms);
  for (let date = localDate(zone, min_ms); date <= last && splits.length < TICKS_MAX; date = addDays(date, 1)) {
    const midnight = Date.parse(`${date}T00:00:00Z`);
    for (let minute = 0; minute < 1_440; minute += step_min) {
      const at = instantOf_ms(zone, midnight + minute * MINUTE_MS);
      if (at !== null && at >= min_ms && at <= max_ms) splits.push(at);
    }
  }
  return splits.slice(0, TICKS_MAX);
}

const formats = new Map<string, Intl.DateTimeFormat>();

function format(language: string, zone: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language} ${zone} ${JSON.stringify(options)}`;
  let made = formats.get(key);
  if (!made) {
    // Plain "en" writes the day before its name.
    made = new Intl.DateTimeFormat(language === "en" ? "en-GB" : language, {
      ...options,
      timeZone: zone,
      hourCycle: "h23",
    });
    formats.set(key, made);
  }
  return made;
}

/** Local time as `14:05`. */
export function clockText(language: string, zone: string, instant_ms: number): string {
  return format(language, zone, { hour: "2-digit", minute: "2-digit" }).format(instant_ms);
}

/** Local day as `Fri 21` or its like in the language. */
export function dayText(language: string, zone: string, instant_ms: number): string {
  return format(language, zone, { weekday: "short", day: "numeric" }).format(instant_ms);
}

/** Label of a tick: the hour, or the day where a day begins. */
export function tickText(language: string, zone: string, instant_ms: number): string {
  const wall = wallClock_ms(zone, instant_ms);
  return wall % 86_400_000 === 0 ? dayText(language, zone, instant_ms) : clockText(language, zone, instant_ms);
}
