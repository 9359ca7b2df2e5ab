/** Over the globe: the time of the positions, pause, and the view's buttons. */
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { utcText } from "./earth_format";
import { HomeIcon, MinusIcon, PauseIcon, PlayIcon, PlusIcon } from "./icons";
import { useEarthAccess } from "./use_earth";
import { useNow } from "./use_now";

function Clock() {
  const { t } = useTranslation("earth");
  const { globe } = useEarthAccess();
  const now = useNow();
  const [paused, setPaused] = useState(false);
  useEffect(() => globe?.setPaused(paused), [globe, paused]);
  const at_ms = globe?.at_ms ?? now;
  const label = t(paused ? "clock.resume" : "clock.pause");
  return (
    <div className="hud__clock" data-paused={paused}>
      <time className="num" dateTime={new Date(at_ms).toISOString()} title={t("clock.label")}>
        {utcText(at_ms)} <span className="dim">{paused ? t("clock.paused") : t("clock.utc")}</span>
      </time>
      <button
        type="button"
        className="button button--quiet button--icon"
        aria-label={label}
        title={label}
        aria-pressed={paused}
        disabled={!globe}
        onClick={() => setPaused(!paused)}
      >
        {paused ? <PlayIcon /> : <PauseIcon />}
      </button>
    </div>
  );
}

function ViewButtons() {
  const { t } = useTranslation("earth");
  const { globe } = useEarthAccess();
  const buttons = [
    { key: "zoom_in", icon: <PlusIcon />, act: () => globe?.camera.zoom(1) },
    { key: "zoom_out", icon: <MinusIcon />, act: () => globe?.camera.zoom(-1) },
    { key: "home", icon: <HomeIcon />, act: () => globe?.camera.home(true) },
  ] as const;
  return (
    <div className="hud__view">
      {buttons.map(({ key, icon, act }) => (
        <button
          key={key}
          type="button"
          className="button button--quiet button--icon"
          aria-label={t(`globe.${key}`)}
          title={t(`globe.${key}`)}
          disabled={!globe}
          onClick={act}
        >
          {icon}
        </button>
      ))}
    </div>
  );
}

export function EarthHud() {
  return (
    <div className="hud">
      <Clock />
      <ViewButtons />
    </div>
  );
}
