/** All cities with their current reading; choosing one shows it in the active place. */
import { memo, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { TerminalRow } from "../client/city_wire";
import { freshnessOf } from "../data/freshness";
import { searchRows } from "../data/rows";
import { citiesOf, withCity } from "../data/slots";
import { tempText, UNIT_LETTER } from "../draw/unit";
import { ageText } from "./age";
import { codeText } from "./reasons";
import { useNow } from "./use_now";
import { useArrangement, useCityName, useSingle, useTerminal, useTerminalState, useUnit } from "./use_terminal";

type Order = "rank" | "temp" | "max" | "age";

const VALUE: Readonly<Record<Order, (row: TerminalRow) => number>> = {
  rank: (row) => row.rank,
  temp: (row) => -(row.temp_c ?? -999),
  max: (row) => -(row.max_c ?? -999),
  age: (row) => -(row.observed_ms ?? 0),
};

interface RowProps {
  row: TerminalRow;
  now_ms: number;
  shown: boolean;
}

const Row = memo(function Row({ row, now_ms, shown }: RowProps) {
  const { t } = useTranslation("terminal");
  const { arrangement } = useTerminal();
  const nameOf = useCityName();
  const unit = useUnit(row.unit);
  const state = freshnessOf(row.limits, row.source, row.observed_ms, now_ms);
  return (
    <tr data-city={row.city} data-shown={shown}>
      <th scope="row">
        <button
          type="button"
          className="rows__city"
          title={t("rows.show", { city: nameOf(row) })}
          onClick={() => arrangement.setState((kept) => withCity(kept, kept.active, row.city))}
        >
          <span className="rows__name">{nameOf(row)}</span>
          <span className="faint">{row.icao}</span>
        </button>
      </th>
      <td className="num">
        {tempText(row.temp_c, unit)}
        <small className="faint">{row.temp_c === null ? "" : UNIT_LETTER[unit]}</small>
      </td>
      <td className="num dim">{tempText(row.max_c, unit)}</td>
      <td className={`num rows__age rows__age--${state}`} title={t(`freshness.${state}`)}>
        {row.observed_ms === null ? t("rows.no_data") : ageText(t, now_ms - row.observed_ms)}
      </td>
    </tr>
  );
});

function Head({ order, setOrder }: { order: Order; setOrder: (order: Order) => void }) {
  const { t } = useTranslation("terminal");
  const columns: readonly [Order, string][] = [
    ["rank", "rows.city"],
    ["temp", "rows.now"],
    ["max", "rows.max"],
    ["age", "rows.age"],
  ];
  return (
    <thead>
      <tr>
        {columns.map(([key, label]) => (
          <th key={key} scope="col" aria-sort={order === key && key !== "rank" ? "descending" : undefined}>
            <button type="button" data-on={order === key} onClick={() => setOrder(key)}>
              {t(label)}
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Trouble() {
  const { t } = useTranslation("terminal");
  const { terminal } = useTerminal();
  const phase = useTerminalState((state) => state.rows_phase);
  const error = useTerminalState((state) => state.rows_error);
  const count = useTerminalState((state) => state.rows.length);
  if (error) {
    return (
      <div className="rows__message rows__message--bad" role="alert">
        <p>{t(count > 0 ? "rows.old" : "rows.failed", { code: codeText(error) })}</p>
        <button type="button" className="button" onClick={() => terminal.retryRows()}>
          {t("tile.retry")}
        </button>
      </div>
    );
  }
  if (phase === "loading") return <p className="rows__message">{t("rows.loading")}</p>;
  return count === 0 ? <p className="rows__message">{t("rows.none")}</p> : null;
}

export function CityList() {
  const { t } = useTranslation("terminal");
  const rows = useTerminalState((state) => state.rows);
  const aliases = useTerminalState((state) => state.aliases);
  const single = useSingle();
  const shown = useArrangement((kept) => citiesOf(kept, single));
  const now_ms = useNow(1_000);
  const [query, setQuery] = useState("");
  const [order, setOrder] = useState<Order>("rank");
  const found = useMemo(() => {
    if (query) return searchRows(rows, query, aliases);
    return [...rows].sort((a, b) => VALUE[order](a) - VALUE[order](b) || a.rank - b.rank);
  }, [rows, aliases, query, order]);
  return (
    <aside className="rows" aria-label={t("rows.label")}>
      <input
        className="input rows__search"
        type="search"
        aria-label={t("picker.label")}
        placeholder={t("picker.placeholder")}
        value={query}
        onChange={(event) => setQuery(event.target.value)}
      />
      <Trouble />
      <div className="rows__scroll">
        <table>
          <Head order={order} setOrder={setOrder} />
          <tbody>
            {found.map((row) => (
              <Row key={row.city} row={row} now_ms={now_ms} shown={shown.includes(row.city)} />
            ))}
          </tbody>
        </table>
        {rows.length > 0 && found.length === 0 ? <p className="rows__message">{t("picker.none", { query })}</p> : null}
      </div>
    </aside>
  );
}
