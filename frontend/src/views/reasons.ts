/** Why something did not work, in the reader's language. */
import { HttpError } from "../client/http";
import { errorCode } from "../data/layer";
import { i18next } from "../i18n";

/** What a code of the server's, or of the connection's, means; a code of a later version as it is. */
export function codeText(code: string | null): string {
  if (code === null) return "";
  if (i18next.exists(`codes:${code}`)) return i18next.t(`codes:${code}`);
  const status = /^http_(\d{3})$/.exec(code)?.[1];
  return status ? i18next.t("codes:http", { status }) : code;
}

/** The server's message is English and more detailed than its code; in other languages the code is translated. */
function refusalText({ code, message }: HttpError): string {
  const isRead = i18next.language === "en" || !i18next.exists(`codes:${code}`);
  return isRead && message !== "" ? message : codeText(code);
}

/** Of whatever a request was rejected with. */
export function reasonText(error: unknown): string {
  return error instanceof HttpError ? refusalText(error) : codeText(errorCode(error));
}
