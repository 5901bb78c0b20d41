import type { ExecuteOptions, Failure, MaybePromise } from "../backend.ts";

/** A command that was started in the background. */
export interface JobInfo {
  id: string;
  command: string;
  /** ISO 8601. */
  startedAt: string;
  /** Absent while it runs; `null` when it could not be started. */
  exitCode?: number | null;
}

export interface JobResult extends Failure {
  job?: JobInfo;
  /** Standard output and standard error so far. */
  output?: string;
  truncated?: boolean;
}

/** Background jobs end with the backend. An unknown id fails with `not_found`. */
export interface BackgroundJobs {
  start(command: string, options?: Pick<ExecuteOptions, "cwd" | "env">): MaybePromise<JobResult>;
  /** In the order in which they were started. */
  list(): MaybePromise<JobInfo[]>;
  read(id: string): MaybePromise<JobResult>;
  /** Ends a job with everything it started, and gives its last state. */
  stop(id: string): MaybePromise<JobResult>;
}
