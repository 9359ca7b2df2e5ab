/** The start of the record or body at fault: folded, as it came, to be selected or copied. */
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";

function selectAll(element: HTMLElement): void {
  const range = document.createRange();
  range.selectNodeContents(element);
  const selection = window.getSelection();
  selection?.removeAllRanges();
  selection?.addRange(range);
}

export function JobSample({ sample }: { sample: string }) {
  const { t } = useTranslation("earth");
  const text = useRef<HTMLPreElement>(null);
  const [outcome, setOutcome] = useState<"copied" | "copy_by_hand" | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(sample);
      setOutcome("copied");
    } catch {
      // Without TLS browsers keep the clipboard to themselves.
      if (text.current) selectAll(text.current);
      setOutcome("copy_by_hand");
    }
  };
  return (
    <details className="sample">
      <summary>{t("jobs.sample")}</summary>
      <pre ref={text} className="sample__text">
        {sample}
      </pre>
      <div className="sample__copy">
        <button type="button" className="button" onClick={() => void copy()}>
          {t("jobs.copy")}
        </button>
        <span className="dim" role="status">
          {outcome ? t(`jobs.${outcome}`) : null}
        </span>
      </div>
    </details>
  );
}
