import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { isoTime, systemClock } from "../../core/clock.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import { realPath } from "../../core/real-path.ts";
import type { BackendCapabilities } from "../backend.ts";
import { type BackendFailure, errors } from "../errors.ts";
import type {
  BackgroundJobs,
  CommandFacts,
  ExecuteOptions,
  ExecuteResponse,
  JobInfo,
  JobResult,
  SandboxBackend,
} from "../executor.ts";
import { FilesystemBackend, type FilesystemOptions } from "../filesystem/filesystem.ts";
import { validatePath } from "../paths.ts";
import { outputText, withLine } from "./command-output.ts";
import type { EnvironmentOptions, SandboxMount } from "./environment.ts";
import { commandEnvironment, readableTops, withRealFolders } from "./environment.ts";
import { type ProcessGroup, type ProcessRequest, ProcessRunner } from "./process-runner.ts";

type StartProcess = (command: string, options: LaunchOptions) => Promise<ProcessGroup | BackendFailure>;

interface Job {
  info: JobInfo;
  process: ProcessGroup;
}

/** Background jobs that run at one time. */
export const MOST_JOBS = 16;

/** Background jobs as processes of this machine. The owner of the processes ends them. */
class ProcessJobs implements BackgroundJobs {
  readonly #start: StartProcess;
  readonly #jobs = new Map<string, Job>();

  constructor(start: StartProcess) {
    this.#start = start;
  }

