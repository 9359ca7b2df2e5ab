/** The jobs and sources of a page for its components: those of the Earth page and of the Sources page alike. */
import { createContext, useContext } from "react";
import { useStore } from "zustand";
import type { Jobs, JobsView } from "../data/jobs";

export const JobsContext = createContext<Jobs | null>(null);

export function useJobsAccess(): Jobs {
  const jobs = useContext(JobsContext);
  if (!jobs) throw new Error("parts of jobs and sources need a JobsContext above them");
  return jobs;
}

export function useJobs<T>(select: (view: JobsView) => T): T {
  return useStore(useJobsAccess().store, select);
}
