/** How old a reading is, in the terms of its source; counts up while shown. */
import { useTranslation } from "react-i18next";
import { type LimitTable, NO_LIMITS } from "../client/city_limits";
import { type Freshness, freshnessOf } from "../data/freshness";
import { ageText } from "./age";
import { useNow } from "./use_now";

const KIND: Readonly<Record<Freshness, string>> = {
  fresh: "badge--ok",
  expected_wait: "badge--ok",
  delayed: "badge--warn",
  stale: "badge--bad",
  unknown: "",
};

interface FreshnessBadgeProps {
  source: string | null;
  observed_ms: number | null;
  limits?: LimitTable;
}

export function FreshnessBadge({ source, observed_ms, limits = NO_LIMITS }: FreshnessBadgeProps) {
  const { t } = useTranslation("terminal");
  const now_ms = useNow();
  const state = freshnessOf(limits, source, observed_ms, now_ms);
  const age = observed_ms === null ? "" : ` · ${ageText(t, now_ms - observed_ms)}`;
  return (
    <span className={`badge ${KIND[state]}`} data-freshness={state} title={t(`freshness.${state}_hint`)}>
      {t(`freshness.${state}`)}
      {age}
    </span>
  );
}
