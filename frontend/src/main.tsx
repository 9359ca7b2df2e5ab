/** Composition root of the page. */
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { http } from "./client/http";
import { createSession } from "./data/session";
import { startI18n } from "./i18n";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/toasts.css";
import { App } from "./views/App";

const session = createSession({
  http,
  setTimer: (callback, delay_ms) => window.setTimeout(callback, delay_ms),
  clearTimer: (timer: number) => window.clearTimeout(timer),
});

function dropHash(): void {
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
}

async function start(): Promise<void> {
  await startI18n();
  void session.start(window.location.hash, dropHash);
  const root = document.getElementById("root");
  if (!root) throw new Error("the page has no #root");
  createRoot(root).render(
    <StrictMode>
      <App session={session} />
    </StrictMode>,
  );
}

void start();
