/** Asks for the admin token; closes when the server accepts it. */
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { HttpError } from "../client/http";
import type { Session } from "../data/session";
import { reasonText } from "./reasons";

function reasonKey(error: unknown): "wrong" | "throttled" | "failed" {
  if (error instanceof HttpError && (error.status === 401 || error.status === 403)) return "wrong";
  if (error instanceof HttpError && error.status === 429) return "throttled";
  return "failed";
}

export function SignInDialog({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation("common");
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    dialog.current?.showModal();
  }, []);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await session.signInWithToken(token.trim());
      onClose();
    } catch (failure) {
      setError(t(`session.${reasonKey(failure)}`, { reason: reasonText(failure) }));
    } finally {
      setBusy(false);
    }
  }

  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={titleId} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={titleId}>{t("session.title")}</h2>
        <p className="dim">{t("session.about")}</p>
        <label className="field">
          {t("session.token")}
          <input
            className="input"
            type="password"
            autoComplete="current-password"
            required
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {error ? (
          <p className="dialog__error" role="alert">
            {error}
          </p>
        ) : null}
        <div className="dialog__actions">
          <button type="button" className="button button--quiet" onClick={onClose}>
            {t("session.cancel")}
          </button>
          <button type="submit" className="button button--primary" disabled={busy || token.trim() === ""}>
            {t("session.submit")}
          </button>
        </div>
      </form>
    </dialog>
  );
}
