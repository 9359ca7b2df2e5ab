/** The globe's place on the page: makes it, gives it every layer's objects, and describes it for screen readers. */
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { LayerInfo } from "../client/earth_types";
import type { Earth } from "../data/earth";
import { createGlobe, type Globe } from "../draw/globe";
import { i18next } from "../i18n";
import { countText } from "./earth_format";
import { publishHooks } from "./test_hooks";
import { toastOnce } from "./toasts";
import { layerTitle, useEarth, useEarthAccess, useLayer } from "./use_earth";

/** Keeps the globe's layer equal to the store's; returns the way to stop. */
function follow(earth: Earth, globe: Globe, { id, look, kind }: LayerInfo): () => void {
  const layer = earth.layer(id);
  if (!layer) return () => undefined;
  const { features, visible } = layer.store.getState();
  globe.setFeatures(id, features, look, kind);
  globe.setVisible(id, visible);
  return layer.store.subscribe((view, before) => {
    if (view.version !== before.version) globe.setFeatures(id, view.features, look, kind);
    if (view.visible !== before.visible) globe.setVisible(id, view.visible);
  });
}

function hooksOf(earth: Earth, globe: Globe) {
  return {
    count: (layer: string) => globe.count(layer),
    /** Objects the page holds, drawn or not; -1 before the first snapshot. */
    held: (layer: string) => earth.layer(layer)?.store.getState().count ?? -1,
    missing: (layer: string) => globe.missing(layer),
    connection: () => earth.store.getState().connection,
    get frames() {
      return globe.frames;
    },
    get ready() {
      return globe.ready;
    },
    pause: (paused: boolean) => globe.setPaused(paused),
  };
}

function SummaryItem({ info }: { info: LayerInfo }) {
  const { t, i18n } = useTranslation("earth");
  const { count } = useLayer(info.id);
  const title = layerTitle(info, i18n.language);
  if (count === null) return <li>{t("globe.summary_unknown", { title })}</li>;
  return <li>{t("globe.summary_item", { title, objects: countText(count, i18n.language) })}</li>;
}

function Trouble() {
  const { t } = useTranslation("earth");
  return (
    <div className="globe__trouble" role="alert">
      <h2>{t("globe.no_webgl")}</h2>
      <p>{t("globe.no_webgl_hint")}</p>
    </div>
  );
}

export function EarthGlobe({ onGlobe }: { onGlobe: (globe: Globe | null) => void }) {
  const { t } = useTranslation("earth");
  const { earth, globe, picked, pick } = useEarthAccess();
  const layers = useEarth((view) => view.layers);
  const box = useRef<HTMLDivElement>(null);
  const [broken, setBroken] = useState(false);

  useEffect(() => {
    if (!box.current) return;
    let made: Globe;
    try {
      const onError = (reason: string) => toastOnce("globe", "warning", i18next.t("earth:globe.trouble", { reason }));
      made = createGlobe(box.current, { onPick: pick, onError });
    } catch (error) {
      console.warn("no globe", error);
      setBroken(true);
      return;
    }
    onGlobe(made);
    const unpublish = publishHooks("earth", hooksOf(earth, made));
    return () => {
      unpublish();
      onGlobe(null);
      made.destroy();
    };
  }, [earth, onGlobe, pick]);

  // The registry is read again and again; only another layer or another look is drawn anew.
  const drawn = JSON.stringify(layers.map(({ id, look, kind }) => [id, look, kind]));
  // biome-ignore lint/correctness/useExhaustiveDependencies: `drawn` stands for what is drawn of `layers`
  useEffect(() => {
    if (!globe) return;
    const stops = layers.map((info) => follow(earth, globe, info));
    return () => {
      for (const stop of stops) stop();
    };
  }, [earth, globe, drawn]);

  useEffect(() => globe?.select(picked), [globe, picked]);

  return (
    <div className="globe">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the canvas inside takes arrow keys and zoom keys */}
      <div ref={box} className="globe__box" tabIndex={0} role="application" aria-label={t("globe.label")} />
      <ul className="visually-hidden" aria-label={t("layers.title")}>
        {layers.map((info) => (
          <SummaryItem key={info.id} info={info} />
        ))}
      </ul>
      {broken ? <Trouble /> : null}
    </div>
  );
}
