/** The Earth page's stores for components. */
import { createContext, useContext } from "react";
import { useStore } from "zustand";
import type { LayerInfo, Provenance } from "../client/earth_types";
import type { Labelled } from "../client/presentation_wire";
import type { Earth, EarthView } from "../data/earth";
import type { LayerView } from "../data/layer";
import type { Globe } from "../draw/globe";
import type { PointId } from "../draw/globe_points";

export interface EarthAccess {
  earth: Earth;
  /** Null while it is prepared, and where it cannot be drawn. */
  globe: Globe | null;
  picked: PointId | null;
  pick(picked: PointId | null): void;
}

export const EarthContext = createContext<EarthAccess | null>(null);

export function useEarthAccess(): EarthAccess {
  const access = useContext(EarthContext);
  if (!access) throw new Error("the Earth page's parts need an EarthContext above them");
  return access;
}

export function useEarth<T>(select: (view: EarthView) => T): T {
  return useStore(useEarthAccess().earth.store, select);
}

/** The layer's own state; only for ids that the registry named. */
export function useLayer(id: string): LayerView {
  const layer = useEarthAccess().earth.layer(id);
  if (layer === null) throw new Error(`layer ${id} is not in the registry`);
  return useStore(layer.store);
}

/** In the reader's language, where the server has it. */
export function provenanceIn(given: Provenance, language: string): Provenance {
  return language.startsWith("zh") && given.zh ? given.zh : given;
}

export function labelIn({ label, label_zh }: Labelled, language: string): string {
  return language.startsWith("zh") ? label_zh : label;
}

export function layerTitle(info: LayerInfo, language: string): string {
  return language.startsWith("zh") ? info.title_zh : info.title;
}
