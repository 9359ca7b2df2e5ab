/** The wishes of the job panel: sent once, failures told lightly, an ended session told plainly. */
import { useTranslation } from "react-i18next";
import type { TaskType } from "../client/earth_types";
import { HttpError } from "../client/http";
import { errorCode } from "../data/layer";
import { toastOnce } from "./toasts";
import { useEarthAccess, useJobs } from "./use_earth";
import { useSession } from "./use_session";

export interface JobActions {
  submit(task_type: TaskType, source: string): void;
  cancel(id: number): void;
  retry(id: number): void;
  isPending(key: string): boolean;
}

export function useJobActions(): JobActions {
  const { t } = useTranslation("earth");
  const { earth } = useEarthAccess();
  const { session, openSignIn } = useSession();
  const pending = useJobs((view) => view.pending);

  function complain(key: string, error: unknown): void {
    if (error instanceof HttpError && (error.status === 401 || error.status === 403)) {
      toastOnce("jobs.session", "warning", t("jobs.signed_out"));
      void session.refresh();
      openSignIn();
      return;
    }
    const detail = error instanceof HttpError ? error.message : errorCode(error);
    toastOnce(`jobs.${key}`, "error", t("jobs.action_failed"), detail);
  }

  function run(key: string, wish: Promise<void>): void {
    wish.catch((error: unknown) => complain(key, error));
  }

  return {
    submit: (task_type, source) => run(`${task_type}:${source}`, earth.jobs.submit(task_type, source)),
    cancel: (id) => run(`cancel:${id}`, earth.jobs.cancel(id)),
    retry: (id) => run(`retry:${id}`, earth.jobs.retry(id)),
    isPending: (key) => pending.has(key),
  };
}
