/** Whether changes arrive, in one badge; what that means, in its title. */
import { useTranslation } from "react-i18next";
import type { SocketState } from "../client/websocket_states";
import { agoText } from "./age";
import { useEarth } from "./use_earth";
import { useNow } from "./use_now";

type Word = "connecting" | "live" | "waiting" | "offline";

/** A first attempt is "connecting"; only a line that was up can be "reconnecting". */
export function connectionWord(state: SocketState, was_live: boolean): Word {
  if (state === "live") return "live";
  if (state === "offline") return "offline";
  return was_live || state === "waiting" ? "waiting" : "connecting";
}

const TONES: Readonly<Record<Word, string>> = {
  connecting: "",
  live: "badge--ok",
  waiting: "badge--warn",
  offline: "badge--bad",
};

export function ConnectionBadge() {
  const { t } = useTranslation("earth");
  const state = useEarth((view) => view.connection);
  const was_live = useEarth((view) => view.was_live);
  const last_event_ms = useEarth((view) => view.last_event_ms);
  const now = useNow(5_000);
  const word = connectionWord(state, was_live);
  const ago = last_event_ms === null ? null : agoText(t, now - last_event_ms);
  const last = ago === null ? t("connection.no_event") : t("connection.last_event", { ago });
  return (
    <span
      className={`badge ${TONES[word]}`}
      role="status"
      aria-label={`${t("common:connection.label")}: ${t(`common:connection.${word}`)}`}
      title={`${t(word === "live" ? "connection.live" : "connection.not_live")} ${last}`}
      data-connection={word}
    >
      {t(`common:connection.${word}`)}
    </span>
  );
}

/** The same in the space of a dot and a word, where the badge's panel is closed. */
export function ConnectionDot() {
  const { t } = useTranslation("common");
  const state = useEarth((view) => view.connection);
  const was_live = useEarth((view) => view.was_live);
  const word = connectionWord(state, was_live);
  return <span className={`badge ${TONES[word]}`}>{t(`connection.${word}`)}</span>;
}
