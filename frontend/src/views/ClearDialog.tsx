/** Asks before the data of a source is deleted, and says how many rows that is. It cannot be undone. */
import { useCallback, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { SourceRows } from "../client/job_notes_wire";
import { reasonText } from "./reasons";
import { useJobsAccess } from "./use_jobs";

type Counted = SourceRows | "counting" | { failed: string };

function useRowsOf(source: string): { counted: Counted; again: () => void } {
  const jobs = useJobsAccess();
  const [counted, setCounted] = useState<Counted>("counting");
  const latest = useRef(0);
  const count = useCallback(async () => {
    latest.current += 1;
    const mine = latest.current;
    const update = (next: Counted) => {
      if (mine === latest.current) setCounted(next);
    };
    update("counting");
    try {
      update(await jobs.rowsOf(source));
    } catch (error) {
      update({ failed: reasonText(error) });
    }
  }, [jobs, source]);
  useEffect(() => {
    void count();
    return () => {
      latest.current += 1;
    };
  }, [count]);
  return { counted, again: () => void count() };
}

function Amount({ counted, onAgain }: { counted: Counted; onAgain: () => void }) {
  const { t } = useTranslation("earth");
  if (counted === "counting") return <p role="status">{t("clear.counting")}</p>;
  if ("failed" in counted) {
    return (
      <p className="dialog__error" role="alert">
        {t("clear.not_counted", { reason: counted.failed })}{" "}
        <button type="button" className="link" onClick={onAgain}>
          {t("clear.count_again")}
        </button>
      </p>
    );
  }
  const { facts, derived } = counted;
  if (facts + derived === 0) return <p role="status">{t("clear.nothing")}</p>;
  return (
    <p role="status">
      <strong className="num">{t("clear.facts", { count: facts })}</strong>
      {derived > 0 ? <> {t("clear.derived", { count: derived })}</> : null}
    </p>
  );
}

/** `job`: the clear whose work would be repeated; none for a first one. */
export function ClearDialog(props: { source: string; job?: number; onYes: () => void; onClose: () => void }) {
  const { source, job, onYes, onClose } = props;
  const { t } = useTranslation("earth");
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const aboutId = useId();
  const { counted, again } = useRowsOf(source);
  const known = counted !== "counting" && !("failed" in counted);

  useEffect(() => {
    dialog.current?.showModal();
  }, []);

  // A busy browser fires the close event a frame later; reopening at once must not wait for it.
  const close = () => {
    dialog.current?.close();
    onClose();
  };
  const yes = () => {
    close();
    onYes();
  };
  return (
    <dialog
      ref={dialog}
      className="dialog"
      role="alertdialog"
      aria-labelledby={titleId}
      aria-describedby={aboutId}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClose={onClose}
    >
      <div className="dialog__body">
        <h2 id={titleId}>{t("clear.title", { source })}</h2>
        <div id={aboutId} className="clear__about">
          {job === undefined ? null : <p className="dim">{t("clear.repeats", { id: job })}</p>}
          <Amount counted={counted} onAgain={again} />
          <p className="dim">{t("clear.final")}</p>
        </div>
        <div className="dialog__actions">
          <button type="button" className="button button--quiet" onClick={close}>
            {t("sources.confirm_no")}
          </button>
          <button type="button" className="button button--danger" disabled={!known} onClick={yes}>
            {t("sources.confirm_yes")}
          </button>
        </div>
      </div>
    </dialog>
  );
}
