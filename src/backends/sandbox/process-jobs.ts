import { randomBytes } from "node:crypto";
import { type Clock, isoTime, systemClock } from "../../core/clock.ts";
import type { ExecuteOptions } from "../backend.ts";
import type { BackgroundJobs, JobInfo, JobResult } from "./background-jobs.ts";
import type { BackendFailure } from "../errors.ts";
import { outputText } from "./execute-response.ts";
import type { ProcessEnd, RunningProcess } from "./process-runner.ts";

/** Starts the process of a job, or says why it cannot. */
export type StartProcess = (
  command: string,
  options: Pick<ExecuteOptions, "cwd" | "env">,
) => RunningProcess | BackendFailure;

interface Job {
  info: JobInfo;
  process: RunningProcess;
}

const MAX_RUNNING = 16;

/** Background jobs that are processes of this machine. Whoever started the processes ends them. */
export class ProcessJobs implements BackgroundJobs {
  readonly #start: StartProcess;
  readonly #clock: Clock;
  readonly #jobs = new Map<string, Job>();

  constructor(start: StartProcess, clock: Clock = systemClock) {
    this.#start = start;
    this.#clock = clock;
  }

  start(command: string, options: Pick<ExecuteOptions, "cwd" | "env"> = {}): JobResult {
    const running = [...this.#jobs.values()].filter(({ info }) => info.exitCode === undefined);
    if (running.length >= MAX_RUNNING) {
      return { code: "unsupported", error: `${MAX_RUNNING} background jobs run already; stop one first` };
    }
    const process = this.#start(command, options);
    if ("error" in process) return process;
    const id = `job_${randomBytes(4).toString("hex")}`;
    const info: JobInfo = { id, command, startedAt: isoTime(this.#clock()) };
    this.#jobs.set(id, { info, process });
    void process.ended.then((end) => noteEnd({ info, process }, end));
    return { job: { ...info } };
  }

  list(): JobInfo[] {
    return [...this.#jobs.values()].map(({ info }) => ({ ...info }));
  }

  read(id: string): JobResult {
    const job = this.#jobs.get(id);
    return job === undefined ? unknownJob(id) : stateOf(job);
  }

  async stop(id: string): Promise<JobResult> {
    const job = this.#jobs.get(id);
    if (job === undefined) return unknownJob(id);
    await job.process.terminate();
    return stateOf(job);
  }
}

const stateOf = ({ info, process }: Job): JobResult => ({
  job: { ...info },
  output: outputText(process.output),
  truncated: process.output.truncated,
});

function noteEnd({ info, process: { output } }: Job, end: ProcessEnd): void {
  info.exitCode = end.exitCode;
  if (!("failure" in end)) return;
  output.add("stdout", Buffer.from(`Error: The command could not be started: ${end.failure}`));
  output.finish();
}

const unknownJob = (id: string): JobResult => ({
  code: "not_found",
  error: `There is no background job '${id}'; jobs end with the run that started them`,
});
