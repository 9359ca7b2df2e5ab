/**
 * Which look a kind has. A file `kind_<kind>.ts` beside this one brings its own and is found by its name; a kind without
 * an entry is a plain point in a colour of its own, so that new layers need no code.
 */
import { quakeStyle } from "./layer_quakes";
import { satelliteStyle } from "./layer_satellites";
import type { KindStyle } from "./layer_style";
import { weatherStyle } from "./layer_weather";

/** What a `kind_<kind>.ts` gives out. */
export interface KindFile {
  readonly style: KindStyle;
}

/** By kind, which is part of the file's name. */
export function byKind(files: Readonly<Record<string, KindFile>>): Record<string, KindStyle> {
  return Object.fromEntries(
    Object.entries(files).map(([path, file]) => [/kind_(\w+)\.ts$/.exec(path)?.[1] ?? path, file.style]),
  );
}

const STYLES: Readonly<Record<string, KindStyle>> = {
  ...byKind(import.meta.glob<KindFile>(["./kind_*.ts", "!./*.test.ts"], { eager: true })),
  satellite: satelliteStyle,
  earthquake: quakeStyle,
  weather_station: weatherStyle,
};

const PALETTE = ["#8fb3ff", "#56d494", "#c9d36a", "#ff8f70", "#e58fd0", "#5cc4dd"] as const;

/** The same text always gives the same colour. */
export function colorOf(name: string): string {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return PALETTE[hash % PALETTE.length] ?? PALETTE[0];
}

const plain: KindStyle = {
  moving: false,
  look: (feature) => ({ color: colorOf(feature.kind), alpha: 0.9, size_px: 5 }),
};

/** Quakes of unusual type (explosion, ice quake) carry it as their kind: a magnitude makes them one of the family. */
export function styleOf(kind: string, data: Readonly<Record<string, unknown>>): KindStyle {
  return STYLES[kind] ?? ("mag" in data ? quakeStyle : plain);
}
