/**
 * What the page shows of a layer, as its server declares it: look, legend and card. The declaration may be wrong or of a
 * later version: a bad part is left out alone, and what is left is bounded.
 */
import { finite, oneOf, type Raw, record, text } from "./parse";

const CLASSES_MAX = 16;
const ROWS_MAX = 24;
const VALUES_MAX = 8;
const CHOICES_MAX = 32;
const TEXT_MAX = 80;
const SIZES_PX = [1, 64] as const;
const DECIMALS_MAX = 6;

/** A text in both languages of the page. */
export interface Labelled {
  readonly label: string;
  readonly label_zh: string;
}

export interface Paint {
  /** `#rrggbb`. */
  readonly color: string;
  /** 0..1 */
  readonly alpha: number;
}

const BYS = ["age", "value", "category"] as const;

/** One colour, one line of the legend. Its bound is that of the scale's kind; null: it holds everything else. */
export interface ScaleClass extends Paint, Labelled {
  readonly key: string;
  readonly up_to_s: number | null;
  readonly below: number | null;
  readonly equals: string | null;
  /** Instead of the look's size. */
  readonly size_px: number | null;
}

export interface Scale {
  readonly by: (typeof BYS)[number];
  /** Which value; "" for an age, which is that of `observed_at`. */
  readonly value: string;
  readonly classes: readonly ScaleClass[];
  /** Of what has no value; null: it is with everything else. */
  readonly unknown: Paint | null;
}

/** Diameter of a point or width of a line in pixels: always the same, or growing with a value. */
export type Size =
  | { readonly px: number }
  | {
      readonly value: string;
      readonly base_px: number;
      readonly factor: number;
      readonly least_px: number;
      readonly most_px: number;
      readonly else_px: number;
    };

export interface Late {
  /** The name of the value with the age limit, if there is one. */
  readonly value: string | null;
  readonly after_s: number;
  readonly alpha: number;
}

export interface Look {
  /** Null: the colour that the page gives to the kind. */
  readonly color: Scale | null;
  readonly size: Size;
  readonly late: Late | null;
  /** Of an area's inside, as a share of its colour's; null: the page's own. */
  readonly fill_alpha: number | null;
}

const FORMATS = ["text", "number", "temperature", "time", "flag", "choice"] as const;

export interface Choice extends Labelled {
  readonly equals: string;
}

export interface CardRow extends Labelled {
  readonly key: string;
  /** The first that can be shown is; all that can, where there is a `join`. */
  readonly values: readonly string[];
  readonly format: (typeof FORMATS)[number];
  readonly join: string | null;
  /** Null: one below ten, none above. */
  readonly decimals: number | null;
  readonly unit: string;
  /** The value that names the unit. */
  readonly unit_from: string | null;
  readonly choices: readonly Choice[];
  /** The text when no value can be shown; null: the row is left out. */
  readonly otherwise: Labelled | null;
}

export const PLAIN_LOOK: Look = { color: null, size: { px: 5 }, late: null, fill_alpha: null };

function word(value: unknown): string | null {
  return text(value)?.slice(0, TEXT_MAX) || null;
}

function list(value: unknown, most: number): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, most) : [];
}

function labels(raw: Raw, name = "label"): Labelled | null {
  const label = word(raw[name]);
  return label === null ? null : { label, label_zh: word(raw[`${name}_zh`]) ?? label };
}

function share(value: unknown): number | null {
  const number = finite(value);
  return number !== null && number > 0 && number <= 1 ? number : null;
}

function above0(value: unknown): number | null {
  const number = finite(value);
  return number !== null && number > 0 ? number : null;
}

function pixels(value: unknown): number | null {
  const number = above0(value);
  return number === null ? null : Math.min(SIZES_PX[1], Math.max(SIZES_PX[0], number));
}

