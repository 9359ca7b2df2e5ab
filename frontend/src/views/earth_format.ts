/** Numbers, places and times of the Earth page as text. */

export function countText(value: number, language: string): string {
  return new Intl.NumberFormat(language).format(value);
}

/** One decimal below ten, none above: the digits that mean something. */
export function decimalText(value: number, language: string): string {
  const digits = Math.abs(value) < 10 ? 1 : 0;
  return new Intl.NumberFormat(language, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(
    value,
  );
}

/** `± 800 m`, `± 16 km`: an order of magnitude, not a figure. */
export function radiusText(radius_m: number, language: string): string {
  if (radius_m < 1_000) return `± ${countText(Math.round(radius_m), language)} m`;
  return `± ${decimalText(radius_m / 1_000, language)} km`;
}

export function coordinateText(lat: number, lon: number): string {
  const northSouth = lat >= 0 ? "N" : "S";
  const eastWest = lon >= 0 ? "E" : "W";
  return `${Math.abs(lat).toFixed(2)}° ${northSouth} ${Math.abs(lon).toFixed(2)}° ${eastWest}`;
}

/** `2026-05-25 10:20:30`, UTC. */
export function utcText(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(0, 19).replace("T", " ");
}

/** `m:ss`, or `h:mm:ss` from an hour up. */
export function durationText(duration_ms: number): string {
  const seconds = Math.max(0, Math.floor(duration_ms / 1_000));
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** Milliseconds of an ISO time; one without a zone is UTC. Null if it is none. */
export function timeOf(text: string | null | undefined): number | null {
  if (!text) return null;
  const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`;
  const at_ms = Date.parse(zoned);
  return Number.isNaN(at_ms) ? null : at_ms;
}
