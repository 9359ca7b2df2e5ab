/** One place of the grid: the city's numbers, its chart, its legend. */
import { useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { CityState } from "../data/city";
import { cadence_s, columns } from "../data/series";
import { withCity } from "../data/slots";
import type { CityView } from "../data/terminal";
import { movedThreshold, reachedAt, threshold_c, thresholdAt } from "../data/threshold";
import { inOrder, isVisible } from "../data/visibility";
import { windowOf } from "../data/window";
import type { Curve, Pointed } from "../draw/chart";
import type { ChartLine } from "../draw/chart_marks";
import { strokesOf } from "../draw/palette";
import { tempText, UNIT_LETTER, type Unit } from "../draw/unit";
import { ChartLegend } from "./ChartLegend";
import { ChartTools } from "./ChartTools";
import { type CanvasHandle, CityCanvas } from "./CityCanvas";
import { CityPicker } from "./CityPicker";
import { curveName } from "./names";
import { codeText } from "./reasons";
import { summaryText } from "./summary";
import { useThresholds } from "./ThresholdLines";
import { TileHeader } from "./TileHeader";
import { useNow } from "./use_now";
import { useArrangement, useCityName, useCityView, useRow, useTerminal, useUnit } from "./use_terminal";

const EMPTY = {};

function useCurves(state: CityState) {
  const { t } = useTranslation("terminal");
  const chosen = useArrangement((arrangement) => arrangement.chosen[state.city] ?? EMPTY);
  const series = useMemo(() => inOrder(state.series), [state.series]);
  const data = useMemo(() => columns(series), [series]);
  const curves = useMemo<readonly Curve[]>(() => {
    const strokes = strokesOf(series);
    return series.map((one, i) => ({
      ...(strokes[i] as (typeof strokes)[number]),
      id: one.id,
      label: curveName(t, one, state.settlement_label),
      visible: isVisible(one, series, chosen),
      reach_ms: cadence_s(one) * 1_000,
    }));
  }, [series, chosen, state.settlement_label, t]);
  return { series, data, curves };
}

/** The city's lines as the chart draws them, each with its own number, and the shown unit's where that is another. */
function useLines(state: CityState, unit: Unit) {
  const { lines, change } = useThresholds(state.city);
  const drawn = useMemo<readonly ChartLine[]>(
    () =>
      lines.map((line) => {
        const temp_c = threshold_c(line);
        const own = `${line.value}°`.replace("-", "−");
        const text = line.unit === unit ? own : `${tempText(temp_c, unit)} (${own}${UNIT_LETTER[line.unit]})`;
        return { temp_c, text, reached: reachedAt(state, line) !== null };
      }),
    [lines, state, unit],
  );
  const move = (index: number, temp_c: number) =>
    change((all) => movedThreshold(all, index, thresholdAt(temp_c, unit)));
  return { lines: drawn, move };
}

function CityChartPanel({ state, name, unit }: { state: CityState; name: string; unit: Unit }) {
  const { t, i18n } = useTranslation("terminal");
  const { arrangement } = useTerminal();
  const chosenWindow = useArrangement((kept) => kept.window);
  const now_ms = useNow(15_000);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const { series, data, curves } = useCurves(state);
  const { lines, move } = useLines(state, unit);
  const canvas = useRef<CanvasHandle>(null);
  const language = i18n.language;
  const model = useMemo(
    () => ({
      curves,
      columns: data,
      zone: state.timezone,
      language,
      unit,
      window: windowOf(chosenWindow, state.timezone, now_ms),
      now_ms,
      high: state.high,
      lines,
    }),
    [curves, data, state.timezone, state.high, lines, language, unit, chosenWindow, now_ms],
  );
  const toggle = (id: string, visible: boolean) =>
    arrangement.setState(({ chosen }) => ({
      chosen: { ...chosen, [state.city]: { ...chosen[state.city], [id]: visible } },
    }));
  return (
    <>
      <CityCanvas
        ref={canvas}
        model={model}
        label={summaryText(t, language, name, state, unit)}
        onPoint={setPointed}
        onLineMoved={move}
      />
      <footer className="tile__foot">
        <ChartLegend
          curves={curves}
          series={series}
          pointed={pointed}
          unit={unit}
          zone={state.timezone}
          settlement_source={state.settlement_source}
          onToggle={toggle}
        />
        <ChartTools
          state={state}
          name={name}
          unit={unit}
          curves={curves}
          series={series}
          window={model.window}
          canvas={canvas}
        />
      </footer>
    </>
  );
}

/** Codes after which trying again gives the same: another city is the way on. */
const FINAL = new Set(["unknown_city", "not_found"]);

function Trouble({ city, view, onPick }: { city: string; view: CityView; onPick: () => void }) {
  const { t } = useTranslation("terminal");
  const { terminal } = useTerminal();
  if (view.phase === "loading") {
    return (
      <div className="tile__message" role="status">
        {view.error ? t("tile.retrying", { code: codeText(view.error) }) : t("tile.loading")}
      </div>
    );
  }
  return (
    <div className="tile__message tile__message--bad" role="alert">
      <p>{t("tile.failed", { code: codeText(view.error) })}</p>
      {FINAL.has(view.error ?? "") ? (
        <button type="button" className="button" onClick={onPick}>
          {t("tile.choose_button")}
        </button>
      ) : (
        <button type="button" className="button" onClick={() => terminal.retry(city)}>
          {t("tile.retry")}
        </button>
      )}
    </div>
  );
}

interface BodyProps {
  city: string;
  view: CityView | undefined;
  onPick: () => void;
}

const LOADING: CityView = { phase: "loading", state: null, mark: "none", error: null };

function Body({ city, view, onPick }: BodyProps) {
  const { t } = useTranslation("terminal");
  const nameOf = useCityName();
  const row = useRow(city);
  const state = view?.state ?? null;
  const unit = useUnit(state?.unit ?? "celsius");
  if (!view || !state) return <Trouble city={city} view={view ?? LOADING} onPick={onPick} />;
  if (state.series.every((series) => series.x.length === 0)) {
    return <div className="tile__message">{t("tile.empty")}</div>;
  }
  return <CityChartPanel state={state} name={row ? nameOf(row) : state.display_name} unit={unit} />;
}

export function ChartTile({ place }: { place: number }) {
  const { t } = useTranslation("terminal");
  const { arrangement } = useTerminal();
  const city = useArrangement((kept) => kept.slots[place] ?? null);
  const isActive = useArrangement((kept) => kept.active === place);
  const [picking, setPicking] = useState(false);
  const view = useCityView(city ?? "");
  const row = useRow(city ?? "");
  const nameOf = useCityName();
  const pick = (next: string | null) => {
    arrangement.setState((kept) => withCity(kept, place, next));
    setPicking(false);
  };
  const activate = () => {
    if (!isActive) arrangement.setState({ active: place });
  };
  return (
    <section
      className="tile"
      data-active={isActive}
      data-city={city ?? ""}
      aria-label={city ? t("tile.label", { city: row ? nameOf(row) : city }) : t("tile.empty_place")}
      onPointerDown={activate}
      onFocusCapture={activate}
    >
      {city ? (
        <>
          <TileHeader
            city={city}
            view={view}
            picking={picking}
            onPick={() => setPicking(!picking)}
            onClear={() => pick(null)}
          />
          {picking ? <CityPicker onPick={pick} onClose={() => setPicking(false)} /> : null}
          <Body key={city} city={city} view={view} onPick={() => setPicking(true)} />
        </>
      ) : (
        <div className="tile__free">
          <p className="dim">{t("tile.choose")}</p>
          {picking ? (
            <CityPicker onPick={pick} onClose={() => setPicking(false)} />
          ) : (
            <button type="button" className="button" onClick={() => setPicking(true)}>
              {t("tile.choose_button")}
            </button>
          )}
        </div>
      )}
    </section>
  );
}
