/** Name, pages, language, session. */
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";
import { LANGUAGES, setLanguage } from "../i18n";
import { reasonText } from "./reasons";
import { toastOnce } from "./toasts";
import { useSession } from "./use_session";

export function Mark() {
  return (
    <svg viewBox="0 0 32 32" fill="none" strokeWidth="2.2" strokeLinecap="round" aria-hidden="true">
      <circle cx="16" cy="16" r="10" stroke="var(--accent)" />
      <path d="M1 19h8.5l3-8.500 5.500 14 3.500-8.500H31" stroke="var(--text)" strokeLinejoin="round" />
    </svg>
  );
}

function Pages() {
  const { t } = useTranslation("common");
  const { halves } = useSession();
  const [path] = useLocation();
  return (
    <nav className="segmented" aria-label={t("nav.label")}>
      {[...halves, "sources" as const].map((page) => (
        <Link key={page} href={`/${page}`} aria-current={path.startsWith(`/${page}`) ? "page" : undefined}>
          {t(`nav.${page}`)}
        </Link>
      ))}
    </nav>
  );
}

function LanguageSwitch() {
  const { t, i18n } = useTranslation("common");
  return (
    <fieldset className="segmented topbar__language" aria-label={t("language.label")}>
      {LANGUAGES.map((language) => (
        <button
          key={language}
          type="button"
          lang={language}
          aria-pressed={i18n.language === language}
          aria-label={t(`language.${language}`)}
          onClick={() => void setLanguage(language)}
        >
          {t(`language.${language}_short`)}
        </button>
      ))}
    </fieldset>
  );
}

function SessionButton() {
  const { t } = useTranslation("common");
  const { phase, signed_in, who, role, session, openSignIn } = useSession();
  if (!signed_in) {
    return (
      <button type="button" className="button" disabled={phase === "loading"} onClick={openSignIn}>
        {t("session.sign_in")}
      </button>
    );
  }
  const leave = () =>
    session.signOut().catch((error: unknown) => {
      toastOnce("session.sign_out", "error", t("session.sign_out_failed", { reason: reasonText(error) }));
    });
  return (
    <button
      type="button"
      className="button button--quiet"
      title={role === null ? undefined : t("session.as", { who, role: t(`session.role_${role}`) })}
      onClick={() => void leave()}
    >
      {t("session.sign_out")}
    </button>
  );
}

export function TopBar() {
  const { t } = useTranslation("common");
  return (
    <header className="topbar">
      <Link href="/" className="brand" aria-label={t("app.home")}>
        <Mark />
        <span>{t("app.name")}</span>
      </Link>
      <Pages />
      <div className="topbar__fill" />
      <LanguageSwitch />
      <SessionButton />
    </header>
  );
}
