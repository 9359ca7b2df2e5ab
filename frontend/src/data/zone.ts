/**
 * City-local time from IANA zone names alone.
 *
 * Invariant: nothing here depends on the zone of the browser. Days may have 23, 24, 24.5 or 25 hours.
 */

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    const parts = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" } as const;
    format = new Intl.DateTimeFormat("en-US-u-ca-gregory-nu-latn", {
      ...parts,
      second: "numeric",
      hourCycle: "h23",
      timeZone: zone,
    });
    formats.set(zone, format);
  }
  return format;
}

/** Whether the browser knows the zone. */
export function isZone(zone: string): boolean {
  try {
    formatOf(zone);
    return true;
  } catch {
    return false;
  }
}

/** The wall clock of the zone, as if it were UTC: milliseconds since 1970 of the local reading. */
export function wallClock_ms(zone: string, instant_ms: number): number {
  const whole = Math.floor(instant_ms / 1_000) * 1_000;
  const read: Record<string, number> = {};
  for (const { type, value } of formatOf(zone).formatToParts(whole)) read[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = read;
  return Date.UTC(year, month - 1, day, hour, minute, second) + (instant_ms - whole);
}

/** What is added to UTC at this instant. */
export function zoneOffset_ms(zone: string, instant_ms: number): number {
  return wallClock_ms(zone, instant_ms) - instant_ms;
}

/** The local date as `YYYY-MM-DD`. */
export function localDate(zone: string, instant_ms: number): string {
  return new Date(wallClock_ms(zone, instant_ms)).toISOString().slice(0, 10);
}

function dateNumber(date: string): number {
  return Date.parse(`${date}T00:00:00Z`);
}

/** The date `days` after (or, negative, before) the given one. */
export function addDays(date: string, days: number): string {
  return new Date(dateNumber(date) + days * 86_400_000).toISOString().slice(0, 10);
}

const starts = new Map<string, number>();

/** The first instant of a local date; found by bisection, since midnight itself may be skipped by a clock change. */
export function dayStart_ms(zone: string, date: string): number {
  const key = `${zone} ${date}`;
  const known = starts.get(key);
  if (known !== undefined) return known;
  const midnight = dateNumber(date);
  let before = midnight - 16 * 3_600_000;
  let reached = midnight + 16 * 3_600_000;
  while (reached - before > 1_000) {
    const middle = Math.floor((before + reached) / 2_000) * 1_000;
    if (localDate(zone, middle) >= date) reached = middle;
    else before = middle;
  }
  if (starts.size > 1_000) starts.clear();
  starts.set(key, reached);
  return reached;
}

/** Start and end (exclusive) of the local day that holds the instant. */
export function dayBounds_ms(zone: string, instant_ms: number): readonly [number, number] {
  const date = localDate(zone, instant_ms);
  return [dayStart_ms(zone, date), dayStart_ms(zone, addDays(date, 1))];
}

/** The instant at which the zone's clock shows this reading, the first of two; null if no clock ever showed it. */
export function instantOf_ms(zone: string, wall_ms: number): number | null {
  // A day either side is beyond any clock change, so one of the two offsets is the right one, if any is.
  const offsets = [zoneOffset_ms(zone, wall_ms - 86_400_000), zoneOffset_ms(zone, wall_ms + 86_400_000)];
  const found = offsets.map((offset) => wall_ms - offset).filter((t) => wallClock_ms(zone, t) === wall_ms);
  return found.length === 0 ? null : Math.min(...found);
}
