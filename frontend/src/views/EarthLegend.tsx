/** What the colours of a layer mean, with how many objects have each. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Feature } from "../client/earth_types";
import { legendOf } from "../draw/layer_legend";
import { countText } from "./earth_format";
import { useNow } from "./use_now";

export function Legend({ features, version }: { features: readonly Feature[]; version: number }) {
  const { t, i18n } = useTranslation("earth");
  const now_ms = useNow(60_000);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` stands for the contents of `features`
  const entries = useMemo(() => legendOf(features, now_ms), [features, version, now_ms]);
  if (entries.length === 0) return null;
  return (
    <ul className="layer__legend">
      {entries.map(({ key, color, count }) => (
        <li key={key}>
          <i style={{ background: color }} aria-hidden="true" />
          <span className="dim">{t(`legend.${key}`)}</span>
          <span className="num">{countText(count, i18n.language)}</span>
        </li>
      ))}
    </ul>
  );
}
