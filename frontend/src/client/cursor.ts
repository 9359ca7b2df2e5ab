/** A position in one log: the log's id and a revision in it, written `<epoch>-<revision>`. */

export interface Cursor {
  epoch: string;
  revision: number;
}

const PATTERN = /^([a-z0-9]{12})-(\d{1,16})$/;

/** Null when the text is no full cursor; a bare number is none, since it does not say which log it means. */
export function parseCursor(text: unknown): Cursor | null {
  const match = typeof text === "string" ? PATTERN.exec(text) : null;
  const revision = Number(match?.[2]);
  return match?.[1] && Number.isSafeInteger(revision) ? { epoch: match[1], revision } : null;
}

export function formatCursor(cursor: Cursor): string {
  return `${cursor.epoch}-${cursor.revision}`;
}
