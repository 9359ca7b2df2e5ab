/** The session for components: state, and the way to the sign-in dialog. */
import { createContext, useContext } from "react";
import { useStore } from "zustand";
import type { Session, SessionState } from "../data/session";

export interface SessionAccess {
  session: Session;
  openSignIn: () => void;
}

export const SessionContext = createContext<SessionAccess | null>(null);

export function useSession(): SessionState & { openSignIn: () => void; session: Session } {
  const access = useContext(SessionContext);
  if (!access) throw new Error("useSession needs a SessionContext above it");
  const state = useStore(access.session.store);
  return { ...state, session: access.session, openSignIn: access.openSignIn };
}
