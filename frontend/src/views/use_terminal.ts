/** The Terminal's state for components. */
import { createContext, useContext, useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { useShallow } from "zustand/react/shallow";
import type { StoreApi } from "zustand/vanilla";
import type { TerminalRow } from "../client/city_wire";
import { type Arrangement, citiesOf } from "../data/slots";
import type { CityView, Terminal, TerminalState } from "../data/terminal";
import type { Unit } from "../draw/unit";
import { useMedia } from "./use_media";

export interface TerminalAccess {
  terminal: Terminal;
  arrangement: StoreApi<Arrangement>;
}

export const TerminalContext = createContext<TerminalAccess | null>(null);

export function useTerminal(): TerminalAccess {
  const access = useContext(TerminalContext);
  if (!access) throw new Error("useTerminal needs a TerminalContext above it");
  return access;
}

export function useTerminalState<T>(select: (state: TerminalState) => T): T {
  return useStore(useTerminal().terminal.store, select);
}

export function useArrangement<T>(select: (arrangement: Arrangement) => T): T {
  return useStore(useTerminal().arrangement, useShallow(select));
}

export function useCityView(city: string): CityView | undefined {
  return useTerminalState((state) => state.cities[city]);
}

export function useRow(city: string): TerminalRow | undefined {
  return useTerminalState((state) => state.rows.find((row) => row.city === city));
}

/** The unit chosen for the page, or the city's own. */
export function useUnit(own: Unit): Unit {
  const choice = useArrangement((arrangement) => arrangement.unit);
  return choice === "auto" ? own : choice;
}

/** The city's name in the page's language. */
export function useCityName(): (row: Pick<TerminalRow, "display_name" | "display_name_zh">) => string {
  const { i18n } = useTranslation();
  const chinese = i18n.language === "zh";
  return (row) => (chinese ? (row.display_name_zh ?? row.display_name) : row.display_name);
}

/** Whether the screen has room for one chart only: a phone, whichever way it is held. */
export function useSingle(): boolean {
  return useMedia("(max-width: 760px), (max-height: 480px)");
}

/** Runs the Terminal while the page is open, with exactly the cities on screen. */
export function useRunning({ terminal, arrangement }: TerminalAccess, single: boolean): void {
  const cities = useStore(
    arrangement,
    useShallow((state) => citiesOf(state, single)),
  );
  useEffect(() => {
    const wake = () => {
      if (!document.hidden) terminal.wake();
    };
    void terminal.start();
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("online", wake);
    return () => {
      document.removeEventListener("visibilitychange", wake);
      window.removeEventListener("online", wake);
      terminal.stop();
    };
  }, [terminal]);
  useEffect(() => terminal.show(cities), [terminal, cities]);
}
