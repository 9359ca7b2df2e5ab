/** The card of the selected object; its values stay fresh while it is open, and it closes when the object goes. */
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Feature } from "../client/earth_types";
import { http } from "../client/http";
import type { ObjectCard } from "../client/object_wire";
import { browserTimers } from "../client/timers";
import { createObjectCard, type ObjectView } from "../data/object_card";
import type { PointId } from "../draw/globe_points";
import { orbitOf } from "../draw/layer_satellites";
import { tempText } from "../draw/unit";
import { agoText } from "./age";
import { coordinateText, countText, decimalText, radiusText, timeOf, utcText } from "./earth_format";
import { CloseIcon } from "./icons";
import { toastOnce } from "./toasts";
import { provenanceIn, useEarthAccess, useLayer } from "./use_earth";
import { useNow } from "./use_now";

type Row = readonly [key: string, value: ReactNode];

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function useTimeText(): (text: string | null | undefined) => ReactNode {
  const { t } = useTranslation("earth");
  const now = useNow();
  return (text) => {
    const at_ms = timeOf(text);
    if (at_ms === null) return null;
    return (
      <>
        {utcText(at_ms)} UTC <span className="dim card__ago">{agoText(t, now - at_ms)}</span>
      </>
    );
  };
}

function useSatelliteRows(feature: Feature, altitude_m: number | null): Row[] {
  const { t, i18n } = useTranslation("earth");
  const timeText = useTimeText();
  const orbit = orbitOf(feature.data);
  const km = (value: number) => `${countText(Math.round(value), i18n.language)} km`;
  const rows: Row[] = [
    ["norad", String(feature.data.NORAD_CAT_ID ?? "")],
    ["designator", typeof feature.data.OBJECT_ID === "string" ? feature.data.OBJECT_ID : null],
    ["altitude", altitude_m === null ? t("card.no_position") : km(altitude_m / 1_000)],
  ];
  if (orbit) {
    rows.push(
      ["regime", `${orbit.regime} · ${t(`card.regimes.${orbit.regime}`)}`],
      ["heights", `${km(orbit.perigee_km)} × ${km(orbit.apogee_km)}`],
      ["inclination", `${decimalText(orbit.inclination_deg, i18n.language)}°`],
      ["period", `${decimalText(orbit.period_min, i18n.language)} min`],
    );
  }
  const epoch = feature.data.EPOCH;
  rows.push(["epoch", timeText(typeof epoch === "string" ? epoch : feature.observed_at)]);
  return rows;
}

function useQuakeRows(feature: Feature): Row[] {
  const { t, i18n } = useTranslation("earth");
  const timeText = useTimeText();
  const { data } = feature;
  const magnitude = number(data.mag);
  const depth = number(data.depth_km);
  return [
    [
      "magnitude",
      magnitude === null ? null : `${magnitude.toFixed(1)} ${typeof data.mag_type === "string" ? data.mag_type : ""}`,
    ],
    ["depth", depth === null ? null : `${decimalText(depth, i18n.language)} km`],
    ["time", timeText(feature.observed_at)],
    ["status", typeof data.status === "string" ? data.status : null],
    ["tsunami", data.tsunami ? t("card.tsunami_yes") : null],
  ];
}

function useWeatherRows(feature: Feature): Row[] {
  const timeText = useTimeText();
  const { data } = feature;
  const temp_c = number(data.temp_c);
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  return [
    ["temperature", temp_c === null ? null : `${tempText(temp_c, "celsius")}C`],
    ["observed", timeText(feature.observed_at)],
    ["station", text(data.station_label) ?? text(data.station_code)],
    ["observed_by", text(data.observed_by)],
    ["airport", [text(data.airport), text(data.icao)].filter(Boolean).join(" · ") || null],
  ];
}

function usePlainRows(feature: Feature): Row[] {
  const timeText = useTimeText();
  return [
    ["kind", feature.kind],
    ["observed", timeText(feature.observed_at)],
  ];
}

function Rows({ rows }: { rows: readonly Row[] }) {
  const { t } = useTranslation("earth");
  return (
    <dl className="card__rows">
      {rows.map(([key, value]) =>
        value ? (
          <div key={key}>
            <dt>{t(`card.${key}`)}</dt>
            <dd className="num">{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

function SatelliteRows({ feature, altitude_m }: { feature: Feature; altitude_m: number | null }) {
  return <Rows rows={useSatelliteRows(feature, altitude_m)} />;
}

function QuakeRows({ feature }: { feature: Feature }) {
  return <Rows rows={useQuakeRows(feature)} />;
}

function WeatherRows({ feature }: { feature: Feature }) {
  return <Rows rows={useWeatherRows(feature)} />;
}

function PlainRows({ feature }: { feature: Feature }) {
  return <Rows rows={usePlainRows(feature)} />;
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
    ["layer", i18n.language.startsWith("zh") ? card.layer_title_zh : card.layer_title],
    ["publisher", publisher],
    ["licence", licence],
    ["coverage", coverage],
    ["limits", limits],
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
  return (
    <>
      {feature.kind === "satellite" ? (
        <SatelliteRows feature={feature} altitude_m={drawn?.altitude_m ?? null} />
      ) : feature.kind === "weather_station" ? (
        <WeatherRows feature={feature} />
      ) : "mag" in feature.data ? (
        <QuakeRows feature={feature} />
      ) : (
        <PlainRows feature={feature} />
      )}
      <Rows
        rows={[
          ["position", place ? coordinateText(place.lat, place.lon) : null],
          ["located", locatedText],
          ["source", feature.source],
          ["collected", timeText(card?.collected_at)],
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
    const deafen = earth.hear(object.hear);
    return () => {
      deafen();
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
