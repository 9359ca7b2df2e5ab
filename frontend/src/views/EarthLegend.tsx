/** What the colours of a layer mean, with how many objects have each. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Feature } from "../client/earth_types";
import type { Look } from "../client/presentation_wire";
import { legendOf } from "../draw/layer_legend";
import { countText } from "./earth_format";
import { labelIn } from "./use_earth";
import { useNow } from "./use_now";

interface Props {
  look: Look;
  /** Of the layer: the sign beside a colour is a dot, a stroke or a field. */
  kind: string;
  features: readonly Feature[];
  version: number;
}

export function Legend({ look, kind, features, version }: Props) {
  const { i18n } = useTranslation("earth");
  const now_ms = useNow(60_000);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` stands for the contents of `features`
  const entries = useMemo(() => legendOf(look, features, now_ms), [look, features, version, now_ms]);
  if (entries.length === 0) return null;
  return (
    <ul className="layer__legend" data-kind={kind}>
      {entries.map(({ of, count }) => (
        <li key={of.key}>
          <i style={{ background: of.color }} aria-hidden="true" />
          <span className="dim">{labelIn(of, i18n.language)}</span>
          <span className="num">{countText(count, i18n.language)}</span>
        </li>
      ))}
    </ul>
  );
}
