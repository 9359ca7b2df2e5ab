/** What the Earth page keeps in the browser: which layers are switched off, whether the job panel is open. */

const HIDDEN = "planetwire.earth.hidden";
const JOBS = "planetwire.earth.jobs";

function read(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    // Refused or spoilt storage: the defaults are good.
    return null;
  }
}

function write(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Private windows may refuse storage: the choice then lasts for the visit.
  }
}

export function readHidden(): string[] {
  const kept = read(HIDDEN);
  return Array.isArray(kept) ? kept.filter((id): id is string => typeof id === "string") : [];
}

export function keepHidden(id: string, hidden: boolean): void {
  const rest = readHidden().filter((other) => other !== id);
  write(HIDDEN, hidden ? [...rest, id] : rest);
}

export function readJobsOpen(): boolean {
  return read(JOBS) !== false;
}

export function keepJobsOpen(open: boolean): void {
  write(JOBS, open);
}
