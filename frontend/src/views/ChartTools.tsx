/** What can be done with a chart besides looking at it: lines across it, and files of it. */
import { type RefObject, useContext, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import type { CityState } from "../data/city";
import type { Series } from "../data/series";
import type { Curve } from "../draw/chart";
import { csvText } from "../draw/export_csv";
import { pictureOf } from "../draw/export_picture";
import { dayText } from "../draw/time_axis";
import { UNIT_LETTER, type Unit } from "../draw/unit";
import type { CanvasHandle } from "./CityCanvas";
import { save } from "./save";
import { summaryText } from "./summary";
import { ThresholdLines } from "./ThresholdLines";
import { SessionContext } from "./use_session";

export interface ChartToolsProps {
  state: CityState;
  name: string;
  unit: Unit;
  curves: readonly Curve[];
  series: readonly Series[];
  window: readonly [number, number];
  canvas: RefObject<CanvasHandle | null>;
}

/** Whether the page runs on simulated feeds; whoever gets the file must see it too. */
function useSimulated(): boolean {
  const access = useContext(SessionContext);
  return useStore(access?.session.store ?? NEVER, ({ simulated }) => simulated);
}

const NEVER = {
  getState: () => ({ simulated: false }),
  getInitialState: () => ({ simulated: false }),
  subscribe: () => () => {},
};

function useExports({ state, name, unit, curves, series, window, canvas }: ChartToolsProps) {
  const { t, i18n } = useTranslation("terminal");
  const simulated = useSimulated();
  const shown = curves.flatMap((curve, i) => (curve.visible && series[i] ? [{ curve, series: series[i] }] : []));
  const stem = ["planetwire", simulated ? "simulated" : "", state.city.replaceAll(" ", "-"), state.local_date];
  const file = stem.filter(Boolean).join("-");
  const saveTable = () => {
    const labels = shown.map(({ curve }) => curve.label);
    const text = csvText({ series: shown.map((one) => one.series), labels, window, zone: state.timezone, unit });
    save(`${file}.csv`, new Blob([text], { type: "text/csv;charset=utf-8" }));
  };
  const savePicture = () => {
    const drawn = canvas.current?.canvas();
    if (!drawn) return;
    const day = dayText(i18n.language, state.timezone, window[0]);
    const foot = [
      "Planetwire",
      simulated ? t("tools.simulated") : "",
      day,
      `${state.timezone} · °${UNIT_LETTER[unit]}`,
    ];
    const picture = pictureOf(drawn, {
      title: name,
      detail: summaryText(t, i18n.language, null, state, unit),
      legend: shown.map(({ curve }) => ({ ...curve, text: curve.label })),
      foot: foot.filter(Boolean).join(" · "),
    });
    picture.toBlob((blob) => blob && save(`${file}.png`, blob), "image/png");
  };
  return { saveTable, savePicture };
}

function Panel({ onClose, ...props }: ChartToolsProps & { onClose: () => void }) {
  const { t } = useTranslation("terminal");
  const { saveTable, savePicture } = useExports(props);
  const own = useRef<HTMLDivElement>(null);
  useEffect(() => {
    own.current?.querySelector("input")?.focus();
    const outside = (event: PointerEvent) => {
      if (!own.current?.parentElement?.contains(event.target as Node)) onClose();
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [onClose]);
  return (
    <div
      ref={own}
      className="tools__panel"
      role="dialog"
      aria-label={t("tools.label", { city: props.name })}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <ThresholdLines state={props.state} unit={props.unit} />
      <section className="tools__files" aria-label={t("tools.export")}>
        <h3>{t("tools.export")}</h3>
        <button type="button" className="button" onClick={saveTable}>
          {t("tools.csv")}
        </button>
        <button type="button" className="button" onClick={savePicture}>
          {t("tools.png")}
        </button>
      </section>
    </div>
  );
}

export function ChartTools(props: ChartToolsProps) {
  const { t } = useTranslation("terminal");
  const [isOpen, setOpen] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const close = useRef(() => {
    setOpen(false);
    opener.current?.focus();
  }).current;
  const label = t("tools.label", { city: props.name });
  return (
    <div className="tools">
      <button
        ref={opener}
        type="button"
        className="tools__opener"
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={label}
        title={label}
        onClick={() => setOpen(!isOpen)}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path
            d="M2 5h7m4 0h1M2 11h1m4 0h7M9 3v4h3V3zM3 9v4h3V9z"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.4"
          />
        </svg>
      </button>
      {isOpen ? <Panel {...props} onClose={close} /> : null}
    </div>
  );
}
