/** The layer panel: what is shown, how much of it, how fresh it is, and where it comes from. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { LayerInfo, SourceInfo } from "../client/earth_types";
import type { LayerView } from "../data/layer";
import { agoText } from "./age";
import { ConnectionBadge } from "./EarthConnection";
import { Legend } from "./EarthLegend";
import { countText, timeOf } from "./earth_format";
import { freshnessOf, lookOf } from "./earth_freshness";
import { keepHidden } from "./earth_memory";
import { FoldButton } from "./FoldButton";
import { codeText } from "./reasons";
import { layerTitle, provenanceIn, useEarth, useEarthAccess, useLayer } from "./use_earth";
import { useJobs } from "./use_jobs";
import { useNow } from "./use_now";

/** The newest success of the layer or of any of its sources, ms. */
function lastSuccess(info: LayerInfo, sources: readonly SourceInfo[]): number | null {
  const own = sources.filter(({ source }) => info.sources.includes(source)).map((each) => timeOf(each.last_success_at));
  const times = [timeOf(info.last_success_at), ...own].filter((at) => at !== null);
  return times.length > 0 ? Math.max(...times) : null;
}

function Freshness({ info, view }: { info: LayerInfo; view: LayerView }) {
  const { t } = useTranslation("earth");
  const sources = useJobs((jobs) => jobs.sources);
  const connection = useEarth((earth) => earth.connection);
  const now = useNow();
  const at_ms = lastSuccess(info, sources);
  const age_ms = at_ms === null ? null : now - at_ms;
  const look = lookOf({ view, info, age_ms, live: connection === "live" });
  const fresh = age_ms === null ? "" : freshnessOf(age_ms, info.stale_after_s);
  return (
    <p className="layer__fresh">
      <span className={`badge ${look.tone}`}>{t(`state.${look.word}`)}</span>
      <span className={`num ${fresh}`}>
        {age_ms === null ? t("layers.never") : t("layers.as_of", { ago: agoText(t, age_ms) })}
      </span>
    </p>
  );
}

/** One line that distinguishes an error from an empty layer. */
function Remark({ info, view }: { info: LayerInfo; view: LayerView }) {
  const { t, i18n } = useTranslation("earth");
  const { earth, globe } = useEarthAccess();
  const missing = globe?.missing(info.id) ?? 0;
  if (view.phase === "failed") {
    const key = view.count ? "layers.failed_layer" : "layers.cleared_failed";
    return (
      <p className="layer__remark layer__remark--bad" role="status">
        {t(view.count === null ? "layers.failed_layer" : key, { code: codeText(view.error) })}
        <button type="button" className="link" onClick={() => earth.layer(info.id)?.refresh(true)}>
          {t("layers.retry")}
        </button>
      </p>
    );
  }
  if (view.count === 0) return <p className="layer__remark">{t("layers.empty")}</p>;
  const count = (value: number) => countText(value, i18n.language);
  return (
    <>
      {view.count !== null && view.total > view.count ? (
        <p className="layer__remark">{t("layers.cut", { shown: count(view.count), total: count(view.total) })}</p>
      ) : null}
      {missing > 0 ? <p className="layer__remark">{t("layers.missing", { objects: count(missing) })}</p> : null}
    </>
  );
}

function About({ info }: { info: LayerInfo }) {
  const { t, i18n } = useTranslation("earth");
  const provenance = provenanceIn(info.provenance, i18n.language);
  const rows = [
    ["publisher", provenance.publisher],
    ["licence", provenance.licence],
    ["coverage", provenance.coverage],
    ["limits", provenance.limits],
    ["sources", info.sources.join(", ")],
  ] as const;
  return (
    <dl className="layer__about">
      {rows.map(([key, value]) =>
        value ? (
          <div key={key}>
            <dt>{t(`layers.${key}`)}</dt>
            <dd lang={provenance === info.provenance && key !== "sources" ? "en" : undefined}>{value}</dd>
          </div>
        ) : null,
      )}
    </dl>
  );
}

function LayerRow({ info }: { info: LayerInfo }) {
  const { t, i18n } = useTranslation("earth");
  const { earth } = useEarthAccess();
  const view = useLayer(info.id);
  const [open, setOpen] = useState(false);
  const title = layerTitle(info, i18n.language);
  const toggle = () => {
    earth.setVisible(info.id, !view.visible);
    keepHidden(info.id, view.visible);
  };
  return (
    <li className="layer" data-layer={info.id} data-phase={view.phase}>
      <div className="layer__head">
        <button
          type="button"
          role="switch"
          className="switch"
          aria-checked={view.visible}
          aria-label={t("layers.show", { title })}
          onClick={toggle}
        />
        <h3 className="layer__title">{title}</h3>
        <output className="num layer__count" aria-label={title}>
          {view.count === null ? "–" : countText(view.count, i18n.language)}
        </output>
        <FoldButton open={open} label={t("layers.about")} className="layer__more" onToggle={() => setOpen(!open)} />
      </div>
      <Freshness info={info} view={view} />
      {view.visible ? (
        <Legend look={info.look} kind={info.kind} features={view.features} version={view.version} />
      ) : null}
      <Remark info={info} view={view} />
      {open ? <About info={info} /> : null}
    </li>
  );
}

function List() {
  const { t } = useTranslation("earth");
  const layers = useEarth((view) => view.layers);
  const registry = useEarth((view) => view.registry);
  const code = useEarth((view) => view.registry_error);
  if (registry === "failed" && layers.length === 0) {
    return (
      <p className="layer__remark layer__remark--bad" role="status">
        {t("layers.failed", { code: codeText(code) })}
      </p>
    );
  }
  if (layers.length === 0)
    return <p className="layer__remark">{t(registry === "ready" ? "layers.none" : "layers.loading")}</p>;
  return (
    <ul className="layers">
      {layers.map((info) => (
        <LayerRow key={info.id} info={info} />
      ))}
    </ul>
  );
}

export function EarthLayers() {
  const { t } = useTranslation("earth");
  return (
    <section className="panel float" aria-labelledby="layers-title">
      <header className="float__head">
        <h2 id="layers-title">{t("layers.title")}</h2>
        <ConnectionBadge />
      </header>
      <List />
    </section>
  );
}
