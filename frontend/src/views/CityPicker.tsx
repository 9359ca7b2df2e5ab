/** Finds a city by name, airport, code or Chinese name, and gives it to a place. */
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { TerminalRow } from "../client/city_wire";
import { searchRows } from "../data/rows";
import { useCityName, useTerminalState } from "./use_terminal";

export interface CityPickerProps {
  onPick: (city: string) => void;
  onClose?: () => void;
}

/** Keys of cities may hold spaces, ids may not. */
function optionId(listId: string, city: string): string {
  return `${listId}-${city.replaceAll(" ", "_")}`;
}

function useFound(query: string): readonly TerminalRow[] {
  const rows = useTerminalState((state) => state.rows);
  const aliases = useTerminalState((state) => state.aliases);
  return searchRows(rows, query, aliases);
}

export function CityPicker({ onPick, onClose }: CityPickerProps) {
  const { t } = useTranslation("terminal");
  const nameOf = useCityName();
  const listId = useId();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const found = useFound(query);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const current = found[Math.min(at, found.length - 1)];

  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    if (current) list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [current]);

  function onKey(event: KeyboardEvent) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((old) => (Math.min(old, found.length - 1) + step + found.length) % Math.max(1, found.length));
    } else if (event.key === "Enter" && current) {
      event.preventDefault();
      onPick(current.city);
    } else if (event.key === "Escape") {
      event.stopPropagation();
      onClose?.();
    }
  }

  return (
    <div className="picker">
      <input
        ref={input}
        className="input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls={listId}
        aria-activedescendant={current ? optionId(listId, current.city) : undefined}
        aria-label={t("picker.label")}
        placeholder={t("picker.placeholder")}
        autoComplete="off"
        spellCheck={false}
        value={query}
        onChange={(event) => {
          setQuery(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <div id={listId} ref={list} role="listbox" aria-label={t("picker.label")} className="picker__list" tabIndex={-1}>
        {found.map((row) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input above has the keys
          <div
            key={row.city}
            id={optionId(listId, row.city)}
            className="picker__option"
            role="option"
            tabIndex={-1}
            aria-selected={row.city === current?.city}
            onClick={() => onPick(row.city)}
          >
            <span>{nameOf(row)}</span>
            <span className="faint">{row.icao}</span>
          </div>
        ))}
      </div>
      {found.length === 0 ? <p className="picker__none">{t("picker.none", { query })}</p> : null}
    </div>
  );
}
