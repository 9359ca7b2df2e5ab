/** The lines of one city: set, moved, taken away; kept with the page's arrangement. */
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { CityState } from "../data/city";
import { withThresholds } from "../data/slots";
import {
  movedThreshold,
  parseValue,
  reachedAt,
  THRESHOLDS_MAX,
  type Threshold,
  withoutThreshold,
  withThreshold,
} from "../data/threshold";
import { clockText } from "../draw/time_axis";
import { UNIT_LETTER, type Unit } from "../draw/unit";
import { CloseIcon, PlusIcon } from "./icons";
import { useArrangement, useTerminal } from "./use_terminal";

const NONE: readonly Threshold[] = [];

/** The city's lines, and how to change them. */
export function useThresholds(city: string) {
  const { arrangement } = useTerminal();
  const lines = useArrangement((kept) => kept.thresholds[city] ?? NONE);
  const change = (next: (lines: readonly Threshold[]) => readonly Threshold[]) =>
    arrangement.setState((kept) => withThresholds(kept, city, next(kept.thresholds[city] ?? NONE)));
  return { lines, change };
}

function ReachedText({ state, line }: { state: CityState; line: Threshold }) {
  const { t, i18n } = useTranslation("terminal");
  const reached = reachedAt(state, line);
  if (!reached) return <span className="faint">{t("lines.not_reached")}</span>;
  if (reached.observed_ms === null) return <span>{t("lines.reached")}</span>;
  return <span>{t("lines.reached_at", { time: clockText(i18n.language, state.timezone, reached.observed_ms) })}</span>;
}

interface LineProps {
  state: CityState;
  line: Threshold;
  onMove: (value: number) => void;
  onRemove: () => void;
}

function Line({ state, line, onMove, onRemove }: LineProps) {
  const { t } = useTranslation("terminal");
  const [draft, setDraft] = useState<string | null>(null);
  const name = `${line.value} °${UNIT_LETTER[line.unit]}`;
  const commit = () => {
    const value = draft === null ? null : parseValue(draft);
    if (value !== null && value !== line.value) onMove(value);
    setDraft(null);
  };
  return (
    <li className="lines__item">
      <input
        className="input lines__value num"
        inputMode="decimal"
        aria-label={t("lines.move", { line: name })}
        value={draft ?? String(line.value)}
        onChange={(event) => setDraft(event.target.value)}
        onBlur={commit}
        onKeyDown={(event) => event.key === "Enter" && commit()}
      />
      <span className="faint">°{UNIT_LETTER[line.unit]}</span>
      <span className="lines__state">
        <ReachedText state={state} line={line} />
      </span>
      <button
        type="button"
        className="button button--quiet button--icon"
        aria-label={t("lines.remove", { line: name })}
        onClick={onRemove}
      >
        <CloseIcon />
      </button>
    </li>
  );
}

function AddLine({ unit, isFull, onAdd }: { unit: Unit; isFull: boolean; onAdd: (line: Threshold) => void }) {
  const { t } = useTranslation("terminal");
  const hint = useId();
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState(false);
  const add = (event: FormEvent) => {
    event.preventDefault();
    const value = parseValue(text);
    setWrong(value === null);
    if (value === null) return;
    onAdd({ value, unit });
    setText("");
  };
  if (isFull) return <p className="faint">{t("lines.full", { count: THRESHOLDS_MAX })}</p>;
  return (
    <form className="lines__item" onSubmit={add} noValidate>
      <input
        className="input lines__value num"
        inputMode="decimal"
        aria-label={t("lines.new", { unit: `°${UNIT_LETTER[unit]}` })}
        aria-invalid={wrong}
        aria-describedby={wrong ? hint : undefined}
        placeholder={t("lines.placeholder")}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setWrong(false);
        }}
      />
      <span className="faint">°{UNIT_LETTER[unit]}</span>
      <span id={hint} className="lines__state lines__state--bad" role="status">
        {wrong ? t("lines.wrong") : ""}
      </span>
      <button type="submit" className="button button--icon" aria-label={t("lines.add")}>
        <PlusIcon />
      </button>
    </form>
  );
}

export function ThresholdLines({ state, unit }: { state: CityState; unit: Unit }) {
  const { t } = useTranslation("terminal");
  const { lines, change } = useThresholds(state.city);
  return (
    <section className="lines" aria-label={t("lines.title")}>
      <h3>{t("lines.title")}</h3>
      <ul>
        {lines.map((line, index) => (
          <Line
            key={`${line.value} ${line.unit}`}
            state={state}
            line={line}
            onMove={(value) => change((all) => movedThreshold(all, index, { ...line, value }))}
            onRemove={() => change((all) => withoutThreshold(all, index))}
          />
        ))}
      </ul>
      <AddLine
        unit={unit}
        isFull={lines.length >= THRESHOLDS_MAX}
        onAdd={(line) => change((all) => withThreshold(all, line))}
      />
    </section>
  );
}
