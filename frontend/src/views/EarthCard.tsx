/** The card of the selected object; its values stay fresh while it is open, and it closes when the object goes. */
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Feature } from "../client/earth_types";
import { http } from "../client/http";
import type { ObjectCard } from "../client/object_wire";
import { browserTimers } from "../client/timers";
import { createObjectCard, type ObjectView } from "../data/object_card";
import type { PointId } from "../draw/globe_points";
import { valuesOf } from "../draw/layer_values";
import { agoText } from "./age";
import { rowShown } from "./card_text";
import { coordinateText, radiusText, timeOf, utcText } from "./earth_format";
import { CloseIcon } from "./icons";
import { toastOnce } from "./toasts";
import { labelIn, provenanceIn, useEarth, useEarthAccess, useLayer } from "./use_earth";
import { useNow } from "./use_now";

type Row = readonly [key: string, label: string, value: ReactNode];

function useTimeText(): (at_ms: number | null) => ReactNode {
  const { t } = useTranslation("earth");
  const now = useNow();
  return (at_ms) => {
    if (at_ms === null) return null;
    return (
      <>
        {utcText(at_ms)} UTC <span className="dim card__ago">{agoText(t, now - at_ms)}</span>
      </>
    );
  };
}

/** As the layer declares them; of a layer that declares none, kind and time. */
function useDataRows(feature: Feature, layer: string, altitude_m: number | null): Row[] {
  const { t, i18n } = useTranslation("earth");
  const card = useEarth((view) => view.layers.find(({ id }) => id === layer)?.card);
  const timeText = useTimeText();
  if (!card?.length) {
    return [
      ["kind", t("card.kind"), feature.kind],
      ["observed", t("card.observed"), timeText(timeOf(feature.observed_at))],
    ];
  }
  const values = valuesOf(feature, altitude_m === null ? null : { altitude_m });
  return card.map((row) => {
    const shown = rowShown(row, values, i18n.language);
    const value = typeof shown === "string" || shown === null ? shown : timeText(shown.at_ms);
    return [row.key, labelIn(row, i18n.language), value];
  });
}

function Rows({ rows }: { rows: readonly Row[] }) {
  return (
    <dl className="card__rows">
      {rows.map(([key, label, value]) =>
        value ? (
          <div key={key}>
            <dt>{label}</dt>
            <dd className="num">{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

/** How a place that is not the fact's own was found, and how far off it may be. */
function useLocatedText(card: ObjectCard | null): string | null {
  const { t, i18n } = useTranslation("earth");
  if (!card?.place) return null;
  const { method, precision_m, resolver } = card.place;
  const how = method === "geocode" && resolver === "geonames" ? "geonames" : method;
  const radius = precision_m === null ? null : radiusText(precision_m, i18n.language);
  return [t(`card.located_by.${how}`), radius].filter(Boolean).join(" · ");
}

/** Only web addresses: a feed's text must not become a script. */
function detailsUrl(feature: Feature): string | null {
  const { url } = feature.data;
  return typeof url === "string" && /^https?:\/\//i.test(url) ? url : null;
}

/** Who publishes it, under which licence, and what it does not cover. */
function Provenance({ card }: { card: ObjectCard }) {
  const { t, i18n } = useTranslation("earth");
  const { publisher, licence, coverage, limits } = provenanceIn(card.provenance, i18n.language);
  const rows: Row[] = [
    ["layer", t("card.layer"), i18n.language.startsWith("zh") ? card.layer_title_zh : card.layer_title],
    ["publisher", t("card.publisher"), publisher],
    ["licence", t("card.licence"), licence],
    ["coverage", t("card.coverage"), coverage],
    ["limits", t("card.limits"), limits],
  ];
  return (
    <details className="card__about">
      <summary>{t("card.about")}</summary>
      <Rows rows={rows} />
    </details>
  );
}

function Content({ feature, picked, card }: { feature: Feature; picked: PointId; card: ObjectCard | null }) {
  const { t } = useTranslation("earth");
  const { globe } = useEarthAccess();
  const timeText = useTimeText();
  useNow();
  const drawn = globe?.placeOf(picked.layer, picked.feature) ?? null;
  const known = feature.lat === null || feature.lon === null ? null : { lat: feature.lat, lon: feature.lon };
  const place = drawn ?? known;
  const url = detailsUrl(feature);
  const locatedText = useLocatedText(card);
  const dataRows = useDataRows(feature, picked.layer, drawn?.altitude_m ?? null);
  return (
    <>
      <Rows rows={dataRows} />
      <Rows
        rows={[
          ["position", t("card.position"), place ? coordinateText(place.lat, place.lon) : null],
          ["located", t("card.located"), locatedText],
          ["source", t("card.source"), feature.source],
          ["collected", t("card.collected"), timeText(timeOf(card?.collected_at))],
        ]}
      />
      {url ? (
        <a className="card__link" href={url} target="_blank" rel="noreferrer">
          {t("card.details")}
        </a>
      ) : null}
      {card ? <Provenance card={card} /> : null}
    </>
  );
}

const NOT_YET: ObjectView = { card: null, gone: false };

/** What the server knows of the object, kept true by its events while the card is open. */
function useObject(picked: PointId): ObjectView {
  const { earth } = useEarthAccess();
  const { layer, feature } = picked;
  const [view, setView] = useState(NOT_YET);
  useEffect(() => {
    const object = createObjectCard({ http, timers: browserTimers, random: Math.random }, layer, feature);
    const leave = object.store.subscribe(setView);
    const unlisten = earth.listen(object.onEvent);
    return () => {
      unlisten();
      leave();
      object.stop();
      setView(NOT_YET);
    };
  }, [earth, layer, feature]);
  return view;
}

/** The object as its layer shows it; before the layer has it, as its card has it. `gone` once either lost it. */
function useFeature(picked: PointId, { card, gone }: ObjectView): { feature: Feature | null; gone: boolean } {
  const { features, visible } = useLayer(picked.layer);
  const shown = useMemo(() => features.find(({ id }) => id === picked.feature), [features, picked.feature]);
  const seen = useRef(false);
  if (shown) seen.current = true;
  const lost = visible && seen.current && !shown;
  return { feature: shown ?? (lost ? null : (card?.feature ?? null)), gone: gone || lost };
}

function Card({ picked }: { picked: PointId }) {
  const { t } = useTranslation("earth");
  const { pick } = useEarthAccess();
  const object = useObject(picked);
  const { feature, gone } = useFeature(picked, object);
  useEffect(() => {
    if (!gone) return;
    toastOnce("card.gone", "info", t("card.gone"), t("card.gone_hint", { title: picked.feature }));
    pick(null);
  }, [gone, picked.feature, pick, t]);
  useEffect(() => {
    const close = (event: KeyboardEvent) => {
      if (event.key === "Escape") pick(null);
    };
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [pick]);
  if (!feature) return null;
  return (
    <section className="panel card" aria-label={t("card.label")} data-feature={feature.id}>
      <header className="float__head">
        <h2 className="card__title">{feature.title || picked.feature}</h2>
        <button
          type="button"
          className="button button--quiet button--icon"
          aria-label={t("card.close")}
          onClick={() => pick(null)}
        >
          <CloseIcon />
        </button>
      </header>
      <Content feature={feature} picked={picked} card={object.card} />
    </section>
  );
}

export function EarthCard() {
  const { picked } = useEarthAccess();
  return picked ? <Card key={`${picked.layer}:${picked.feature}`} picked={picked} /> : null;
}
