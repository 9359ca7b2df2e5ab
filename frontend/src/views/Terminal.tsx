/** The Terminal page: live temperatures of the cities on screen, and the list of all cities. */
import "uplot/dist/uPlot.min.css";
import "../styles/rows.css";
import "../styles/terminal.css";
import "../styles/terminal_phone.css";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { http } from "../client/http";
import { openEventSource } from "../client/sse_transport";
import { findSeries } from "../data/city";
import { createArrangement, placesOf } from "../data/slots";
import { Terminal } from "../data/terminal";
import { ChartTile } from "./ChartTile";
import { CityList } from "./CityList";
import { TerminalBar } from "./TerminalBar";
import { publishHooks } from "./test_hooks";
import { dropToast, toastOnce } from "./toasts";
import {
  type TerminalAccess,
  TerminalContext,
  useArrangement,
  useRunning,
  useSingle,
  useTerminalState,
} from "./use_terminal";

// Outlives the page, so that the curves are there at once when one comes back to it.
const own: TerminalAccess = {
  terminal: new Terminal({ http, open: openEventSource, isHidden: () => document.hidden }),
  arrangement: createArrangement(),
};

function hooksOf({ terminal }: TerminalAccess): PlanetwireHooks["terminal"] {
  const cityOf = (city: string) => terminal.store.getState().cities[city]?.state ?? null;
  return {
    points(city, series) {
      const state = cityOf(city);
      if (!state) return 0;
      if (series !== undefined) return findSeries(state, series)?.x.length ?? 0;
      return state.series.reduce((sum, { x }) => sum + x.length, 0);
    },
    values(city, series) {
      const state = cityOf(city);
      const found = state ? findSeries(state, series) : undefined;
      return found ? found.x.map((x, i) => [x, found.y[i] as number] as const) : [];
    },
    get connection() {
      return terminal.stream.state;
    },
    get cities() {
      return terminal.stream.cities;
    },
  };
}

/** Shows one notice while the live connection is lost for longer, and removes it on reconnect. */
function OfflineToast() {
  const { t } = useTranslation("terminal");
  const connection = useTerminalState((state) => state.connection);
  useEffect(() => {
    if (connection === "offline") toastOnce("terminal.stream", "warning", t("toast.offline"), t("toast.offline_hint"));
    if (connection === "live") dropToast("terminal.stream");
  }, [connection, t]);
  return null;
}

function Grid({ single }: { single: boolean }) {
  const { t } = useTranslation("terminal");
  const places = useArrangement((kept) => placesOf(kept, single));
  return (
    <section className="grid" data-charts={places.length} aria-label={t("bar.grid")}>
      {places.map((place) => (
        <ChartTile key={place} place={place} />
      ))}
    </section>
  );
}

export function TerminalPage({ access }: { access: TerminalAccess }) {
  const single = useSingle();
  useRunning(access, single);
  useEffect(() => publishHooks("terminal", hooksOf(access)), [access]);
  return (
    <TerminalContext.Provider value={access}>
      <div className="terminal">
        <TerminalBar single={single} />
        <Grid single={single} />
        <CityList />
        <OfflineToast />
      </div>
    </TerminalContext.Provider>
  );
}

export default function TerminalRoute() {
  return <TerminalPage access={own} />;
}
