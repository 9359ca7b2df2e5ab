/** The page's own controls: grid, span of time, unit, state of the connection. */
import { useTranslation } from "react-i18next";
import { LAYOUTS, UNITS, WINDOWS } from "../data/slots";
import { ConnectionBadge } from "./ConnectionBadge";
import { useArrangement, useTerminal } from "./use_terminal";

interface ChoiceProps<T extends string | number> {
  label: string;
  options: readonly T[];
  value: T;
  text: (option: T) => string;
  hint?: (option: T) => string;
  onChoose: (option: T) => void;
}

function Choice<T extends string | number>({ label, options, value, text, hint, onChoose }: ChoiceProps<T>) {
  return (
    <fieldset className="segmented" aria-label={label}>
      {options.map((option) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          title={hint?.(option)}
          aria-label={hint?.(option)}
          onClick={() => onChoose(option)}
        >
          {text(option)}
        </button>
      ))}
    </fieldset>
  );
}

const GRID = { 1: "1", 4: "2×2", 9: "3×3" } as const;
const SYMBOL = { auto: "°", celsius: "°C", fahrenheit: "°F" } as const;

export function TerminalBar({ single }: { single: boolean }) {
  const { t } = useTranslation("terminal");
  const { arrangement } = useTerminal();
  const kept = useArrangement(({ layout, window, unit }) => ({ layout, window, unit }));
  return (
    <div className="terminal__bar">
      <h1 className="visually-hidden">{t("title")}</h1>
      {single ? null : (
        <Choice
          label={t("bar.grid")}
          options={LAYOUTS}
          value={kept.layout}
          text={(layout) => GRID[layout]}
          hint={(layout) => t("bar.charts", { count: layout })}
          onChoose={(layout) => arrangement.setState({ layout })}
        />
      )}
      <Choice
        label={t("bar.window")}
        options={WINDOWS}
        value={kept.window}
        text={(name) => t(`bar.window_${name}`)}
        onChoose={(name) => arrangement.setState({ window: name })}
      />
      <Choice
        label={t("bar.unit")}
        options={UNITS}
        value={kept.unit}
        text={(unit) => (unit === "auto" ? t("bar.unit_auto") : SYMBOL[unit])}
        hint={(unit) => t(`bar.unit_${unit}_hint`)}
        onChoose={(unit) => arrangement.setState({ unit })}
      />
      <span className="tile__fill" />
      <ConnectionBadge />
    </div>
  );
}
