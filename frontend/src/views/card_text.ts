/** One row of a card as text, by the format that its layer declares. */
import type { CardRow, Labelled } from "../client/presentation_wire";
import type { Values } from "../draw/layer_values";
import { numberOf } from "../draw/layer_values";
import { tempText } from "../draw/unit";
import { decimalText, timeOf } from "./earth_format";
import { labelIn } from "./use_earth";

/** A time is shown with its age, so its text is made by the component; null: nothing can be shown. */
export type Shown = string | { at_ms: number } | null;

/** Signs that stand at their number without a space. */
const CLOSE = /^[°′″%‰]/;

function textOf(value: unknown): string | null {
  if (typeof value === "string") return value || null;
  return numberOf(value) === null ? null : String(value);
}

function digits(value: number, decimals: number, language: string): string {
  const format = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return new Intl.NumberFormat(language, format).format(Number(value.toFixed(decimals)));
}

function numberText(row: CardRow, value: unknown, values: Values, language: string): string | null {
  const number = numberOf(value);
  if (number === null) return null;
  const text = row.decimals === null ? decimalText(number, language) : digits(number, row.decimals, language);
  const named = row.unit_from === null ? null : values(row.unit_from);
  const unit = (typeof named === "string" && named) || row.unit;
  return unit === "" || CLOSE.test(unit) ? text + unit : `${text} ${unit}`;
}

function temperatureText(value: unknown): string | null {
  const temp_c = numberOf(value);
  return temp_c === null ? null : `${tempText(temp_c, "celsius")}C`;
}

/** A value that the declaration does not know is shown as it is. */
function choiceText(row: CardRow, name: string | null, language: string): string | null {
  const found = row.choices.find(({ equals }) => equals === name);
  return found ? labelIn(found, language) : null;
}

function partText(row: CardRow, value: unknown, values: Values, language: string): string | null {
  switch (row.format) {
    case "number":
      return numberText(row, value, values, language);
    case "temperature":
      return temperatureText(value);
    case "choice":
      return choiceText(row, textOf(value), language) ?? textOf(value);
    case "flag":
      return choiceText(row, value ? "yes" : value === undefined || value === null ? null : "no", language);
    default:
      return textOf(value);
  }
}

function timeShown(row: CardRow, values: Values): Shown {
  for (const name of row.values) {
    const value = values(name);
    const at_ms = typeof value === "string" ? timeOf(value) : null;
    if (at_ms !== null) return { at_ms };
  }
  return null;
}

function valueShown(row: CardRow, values: Values, language: string): Shown {
  if (row.format === "time") return timeShown(row, values);
  const parts = row.values.flatMap((name) => partText(row, values(name), values, language) ?? []);
  return (row.join === null ? parts[0] : parts.join(row.join)) || null;
}

export function rowShown(row: CardRow, values: Values, language: string): Shown {
  const otherwise: Labelled | null = row.otherwise;
  return valueShown(row, values, language) ?? (otherwise && labelIn(otherwise, language));
}
