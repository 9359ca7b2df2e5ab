/** What went wrong with a run: the code to look up, what it means where the reader needs that, and the worker's words. */
import { useTranslation } from "react-i18next";
import { codeText } from "./reasons";

export function Fault({ code, text }: { code: string | null; text: string | null }) {
  const { i18n } = useTranslation();
  // The worker's words are English; the code is all that can be said to others.
  const isRead = i18n.language === "en";
  const meaning = codeText(code);
  return (
    <>
      <code>{code}</code>
      {isRead || meaning === code ? null : <span> {meaning}</span>}
      {text ? <span lang="en"> {text}</span> : null}
    </>
  );
}
