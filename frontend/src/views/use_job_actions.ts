/** The actions of the job panel: sent once; outcomes are toasts, an ended session opens the sign-in dialog. */
import { useTranslation } from "react-i18next";
import type { SourceChange, TaskType } from "../client/earth_types";
import { HttpError } from "../client/http";
import type { Submitted } from "../client/job_wire";
import { reasonText } from "./reasons";
import { toastOnce } from "./toasts";
import { useJobs, useJobsAccess } from "./use_jobs";
import { useSession } from "./use_session";

export interface JobActions {
  submit(task_type: TaskType, source: string): void;
  cancel(id: number, queued: boolean): void;
  /** `confirm`: that the rows of a clear shall be deleted. */
  retry(id: number, confirm?: boolean): void;
  /** `message` is shown once the server accepted it. */
  change(source: string, change: SourceChange, message: string): void;
  /** The same, but returns a refusal of the values; every other failure is shown here. */
  tryChange(source: string, change: SourceChange, message: string): Promise<HttpError | "saved" | "failed">;
  isPending(key: string): boolean;
}

export function useJobActions(): JobActions {
  const { t } = useTranslation("earth");
  const jobs = useJobsAccess();
  const { session, openSignIn } = useSession();
  const pending = useJobs((view) => view.pending);

  function complain(key: string, error: unknown): void {
    if (error instanceof HttpError && (error.status === 401 || error.status === 403)) {
      toastOnce("jobs.session", "warning", t("jobs.signed_out"));
      void session.refresh();
      openSignIn();
      return;
    }
    toastOnce(`jobs.${key}`, "error", t("jobs.action_failed"), reasonText(error));
  }

  function run<T>(key: string, wish: Promise<T>, onAnswer: (answer: T) => void): void {
    wish.then(onAnswer).catch((error: unknown) => complain(key, error));
  }

  function tellSubmitted(answer: Submitted | null): void {
    if (answer === null) return;
    const text = t(answer.created ? "jobs.asked_submit" : "jobs.asked_twin", { id: answer.task_id });
    toastOnce(`jobs.submitted.${answer.task_id}`, answer.created ? "success" : "info", text);
  }

  async function tryChange(source: string, change: SourceChange, message: string) {
    try {
      if (!(await jobs.change(source, change))) return "failed";
      toastOnce(`jobs.source:${source}`, "success", message);
      return "saved";
    } catch (error) {
      if (error instanceof HttpError && error.status === 400) return error;
      complain(`source:${source}`, error);
      return "failed";
    }
  }

  return {
    submit: (task_type, source) => run(`${task_type}:${source}`, jobs.submit(task_type, source), tellSubmitted),
    cancel: (id, queued) =>
      run(`cancel:${id}`, jobs.cancel(id), (sent) => {
        const text = t(queued ? "jobs.asked_remove" : "jobs.asked_stop", { id });
        if (sent) toastOnce(`jobs.cancel:${id}`, "success", text);
      }),
    retry: (id, confirm) => run(`retry:${id}`, jobs.retry(id, confirm), tellSubmitted),
    change: (source, change, message) =>
      run(`source:${source}`, jobs.change(source, change), (sent) => {
        if (sent) toastOnce(`jobs.source:${source}`, "success", message);
      }),
    tryChange,
    isPending: (key) => pending.has(key),
  };
}
