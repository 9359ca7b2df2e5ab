/** The visitor's arrangement of the Terminal page; stored in the browser, and validated when read back. */
import { createStore, type StoreApi } from "zustand/vanilla";
import { readThresholds, type Threshold } from "./threshold";

export const LAYOUTS = [1, 4, 9] as const;
export type Layout = (typeof LAYOUTS)[number];
export const WINDOWS = ["day", "24h", "6h"] as const;
export type WindowName = (typeof WINDOWS)[number];
export const UNITS = ["auto", "celsius", "fahrenheit"] as const;
export type UnitChoice = (typeof UNITS)[number];

export const SLOTS = 9;
const KEY = "planetwire.terminal";
const DEFAULT_CITIES = [
  "shanghai",
  "tokyo",
  "london",
  "new york",
  "hong kong",
  "singapore",
  "paris",
  "seoul",
  "los angeles",
] as const;

export interface Arrangement {
  layout: Layout;
  /** City keys by place; null is a place left empty on purpose. */
  slots: readonly (string | null)[];
  /** The place that the list and the phone act on. */
  active: number;
  window: WindowName;
  unit: UnitChoice;
  /** Curves switched by hand: city, then series id. */
  chosen: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
  /** Lines by city; a city without any is not in it. */
  thresholds: Readonly<Record<string, readonly Threshold[]>>;
}

export const DEFAULTS: Arrangement = {
  layout: 4,
  slots: DEFAULT_CITIES,
  active: 0,
  window: "day",
  unit: "auto",
  chosen: {},
  thresholds: {},
};

function oneOf<T>(value: unknown, allowed: readonly T[], otherwise: T): T {
  return allowed.includes(value as T) ? (value as T) : otherwise;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readSlots(value: unknown): readonly (string | null)[] {
  if (!Array.isArray(value) || value.length !== SLOTS) return DEFAULTS.slots;
  const seen = new Set<string>();
  return value.map((city) => {
    if (typeof city !== "string" || city === "" || city.length > 64 || seen.has(city)) return null;
    seen.add(city);
    return city;
  });
}

function readChosen(value: unknown): Arrangement["chosen"] {
  const cities = isRecord(value) ? Object.entries(value).slice(0, 100) : [];
  const flags = (ids: unknown) =>
    Object.fromEntries(Object.entries(isRecord(ids) ? ids : {}).filter(([, on]) => typeof on === "boolean"));
  return Object.fromEntries(cities.map(([city, ids]) => [city, flags(ids) as Record<string, boolean>]));
}

function readAllThresholds(value: unknown): Arrangement["thresholds"] {
  const cities = isRecord(value) ? Object.entries(value).slice(0, 100) : [];
  const read = cities.map(([city, each]) => [city, readThresholds(each)] as const);
  return Object.fromEntries(read.filter(([, lines]) => lines.length > 0));
}

/** Reads the stored value; each missing or invalid part falls back by itself. */
export function parseArrangement(text: string | null): Arrangement {
  let raw: unknown = null;
  try {
    raw = JSON.parse(text ?? "null");
  } catch {
    return DEFAULTS;
  }
  if (!isRecord(raw)) return DEFAULTS;
  const active = Number.isInteger(raw.active) ? (raw.active as number) : 0;
  return {
    layout: oneOf(raw.layout, LAYOUTS, DEFAULTS.layout),
    slots: readSlots(raw.slots),
    active: active >= 0 && active < SLOTS ? active : 0,
    window: oneOf(raw.window, WINDOWS, DEFAULTS.window),
    unit: oneOf(raw.unit, UNITS, DEFAULTS.unit),
    chosen: readChosen(raw.chosen),
    thresholds: readAllThresholds(raw.thresholds),
  };
}

/** Puts the city into the place; if it is shown already, the two places change their cities. */
export function withCity(arrangement: Arrangement, place: number, city: string | null): Arrangement {
  const slots = [...arrangement.slots];
  const elsewhere = city === null ? -1 : slots.indexOf(city);
  if (elsewhere >= 0) slots[elsewhere] = slots[place] ?? null;
  slots[place] = city;
  return { ...arrangement, slots, active: place };
}

export function withThresholds(kept: Arrangement, city: string, lines: readonly Threshold[]): Arrangement {
  const { [city]: _, ...others } = kept.thresholds;
  return { ...kept, thresholds: lines.length === 0 ? others : { ...others, [city]: lines } };
}

/** The places on screen: all of the layout, or the active one alone where there is room for one. */
export function placesOf({ layout, active }: Arrangement, single: boolean): readonly number[] {
  if (single) return [active];
  if (layout === 1) return [active];
  return Array.from({ length: layout }, (_, place) => place);
}

/** The cities on screen, which are the cities to subscribe to. */
export function citiesOf(arrangement: Arrangement, single: boolean): readonly string[] {
  const cities = placesOf(arrangement, single).map((place) => arrangement.slots[place] ?? null);
  return cities.filter((city): city is string => city !== null);
}

export interface Keeper {
  read(): string | null;
  write(text: string): void;
  /** Calls with what another window of this browser has written. */
  watch?(onChange: (text: string | null) => void): void;
}

/** The browser's storage; if it is refused, the page works but stores nothing. */
export const browserKeeper: Keeper = {
  read() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null;
    }
  },
  write(text) {
    try {
      localStorage.setItem(KEY, text);
    } catch {
      // Private windows may refuse storage.
    }
  },
  watch(onChange) {
    globalThis.addEventListener?.("storage", (event) => {
      if (event.key === KEY) onChange(event.newValue);
    });
  },
};

export function createArrangement(keeper: Keeper = browserKeeper): StoreApi<Arrangement> {
  const store = createStore<Arrangement>(() => parseArrangement(keeper.read()));
  store.subscribe((arrangement, before) => {
    if (arrangement !== before) keeper.write(JSON.stringify(arrangement));
  });
  // Each window has its own places. Lines belong to the city: written back from an old copy they would be lost.
  keeper.watch?.((text) => {
    const { thresholds } = parseArrangement(text);
    if (JSON.stringify(thresholds) !== JSON.stringify(store.getState().thresholds)) store.setState({ thresholds });
  });
  return store;
}