function paint(value: unknown): Paint | null {
  const raw = record(value);
  const color = text(raw?.color);
  if (color === null || !/^#[0-9a-f]{6}$/i.test(color)) return null;
  return { color, alpha: share(raw?.alpha) ?? 1 };
}

/** `bound`: the one by which the scale divides. One that is there and not to be read is no "everything else". */
function scaleClass(value: unknown, bound: "up_to_s" | "below" | "equals"): ScaleClass | null {
  const raw = record(value) ?? {};
  const key = word(raw.key);
  const labelled = labels(raw);
  const painted = paint(raw);
  const given = bound === "equals" ? text(raw.equals) : finite(raw[bound]);
  if (key === null || labelled === null || painted === null || (given === null && raw[bound] != null)) return null;
  const bounds = { up_to_s: null, below: null, equals: null, [bound]: given };
  return { key, ...labelled, ...painted, ...bounds, size_px: pixels(raw.size_px) };
}

const BOUNDS = { age: "up_to_s", value: "below", category: "equals" } as const;

function scale(value: unknown): Scale | null {
  const raw = record(value);
  const by = oneOf(raw?.by, BYS);
  const of = by === "age" ? "" : word(raw?.value);
  if (raw === null || by === null || of === null) return null;
  const keys = new Set<string>();
  const classes = list(raw.classes, CLASSES_MAX).flatMap((item) => {
    const made = scaleClass(item, BOUNDS[by]);
    if (made === null || keys.has(made.key)) return [];
    keys.add(made.key);
    return [made];
  });
  return classes.length === 0 ? null : { by, value: of, classes, unknown: paint(raw.unknown) };
}

function size(value: unknown): Size {
  const raw = record(value) ?? {};
  const name = word(raw.value);
  const [base_px, factor] = [above0(raw.base_px), above0(raw.factor)];
  if (name === null || base_px === null || factor === null) return { px: pixels(raw.px) ?? 5 };
  const least_px = pixels(raw.least_px) ?? SIZES_PX[0];
  const most_px = Math.max(least_px, pixels(raw.most_px) ?? SIZES_PX[1]);
  return { value: name, base_px, factor, least_px, most_px, else_px: pixels(raw.else_px) ?? least_px };
}

function late(value: unknown): Late | null {
  const raw = record(value);
  const [after_s, alpha] = [above0(raw?.after_s), share(raw?.alpha)];
  return after_s === null || alpha === null ? null : { value: word(raw?.value), after_s, alpha };
}

/** Never fails: invalid parts are ignored. */
export function look(value: unknown): Look {
  const raw = record(value);
  if (raw === null) return PLAIN_LOOK;
  const { color, fill_alpha } = raw;
  return { color: scale(color), size: size(raw.size), late: late(raw.late), fill_alpha: share(fill_alpha) };
}

function choice(value: unknown): Choice[] {
  const raw = record(value) ?? {};
  const equals = word(raw.equals);
  const labelled = labels(raw);
  return equals === null || labelled === null ? [] : [{ equals, ...labelled }];
}

function decimals(value: unknown): number | null {
  const number = finite(value);
  return number !== null && Number.isInteger(number) && number >= 0 && number <= DECIMALS_MAX ? number : null;
}

function cardRow(value: unknown): CardRow | null {
  const raw = record(value) ?? {};
  const key = word(raw.key);
  const labelled = labels(raw);
  const format = oneOf(raw.format, FORMATS);
  const values = list(raw.values, VALUES_MAX).flatMap((name) => word(name) ?? []);
  if (key === null || labelled === null || format === null || values.length === 0) return null;
  return {
    key,
    ...labelled,
    values,
    format,
    join: word(raw.join),
    decimals: decimals(raw.decimals),
    unit: word(raw.unit) ?? "",
    unit_from: word(raw.unit_from),
    choices: list(raw.choices, CHOICES_MAX).flatMap(choice),
    otherwise: labels(raw, "otherwise"),
  };
}

/** The valid rows in order; a second row with the same key is dropped. */
export function card(value: unknown): readonly CardRow[] {
  const rows = new Map<string, CardRow>();
  for (const item of list(value, ROWS_MAX)) {
    const row = cardRow(item);
    if (row !== null && !rows.has(row.key)) rows.set(row.key, row);
  }
  return [...rows.values()];
}
