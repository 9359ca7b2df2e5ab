/**
 * The values that looks and cards name. A file `kind_<kind>.ts` beside this one works out those of its kind and is found
 * by its name; most kinds need none.
 */
import type { DrawFeature, DrawnPlace, KindDrawing } from "./layer_style";

/** What a `kind_<kind>.ts` gives out. */
export interface KindFile {
  readonly drawing: KindDrawing;
}

/** By kind, which is part of the file's name. */
export function byKind(files: Readonly<Record<string, KindFile>>): ReadonlyMap<string, KindDrawing> {
  return new Map(
    Object.entries(files).map(([path, file]) => [/kind_(\w+)\.ts$/.exec(path)?.[1] ?? path, file.drawing]),
  );
}

const DRAWINGS = byKind(import.meta.glob<KindFile>(["./kind_*.ts", "!./*.test.ts"], { eager: true }));

export function isMoving(kind: string): boolean {
  return DRAWINGS.get(kind)?.moving ?? false;
}

/** A value by its name; undefined when there is none. */
export type Values = (name: string) => unknown;

/** The feature's own `observed_at` and `kind`, then what its kind's drawing works out, then its data. */
export function valuesOf(feature: DrawFeature, place: DrawnPlace | null = null): Values {
  const { data } = feature;
  let made: Readonly<Record<string, unknown>> | null = null;
  return (name) => {
    if (name === "observed_at" || name === "kind") return feature[name];
    made ??= DRAWINGS.get(feature.kind)?.values(data, place) ?? {};
    if (Object.hasOwn(made, name)) return made[name];
    return Object.hasOwn(data, name) ? data[name] : undefined;
  };
}

export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
