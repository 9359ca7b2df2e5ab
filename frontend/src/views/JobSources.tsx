/** The sources that feed layers: when they last and next run, and what can be done with them. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { SourceInfo } from "../client/earth_types";
import { ageText, agoText } from "./age";
import { timeOf } from "./earth_format";
import { FoldButton } from "./FoldButton";
import { CollectAction, EnabledSwitch } from "./JobSourceActions";
import { JobSourceDetails } from "./JobSourceDetails";
import { codeText } from "./reasons";
import { useEarth } from "./use_earth";
import { useJobs } from "./use_jobs";
import { useNow } from "./use_now";
import { useSession } from "./use_session";

/** A younger age is shown as "now". */
const SOON_MS = 5_000;

function Schedule({ source }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const now = useNow();
  const last_ms = timeOf(source.last_success_at);
  const next_ms = timeOf(source.next_run_at);
  const cool_ms = timeOf(source.cooldown_until);
  const cooling = cool_ms !== null && cool_ms > now;
  const next =
    next_ms === null || next_ms - now < SOON_MS
      ? t("sources.due")
      : t("sources.next", { age: ageText(t, next_ms - now) });
  return (
    <p className="job__facts num">
      <span className="dim">
        {last_ms === null ? t("sources.never") : t("sources.last", { ago: agoText(t, now - last_ms) })}
      </span>
      <span className="faint">{source.enabled ? next : t("sources.off")}</span>
      {source.paused ? <span className="is-stale">{t("sources.paused")}</span> : null}
      {cooling ? <span className="is-stale">{t("sources.cooldown", { age: ageText(t, cool_ms - now) })}</span> : null}
    </p>
  );
}

function SignInInstead({ source }: { source: string }) {
  const { t } = useTranslation("earth");
  const { openSignIn } = useSession();
  return (
    <button type="button" className="button" aria-label={t("sources.sign_in_label", { source })} onClick={openSignIn}>
      {t("sources.sign_in")}
    </button>
  );
}

function SourceRow({ source: info }: { source: SourceInfo }) {
  const { t } = useTranslation("earth");
  const { signed_in, may_operate } = useSession();
  const [open, setOpen] = useState(false);
  const { source } = info;
  const about = t("sources.about_label", { source });
  return (
    <li className="source" data-source={source}>
      <div className="source__head">
        {may_operate ? <EnabledSwitch source={info} /> : null}
        <code>{source}</code>
        {may_operate ? <CollectAction source={source} /> : null}
        {signed_in ? null : <SignInInstead source={source} />}
        <FoldButton open={open} label={about} className="layer__more" onToggle={() => setOpen(!open)} />
      </div>
      <Schedule source={info} />
      {info.last_error_code && !open ? (
        <p className="job__error" title={info.last_error ?? undefined}>
          {t("sources.error", { code: codeText(info.last_error_code) })}
        </p>
      ) : null}
      {open ? <JobSourceDetails source={info} /> : null}
    </li>
  );
}

/** Sources of layers only: observation feeds run by their own schedule and take no jobs. */
export function JobSources() {
  const { t } = useTranslation("earth");
  const layers = useEarth((view) => view.layers);
  const sources = useJobs((view) => view.sources);
  const phase = useJobs((view) => view.phase);
  const fed = new Set(layers.flatMap((info) => info.sources));
  const shown = sources.filter(({ source }) => fed.has(source));
  if (shown.length === 0) return phase === "ready" ? <p className="jobs__none dim">{t("sources.none")}</p> : null;
  return (
    <ul className="sources" aria-label={t("sources.title")}>
      {shown.map((source) => (
        <SourceRow key={source.source} source={source} />
      ))}
    </ul>
  );
}
