/** The Sources page: every source with its state in a word, what is wrong first, and what can be done about it. */
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { http } from "../client/http";
import { browserTimers } from "../client/timers";
import { openSocket } from "../client/websocket";
import { createSources, type Sources as SourcesStore } from "../data/sources";
import "../styles/jobs.css";
import "../styles/sources.css";
import { connectionWord } from "./EarthConnection";
import { JobNews } from "./JobNews";
import { Notice } from "./Notice";
import { codeText } from "./reasons";
import { SourceList } from "./SourceList";
import { JobsContext, useJobs } from "./use_jobs";
import { useSession } from "./use_session";

/** One store a visit of the page; leaving the page ends its socket and its timers. `ledger`: whether jobs run here. */
function useSourcesStore(ledger: boolean): SourcesStore | null {
  const [sources, setSources] = useState<SourcesStore | null>(null);
  useEffect(() => {
    const open = ledger ? () => openSocket(window.location) : null;
    const made = createSources({ http, timers: browserTimers, random: Math.random, open });
    const wake = () => {
      if (!document.hidden) made.wake();
    };
    document.addEventListener("visibilitychange", wake);
    window.addEventListener("online", wake);
    setSources(made);
    made.start();
    return () => {
      document.removeEventListener("visibilitychange", wake);
      window.removeEventListener("online", wake);
      made.stop();
    };
  }, [ledger]);
  return sources;
}

const TONES = { connecting: "", live: "badge--ok", waiting: "badge--warn", offline: "badge--bad" } as const;

function Connection({ sources }: { sources: SourcesStore }) {
  const { t } = useTranslation("sources");
  const { connection, was_live } = useStore(sources.store);
  const word = connectionWord(connection, was_live);
  return (
    <span
      className={`badge ${TONES[word]}`}
      role="status"
      aria-label={`${t("common:connection.label")}: ${t(`common:connection.${word}`)}`}
      title={t(word === "live" ? "connection_live" : "connection_not_live")}
      data-connection={word}
    >
      {t(`common:connection.${word}`)}
    </span>
  );
}

/** Strangers are asked to sign in, once for the whole page; who may only look is told so. */
function Rights() {
  const { t } = useTranslation("sources");
  const { phase, signed_in, may_operate, openSignIn } = useSession();
  if (may_operate || phase === "loading") return null;
  if (signed_in) return <p className="dim">{t("viewer")}</p>;
  return (
    <p className="dim">
      {t("signed_out")}{" "}
      <button type="button" className="button" aria-label={t("sign_in_label")} onClick={openSignIn}>
        {t("common:session.sign_in")}
      </button>
    </p>
  );
}

function Trouble() {
  const { t } = useTranslation("sources");
  const phase = useJobs((view) => view.phase);
  const code = useJobs((view) => view.error);
  if (phase !== "failed") return null;
  return (
    <p className="sourcespage__trouble" role="status">
      {t("failed", { code: codeText(code) })}
    </p>
  );
}

function Page({ sources, ledger }: { sources: SourcesStore; ledger: boolean }) {
  const { t } = useTranslation("sources");
  return (
    <div className="sourcespage">
      <header className="sourcespage__head">
        <h1>{t("title")}</h1>
        {ledger ? <Connection sources={sources} /> : <span className="badge">{t("polled")}</span>}
        <div className="topbar__fill" />
        <Rights />
      </header>
      <JobNews />
      <Trouble />
      <SourceList />
    </div>
  );
}

export default function Sources() {
  const { t } = useTranslation("common");
  const { halves, signed_in, phase } = useSession();
  const ledger = halves.includes("earth");
  const known = phase !== "loading";
  if (!known) return <Notice title={t("page.loading")} />;
  // Whoever signs in sees more of each source: everything is read anew.
  return <Opened key={String(signed_in)} ledger={ledger} />;
}

function Opened({ ledger }: { ledger: boolean }) {
  const { t } = useTranslation("common");
  const sources = useSourcesStore(ledger);
  if (!sources) return <Notice title={t("page.loading")} />;
  return (
    <JobsContext.Provider value={sources.jobs}>
      <Page sources={sources} ledger={ledger} />
    </JobsContext.Provider>
  );
}
