/** The Earth page: the globe full-bleed, layers on the left, jobs on the right; sheets on a phone. */
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { LayerInfo } from "../client/earth_types";
import { http } from "../client/http";
import { browserTimers } from "../client/timers";
import { openSocket } from "../client/websocket";
import { createEarth, type Earth as EarthStore, type Notice } from "../data/earth";
import type { Globe } from "../draw/globe";
import type { PointId } from "../draw/globe_points";
import { i18next } from "../i18n";
import "../styles/jobs.css";
import "../styles/earth.css";
import "../styles/earth_legend.css";
import "../styles/earth_search.css";
import { tabOf } from "../data/jobs_core";
import { EarthCard } from "./EarthCard";
import { ConnectionDot } from "./EarthConnection";
import { EarthGlobe } from "./EarthGlobe";
import { EarthHud } from "./EarthHud";
import { EarthLayers } from "./EarthLayers";
import { EarthSearch } from "./EarthSearch";
import { readHidden } from "./earth_memory";
import { JobPanel } from "./JobPanel";
import { Notice as PageNotice } from "./Notice";
import { codeText } from "./reasons";
import { dropToast, toastOnce } from "./toasts";
import { EarthContext, layerTitle } from "./use_earth";
import { JobsContext, useJobs } from "./use_jobs";

type Sheet = "layers" | "jobs" | null;

/** One light notice a layer while its refresh fails. */
function showNotice({ key, layer, code }: Notice, layers: readonly LayerInfo[]): void {
  if (code === null) {
    dropToast(key);
    return;
  }
  const info = layers.find(({ id }) => id === layer);
  const title = info ? layerTitle(info, i18next.language) : layer;
  toastOnce(
    key,
    "warning",
    i18next.t("earth:layers.toast", { title }),
    i18next.t("earth:layers.toast_hint", { code: codeText(code) }),
  );
}

function openEarth(): EarthStore {
  const earth: EarthStore = createEarth({
    http,
    open: () => openSocket(window.location),
    timers: browserTimers,
    random: Math.random,
    onNotice: (notice) => showNotice(notice, earth.store.getState().layers),
    hidden: readHidden(),
  });
  return earth;
}

/** One store a visit of the page; leaving the page ends its socket and its timers. */
function useEarthStore(): EarthStore | null {
  const [earth, setEarth] = useState<EarthStore | null>(null);
  useEffect(() => {
    const made = openEarth();
    const wake = () => {
      if (!document.hidden) made.wake();
    };
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("online", wake);
    setEarth(made);
    made.start();
    return () => {
      document.removeEventListener("visibilitychange", wake);
      window.removeEventListener("online", wake);
      made.stop();
    };
  }, []);
  return earth;
}

/** On a phone the panels are sheets; their tabs show a summary while they are closed. */
function SheetTabs({ sheet, onSheet }: { sheet: Sheet; onSheet: (sheet: Sheet) => void }) {
  const { t } = useTranslation("earth");
  const rows = useJobs((view) => view.rows);
  const running = [...rows.values()].filter((row) => tabOf(row.status) === "running").length;
  const toggle = (name: Exclude<Sheet, null>) => onSheet(sheet === name ? null : name);
  return (
    <nav className="earth__tabs" aria-label={t("sheet.label")}>
      <button type="button" aria-expanded={sheet === "layers"} onClick={() => toggle("layers")}>
        {t("sheet.layers")}
        <ConnectionDot />
      </button>
      <button type="button" aria-expanded={sheet === "jobs"} onClick={() => toggle("jobs")}>
        {t("sheet.jobs")}
        {running > 0 ? <span className="num tabs__count">{t("sheet.running", { n: running })}</span> : null}
      </button>
    </nav>
  );
}

export default function Earth() {
  const { t } = useTranslation("earth");
  const earth = useEarthStore();
  const [globe, setGlobe] = useState<Globe | null>(null);
  const [picked, pick] = useState<PointId | null>(null);
  const [sheet, setSheet] = useState<Sheet>(null);
  const access = useMemo(() => (earth ? { earth, globe, picked, pick } : null), [earth, globe, picked]);

  if (!access) return <PageNotice title={t("globe.loading")} />;
  return (
    <EarthContext.Provider value={access}>
      <JobsContext.Provider value={access.earth.jobs}>
        <div className="earth" data-sheet={sheet ?? "none"}>
          <EarthGlobe onGlobe={setGlobe} />
          <div className="earth__left">
            <EarthLayers />
          </div>
          <div className="earth__right">
            <JobPanel />
          </div>
          <EarthSearch />
          <EarthHud />
          <EarthCard />
          <SheetTabs sheet={sheet} onSheet={setSheet} />
        </div>
      </JobsContext.Provider>
    </EarthContext.Provider>
  );
}
