/** The frame: top bar, banners, the page of the address, toasts, the sign-in dialog. */
import { type ComponentType, lazy, type RefObject, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Toaster } from "sonner";
import { Link, Redirect, Route, Switch } from "wouter";
import type { Half } from "../client/session_wire";
import type { Session } from "../data/session";
import { Banners } from "./Banners";
import { Notice } from "./Notice";
import { PageBoundary } from "./PageBoundary";
import { SignInDialog } from "./SignInDialog";
import { TopBar } from "./TopBar";
import { toastOnce } from "./toasts";
import { useMedia } from "./use_media";
import { SessionContext, useSession } from "./use_session";

// Each page is its own chunk; the globe's is large and is fetched on /earth alone.
const Earth = lazy(() => import("./Earth"));
const Terminal = lazy(() => import("./Terminal"));
const Sources = lazy(() => import("./Sources"));

/** The tab of the browser names the page. */
function usePageTitle(page: Half | "sources"): void {
  const { t } = useTranslation("common");
  const name = t(`nav.${page}`);
  useEffect(() => {
    document.title = `${name} · ${t("app.name")}`;
  }, [name, t]);
}

function HalfPage({ half, page: Page }: { half: Half; page: ComponentType }) {
  const { t } = useTranslation("common");
  const { halves } = useSession();
  usePageTitle(half);
  if (halves.includes(half)) return <Page />;
  const other: Half = half === "earth" ? "terminal" : "earth";
  return (
    <Notice title={t("page.half_off")}>
      <p>{t("page.half_off_hint")}</p>
      <Link className="button" href={`/${other}`}>
        {t("page.to_other", { page: t(`nav.${other}`) })}
      </Link>
    </Notice>
  );
}

/** Whichever halves are on: each has sources. */
function SourcesPage() {
  usePageTitle("sources");
  return <Sources />;
}

function NotFound() {
  const { t } = useTranslation("common");
  return (
    <Notice title={t("page.not_found")}>
      <p>{t("page.not_found_hint")}</p>
    </Notice>
  );
}

function Routes() {
  const { halves, phase } = useSession();
  const { t } = useTranslation("common");
  // Which page `/` means is known only once the server said which halves run.
  const start = phase === "loading" ? <Notice title={t("page.loading")} /> : <Redirect to={`/${halves[0]}`} replace />;
  return (
    <Suspense fallback={<Notice title={t("page.loading")} />}>
      <Switch>
        <Route path="/">{start}</Route>
        <Route path="/earth">
          <HalfPage half="earth" page={Earth} />
        </Route>
        <Route path="/terminal">
          <HalfPage half="terminal" page={Terminal} />
        </Route>
        <Route path="/sources">
          <SourcesPage />
        </Route>
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </Suspense>
  );
}

const EDGES = { top: "var(--toast-top)", right: "var(--toast-right)", bottom: "var(--toast-bottom)" };
const PHONE_EDGES = { ...EDGES, left: "var(--toast-left)", right: "var(--toast-left)" };

/** Beside the lists and not over them; on a phone above the sheets. Each page says in its styles where that is. */
function Toasts() {
  const { t } = useTranslation("common");
  const onPhone = useMedia("(max-width: 900px)");
  return (
    <Toaster
      theme="dark"
      position={onPhone ? "top-center" : "bottom-right"}
      offset={EDGES}
      mobileOffset={PHONE_EDGES}
      visibleToasts={onPhone ? 2 : 4}
      closeButton
      containerAriaLabel={t("toasts.label")}
      toastOptions={{ closeButtonAriaLabel: t("toasts.close") }}
    />
  );
}

/** Shown while it has the keyboard: past the bar, to the page itself. */
function SkipLink({ page }: { page: RefObject<HTMLElement | null> }) {
  const { t } = useTranslation("common");
  return (
    <button type="button" className="button skip" onClick={() => page.current?.focus()}>
      {t("app.skip")}
    </button>
  );
}

function CodeNotice() {
  const { t } = useTranslation("common");
  const { code_refused } = useSession();
  useEffect(() => {
    if (code_refused) toastOnce("session.code", "warning", t("session.code_refused"));
  }, [code_refused, t]);
  return null;
}

export function App({ session }: { session: Session }) {
  const { t } = useTranslation("common");
  const [asking, setAsking] = useState(false);
  const page = useRef<HTMLElement>(null);
  const access = useMemo(() => ({ session, openSignIn: () => setAsking(true) }), [session]);
  return (
    <SessionContext.Provider value={access}>
      <div className="shell">
        <SkipLink page={page} />
        <TopBar />
        <Banners />
        <main ref={page} className="page" tabIndex={-1} aria-label={t("app.name")}>
          <PageBoundary>
            <Routes />
          </PageBoundary>
        </main>
      </div>
      <CodeNotice />
      {asking ? <SignInDialog session={session} onClose={() => setAsking(false)} /> : null}
      <Toasts />
    </SessionContext.Provider>
  );
}
