/** Keeps the frame alive when a page throws, and says what happened. */
import { Component, type ReactNode } from "react";
import { i18next } from "../i18n";
import { Notice } from "./Notice";

interface State {
  reason: string | null;
}

export class PageBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { reason: null };

  static getDerivedStateFromError(error: unknown): State {
    return { reason: error instanceof Error ? error.message : String(error) };
  }

  override render() {
    if (this.state.reason === null) return this.props.children;
    return (
      <Notice title={i18next.t("common:page.broken")}>
        <p>{i18next.t("common:page.broken_hint", { reason: this.state.reason })}</p>
        <button type="button" className="button" onClick={() => window.location.reload()}>
          {i18next.t("common:page.reload")}
        </button>
      </Notice>
    );
  }
}