  async start(command: string, options: LaunchOptions = {}): Promise<JobResult> {
    if (this.#isFull()) return tooManyJobs;
    const process = await this.#start(command, { ...options, keepPrograms: true });
    if ("error" in process) return process;
    const job = this.adopt(command, process);
    if (job !== undefined) return { job };
    await process.terminate();
    return tooManyJobs;
  }

  /** Makes a job of a started command, until all of its programs have ended. Returns undefined if there are too many. */
  adopt(command: string, process: ProcessGroup): JobInfo | undefined {
    if (this.#isFull()) return undefined;
    const id = `job_${randomBytes(4).toString("hex")}`;
    const info: JobInfo = { id, command, startedAt: isoTime(systemClock()) };
    this.#jobs.set(id, { info, process });
    const noteEnd = async (): Promise<void> => {
      const end = await process.ended;
      await process.gone();
      info.exitCode ??= end.exitCode;
      if (!("failure" in end)) return;
      process.output.add("stdout", Buffer.from(`Error: The command could not be started: ${end.failure}`));
      process.output.finish();
    };
    void noteEnd();
    return { ...info };
  }

  #isFull(): boolean {
    return [...this.#jobs.values()].filter(({ info }) => info.exitCode === undefined).length >= MOST_JOBS;
  }

  list(): JobInfo[] {
    return [...this.#jobs.values()].map(({ info }) => ({ ...info }));
  }

  read(id: string): JobResult {
    const job = this.#jobs.get(id);
    return job === undefined ? unknownJob(id) : jobResult(job);
  }

  async stop(id: string): Promise<JobResult> {
    const job = this.#jobs.get(id);
    if (job === undefined) return unknownJob(id);
    await job.process.terminate();
    job.info.exitCode ??= (await job.process.ended).exitCode;
    return jobResult(job);
  }
}

const jobResult = ({ info, process }: Job): JobResult => ({
  job: { ...info },
  output: outputText(process.output),
  truncated: process.output.truncated,
});

export const tooManyJobs: JobResult = {
  code: "unsupported",
  error: `${MOST_JOBS} background jobs are already running; stop one first`,
};

export const unknownJob = (id: string): JobResult => ({
  code: "not_found",
  error: `There is no background job '${id}'; jobs end with the run that started them`,
});

/** Limits of every command; a call may ask for another time limit. */
export interface ShellLimits {
  /** Seconds. Default 120. */
  timeout?: number;
  /** Bytes of output that are shown. Default 100000. */
  maxOutputBytes?: number;
}

/** The process of a command. */
export interface Launch extends Pick<
  ProcessRequest,
  "file" | "args" | "env" | "cwd" | "inputs" | "keepsPrograms" | "showsLife" | "onGone"
> {
  /** Lines for the model below an output, if there is something to explain. */
  explain?: (response: ExecuteResponse) => string | undefined;
}

/** The options of a call that shape its process. */
export type LaunchOptions = Pick<ExecuteOptions, "cwd" | "env" | "approved" | "keepPrograms">;

export interface ShellOptions extends ShellLimits {
  /** Begins the id. */
  name: string;
  isolation: BackendCapabilities["isolation"];
  /** Facts for the model besides the limits. */
  facts: CommandFacts;
  /** `runner` starts further programs, which end with those of the commands. */
  launch(
    command: string,
    options: LaunchOptions,
    runner: ProcessRunner,
  ): Launch | BackendFailure | Promise<Launch | BackendFailure>;
  /** See `SandboxBackend`. */
  approvalReason?: () => string | undefined;
  patience?: number;
}

export const DEFAULT_TIMEOUT = 120;
export const DEFAULT_OUTPUT_BYTES = 100_000;

/** The reason why no shell can run a command line. */
export function commandProblem(command: string): string | undefined {
  if (command.trim() === "") return "Command must be a non-empty string.";
  return command.includes("\0") ? "Command contains a NUL character." : undefined;
}

/** The shell that runs command lines: bash where there is one, because models write for it. */
export const SHELL: string = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
export const SHELL_DIALECT = SHELL === "/bin/bash" ? "bash" : "sh";

/** A folder of this machine, and commands as processes that `launch` describes. */
export class ShellBackend extends FilesystemBackend implements SandboxBackend {
  readonly id: string;
  readonly jobs: BackgroundJobs;
  readonly commands: CommandFacts;
  readonly #options: ShellOptions;
  readonly #runner: ProcessRunner;
  readonly #adopt: (command: string, group: ProcessGroup) => JobInfo | undefined;
  #executing = 0;
  #idle: NodeJS.Timeout | undefined;
  /** The end of background programs; a command that starts before it would end with them. */
  #ending: Promise<void> | undefined;

  constructor(files: FilesystemOptions, options: ShellOptions) {
    super(files);
    Object.assign(this.capabilities, { executeOptions: true, isolation: options.isolation });
    this.id = `${options.name}-${randomBytes(8).toString("hex")}`;
    this.#options = options;
    this.#runner = new ProcessRunner({ ...options, guarded: true });
    const jobs = new ProcessJobs(async (command, call) => {
      const launch = await this.#launch(command, call);
      return "error" in launch
        ? launch
        : this.#runner.start({ ...launch, maxOutputBytes: this.#outputBytes });
    });
    this.#adopt = (command, group) => jobs.adopt(command, group);
    this.jobs = {
      start: (...args) => this.#use(() => jobs.start(...args)),
      list: () => this.#use(() => jobs.list()),
      read: (id) => this.#use(() => jobs.read(id)),
      stop: (id) => this.#use(() => jobs.stop(id)),
    };
    const [timeout, outputBytes] = [this.#timeout(undefined), this.#outputBytes];
    this.commands = { ...options.facts, timeout, outputBytes };
  }

  execute(command: string, options: ExecuteOptions = {}): Promise<ExecuteResponse> {
    return this.#use(() => this.#execute(command, options));
  }

  async #execute(command: string, options: ExecuteOptions): Promise<ExecuteResponse> {
    const launch = await this.#launch(command, options);
    if ("error" in launch) return { output: `Error: ${launch.error}`, exitCode: 1, truncated: false };
    const { signal, keepBytes } = options;
    const onOutput = (chunk: string): void => options.onOutput?.(chunk);
    let left: ProcessGroup | undefined;
    const response = await this.#runner.run(
      { ...launch, maxOutputBytes: this.#outputBytes, keepBytes, onOutput },
      { timeout: this.#timeout(options.timeout), signal, onLeft: (group) => (left = group) },
    );
    const job = left && this.#adopt(command, left);
    if (left !== undefined && job === undefined) await left.terminate();
    const notes = [
      launch.explain?.(response),
      left !== undefined && job === undefined
        ? `[The programs that this command left running were stopped, because ${MOST_JOBS} background jobs are running already.]`
        : undefined,
    ].filter((note) => note !== undefined);
    const output = notes.reduce(withLine, response.output);
    return { ...response, output, ...(job === undefined ? {} : { job }) };
  }

  /** Ends background programs once nothing has used the shell for long. */
  async #use<Result>(work: () => Result | Promise<Result>): Promise<Result> {
    clearTimeout(this.#idle);
    this.#executing += 1;
    try {
      await this.#ending;
      return await work();
    } finally {
      this.#executing -= 1;
      const end = (): void => void (this.#ending = this.#runner.close());
      // Background programs end after half an hour without a command or a look: the run waits for a person.
      if (this.#executing === 0) this.#idle = setTimeout(end, 1_800_000).unref();
    }
  }

  approvalReason(): string | undefined {
    return this.#options.approvalReason?.();
  }

  /** Ends running commands, background jobs, and processes that commands left behind. */
  close(): Promise<void> {
    clearTimeout(this.#idle);
    return this.#runner.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #outputBytes(): number {
    return this.#options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES;
  }

  async #launch(command: string, options: LaunchOptions): Promise<Launch | BackendFailure> {
    const problem = commandProblem(command);
    if (problem !== undefined) return { code: "unsupported", error: problem };
    return this.#options.launch(command, options, this.#runner);
  }

  #timeout(asked: number | undefined): number {
    const own = this.#options.timeout ?? DEFAULT_TIMEOUT;
    return Math.min(asked !== undefined && asked > 0 ? asked : own, 86_400);
  }
}

export interface LocalShellOptions extends FilesystemOptions, EnvironmentOptions, ShellLimits {
  /** Folders of this machine that commands name by other paths, which are replaced in them. Default: none. */
  readOnly?: readonly SandboxMount[];
}

/**
 * A directory, and the shell of this machine in it. **No isolation**: `rootDir` confines the file tools only, and
 * commands reach everything that this user can. Close it when it is no longer needed, which ends processes that
 * commands left behind.
 */
export class LocalShellBackend extends ShellBackend {
  /** Takes the options of `FilesystemBackend`; the first command also creates a missing directory. */
  constructor(given: LocalShellOptions = {}) {
    const options = readOptions("LocalShellBackend", given, tables.LocalShellBackend);
    const { readOnly = [] } = options;
    const rootDir = realPath(options.rootDir ?? ".");
    const env = commandEnvironment(options);
    const own = Object.entries(options).filter(([name]) => Object.hasOwn(tables.FilesystemBackend, name));
    super(Object.fromEntries(own), {
      ...options,
      name: "local",
      isolation: "none",
      facts: {
        shell: SHELL_DIALECT,
        network: true,
        ...(options.virtualMode === true ? {} : { directory: rootDir }),
        ...readableTops(readOnly),
      },
      launch: (command, { cwd, env: added, keepPrograms: keepsPrograms = false }) => {
        const isVirtual = options.virtualMode === true;
        const given = cwd ?? (isVirtual ? "/" : rootDir);
        const valid = validatePath(given, { form: isVirtual ? "virtual" : "real" });
        if (!valid.ok) return { error: valid.error, code: valid.code };
        const directory = isVirtual ? join(rootDir, valid.path) : resolve(rootDir, valid.path);
        try {
          mkdirSync(rootDir, { recursive: true });
          if (!statSync(directory).isDirectory()) return errors.notDirectory(valid.path);
        } catch {
          return errors.directoryNotFound(valid.path);
        }
        return {
          file: SHELL,
          args: ["-c", withRealFolders(command, readOnly)],
          cwd: directory,
          env: { ...env, ...added },
          keepsPrograms,
        };
      },
    });
  }
}
