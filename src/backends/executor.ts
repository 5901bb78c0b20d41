/** The port behind which commands run: the part of a sandbox beyond files. */
import type { Backend, CallOptions, Failure, MaybePromise } from "./backend.ts";

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
  start(command: string, options?: Pick<ExecuteOptions, "cwd" | "env" | "approved">): MaybePromise<JobResult>;
  /** In the order in which they were started. */
  list(): MaybePromise<JobInfo[]>;
  read(id: string): MaybePromise<JobResult>;
  /** Ends a job with everything it started, and returns its last state. */
  stop(id: string): MaybePromise<JobResult>;
}

export interface ExecuteOptions extends CallOptions {
  /** Seconds. */
  timeout?: number;
  cwd?: string;
  env?: Record<string, string>;
  /** True if a person approved this command. A sandbox may let it change more then. Default false. */
  approved?: boolean;
  /**
   * True if programs that the command leaves running become a background job of the answer, where the sandbox has jobs.
   * Default false: they end with the command or with the backend.
   */
  keepPrograms?: boolean;
  /** Bytes of output to keep for `whole`. Default: none beyond those of `output`. */
  keepBytes?: number;
  onOutput?(chunk: string): void;
}

export interface ExecuteResponse {
  /** Standard output and standard error. */
  output: string;
  exitCode: number | null;
  truncated: boolean;
  /** Set if `output` is cut: the output up to `keepBytes`, with a last line if that is cut, too. */
  whole?: string;
  timedOut?: boolean;
  /** The background job of the programs that the command left running. */
  job?: JobInfo;
}

/** The place where commands run, and its limits. Unknown facts are left out. */
export interface CommandFacts {
  /** Directory in which a command starts, as commands see it. Left out if file tools do not use that path of this machine. */
  directory?: string;
  /** The folder of the file tree that is this directory. Default `/`. */
  folder?: string;
  /** Other folders of the file tree that commands read at the same paths. */
  readable?: readonly string[];
  /** The shell that runs command lines. Left out if it is chosen when they run. */
  shell?: "bash" | "sh";
  /** True if commands reach the network. */
  network?: boolean;
  /** True if programs that a command leaves running always end with it. */
  endsLeftovers?: boolean;
  /** Seconds after which a command is ended, unless its call has another limit. */
  timeout?: number;
  outputBytes?: number;
}

export interface SandboxBackend extends Backend {
  /** Not empty. */
  readonly id: string;
  /** Facts about its commands for the model. */
  readonly commands?: CommandFacts;
  /** Commands in the background; absent if the sandbox has none. */
  readonly jobs?: BackgroundJobs;
  /** Why a person has to approve every command now, though a sandbox confines it; `undefined` without a reason. */
  approvalReason?(): string | undefined;
  execute(command: string, options?: ExecuteOptions): MaybePromise<ExecuteResponse>;
}
