/** The session: who may write, and what this server runs. */
import type { Http } from "./http";

export type Half = "earth" | "terminal";

/** Each includes the rights of the ones before. */
export type Role = "viewer" | "operator" | "admin";

export interface SessionInfo {
  signed_in: boolean;
  /** Name of the token or person; null without a session. */
  who: string | null;
  role: Role | null;
  simulated: boolean;
  halves: Half[];
  version: string;
  /** State of the disk budget; only for signed-in visitors. */
  disk?: "near" | "over" | null;
}

export function fetchSession(http: Http): Promise<SessionInfo> {
  return http.get<SessionInfo>("/api/v1/session", { cache: "no-store" });
}

/** Exchanges a one-time code or a token for the session cookie. Rejects with HttpError 401 or 403 if refused. */
export function signIn(http: Http, proof: { code: string } | { token: string }): Promise<void> {
  return http.send<void>("POST", "/api/v1/session", proof);
}

export function signOut(http: Http): Promise<void> {
  return http.send<void>("DELETE", "/api/v1/session");
}

/** The one-time code of `#login=<code>`, or null. */
export function loginCode(hash: string): string | null {
  const code = new URLSearchParams(hash.replace(/^#/, "")).get("login");
  return code ? code : null;
}
