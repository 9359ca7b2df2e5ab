/** The numbers of a chart tile: city and local time, the temperature now, the high of the day, how fresh it is. */
import { useTranslation } from "react-i18next";
import type { CityState } from "../data/city";
import type { CityView } from "../data/terminal";
import { clockText } from "../draw/time_axis";
import { tempText, UNIT_LETTER, type Unit } from "../draw/unit";
import { FreshnessBadge } from "./FreshnessBadge";
import { sourceName } from "./names";
import { codeText } from "./reasons";
import { useNow } from "./use_now";
import { useCityName, useRow, useTerminal, useUnit } from "./use_terminal";

interface TileHeaderProps {
  city: string;
  view: CityView | undefined;
  picking: boolean;
  onPick: () => void;
  onClear: () => void;
}

function LocalTime({ zone }: { zone: string }) {
  const { t, i18n } = useTranslation("terminal");
  const now_ms = useNow();
  return (
    <time className="tile__clock num" title={`${t("tile.local_time")} · ${zone}`}>
      {clockText(i18n.language, zone, now_ms)}
    </time>
  );
}

function MarkBadge({ city, view }: { city: string; view: CityView }) {
  const { t } = useTranslation("terminal");
  const { terminal } = useTerminal();
  if (view.mark === "none") return null;
  if (view.mark === "resyncing") {
    return (
      <span className="badge badge--warn" data-mark="resyncing" title={t("mark.resyncing_hint")}>
        {t("mark.resyncing")}
      </span>
    );
  }
  return (
    <button
      type="button"
      className="badge badge--bad badge--button"
      data-mark="gap"
      title={t("mark.gap_hint", { code: codeText(view.error) })}
      onClick={() => terminal.retry(city)}
    >
      {t("mark.gap")}
    </button>
  );
}

function Numbers({ state, unit }: { state: CityState; unit: Unit }) {
  const { t, i18n } = useTranslation("terminal");
  const { headline, high, timezone } = state;
  const symbol = UNIT_LETTER[unit];
  const highAt = high && high.observed_ms !== null ? clockText(i18n.language, timezone, high.observed_ms) : null;
  return (
    <dl className="tile__numbers">
      <div className="tile__now">
        <dt className="visually-hidden">{t("tile.now")}</dt>
        <dd className="num" data-field="temp">
          {tempText(headline?.temp_c ?? null, unit)}
          <small>{symbol}</small>
        </dd>
      </div>
      <div className="tile__high">
        <dt>{t("tile.high")}</dt>
        <dd className="num" data-field="high">
          {tempText(high?.temp_c ?? null, unit)}
          {highAt ? <span className="tile__at"> {t("tile.at", { time: highAt })}</span> : null}
        </dd>
      </div>
      {headline ? (
        <div className="tile__source">
          <dt className="visually-hidden">{t("tile.source")}</dt>
          <dd>
            {sourceName(t, headline.source)}
            {headline.station_code ? ` ${headline.station_code}` : ""}
          </dd>
        </div>
      ) : null}
    </dl>
  );
}

export function TileHeader({ city, view, picking, onPick, onClear }: TileHeaderProps) {
  const { t } = useTranslation("terminal");
  const nameOf = useCityName();
  const row = useRow(city);
  const state = view?.state ?? null;
  const unit = useUnit(state?.unit ?? row?.unit ?? "celsius");
  const name = row ? nameOf(row) : (state?.display_name ?? city);
  const zone = state?.timezone ?? row?.timezone;
  return (
    <header className="tile__head">
      <div className="tile__title">
        <button
          type="button"
          className="tile__city"
          aria-expanded={picking}
          title={t("tile.change_city")}
          onClick={onPick}
        >
          <h2>{name}</h2>
          <span className="faint">{row?.icao}</span>
          <svg viewBox="0 0 10 6" aria-hidden="true">
            <path d="M1 1l4 4 4-4" fill="none" stroke="currentColor" strokeWidth="1.5" />
          </svg>
        </button>
        {zone ? <LocalTime zone={zone} /> : null}
        <span className="tile__fill" />
        {view ? <MarkBadge city={city} view={view} /> : null}
        <FreshnessBadge
          source={state?.headline?.source ?? null}
          observed_ms={state?.headline?.observed_ms ?? null}
          limits={state?.limits}
        />
        <button type="button" className="tile__close" aria-label={t("tile.clear", { city: name })} onClick={onClear}>
          <svg viewBox="0 0 10 10" aria-hidden="true">
            <path d="M1.500 1.500l7 7m0-7l-7 7" stroke="currentColor" strokeWidth="1.4" />
          </svg>
        </button>
      </div>
      {state ? <Numbers state={state} unit={unit} /> : null}
    </header>
  );
}
