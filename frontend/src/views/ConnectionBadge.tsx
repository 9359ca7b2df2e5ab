/** State of the observation stream in one word. */
import { useTranslation } from "react-i18next";
import type { StreamState } from "../client/sse_states";
import { useTerminalState } from "./use_terminal";

const LOOK: Readonly<Record<StreamState, { word: string; kind: string }>> = {
  idle: { word: "idle", kind: "" },
  preparing: { word: "connecting", kind: "" },
  connecting: { word: "connecting", kind: "" },
  live: { word: "live", kind: "badge--ok" },
  waiting: { word: "waiting", kind: "badge--warn" },
  offline: { word: "offline", kind: "badge--bad" },
};

export function ConnectionBadge() {
  const { t } = useTranslation("common");
  const connection = useTerminalState((state) => state.connection);
  const { word, kind } = LOOK[connection];
  return (
    <output className={`badge ${kind}`} data-connection={connection} aria-label={t("connection.label")}>
      {t(`connection.${word}`)}
    </output>
  );
}
