import { randomBytes } from "node:crypto";
import { isoTime, systemClock } from "../../core/clock.ts";
import { fill, oneLine } from "../../core/text.ts";
import type { BackgroundJobs, ExecuteOptions, JobInfo, JobResult, SandboxBackend } from "../executor.ts";
import { CommandOutput, outputText } from "./command-output.ts";
import { END_MARKED } from "./environment.ts";
import { type RunCommand, askSandbox, script } from "./sandbox-files.ts";
import { DEFAULT_OUTPUT_BYTES, MOST_JOBS, tooManyJobs, unknownJob } from "./shell-backend.ts";
import texts from "../texts.json" with { type: "json" };

/**
 * Background jobs inside a sandbox, by commands alone. Their output and exit codes are files in its `/tmp`. They end with
 * the sandbox, and half an hour after this process was killed. If the sandbox stays, its owner runs the script of `close`.
 */
export class SandboxJobs implements BackgroundJobs {
  readonly #execute: SandboxBackend["execute"];
  readonly #run: RunCommand;
  /** Bytes of output whose base64 fits into the output of a command. */
  readonly #piece: number;
  readonly #jobs = new Map<string, JobInfo>();
  readonly #group = randomBytes(12).toString("hex");
  readonly #folder = `/tmp/.deepagent-jobs-${this.#group}`;
  #marks = 0;
  #renewal: NodeJS.Timeout | undefined;

  /** `execute` starts the commands of jobs, and `run` those that look after them. */
  constructor(execute: SandboxBackend["execute"], run: RunCommand, piece: number) {
    this.#execute = execute;
    this.#run = run;
    this.#piece = piece;
  }

  async start(command: string, options: ExecuteOptions = {}): Promise<JobResult> {
    if (this.#running() >= MOST_JOBS) await this.list();
    if (this.#running() >= MOST_JOBS) return tooManyJobs;
    const id = `job_${randomBytes(4).toString("hex")}`;
    const info: JobInfo = { id, command, startedAt: isoTime(systemClock()) };
    this.#jobs.set(id, info);
    let answer = "";
    const start: RunCommand = async (line) => {
      const response = await this.#execute(line, options);
      answer = response.output;
      return response;
    };
    const supervise = script("supervise job");
    const given = { id, command, supervise, most: String(DEFAULT_OUTPUT_BYTES + 1) };
    const result = await this.#ask("start job", given, start).catch(() => undefined);
    if (result?.get("result") === "started") {
      // Jobs that are not renewed end after half an hour.
      this.#renewal ??= setInterval(() => void this.list(), 600_000).unref();
      return { job: { ...info } };
    }
    this.#jobs.delete(id);
    const reason = oneLine(answer, 300) || "it did not answer; try again";
    return { code: "io", error: `The sandbox did not start the job: ${reason}` };
  }

  async list(): Promise<JobInfo[]> {
    const ended = this.#running() === 0 ? undefined : await this.#ask("list jobs").catch(() => undefined);
    for (const [id, info] of this.#jobs) noteEnd(info, ended?.get(id));
    if (this.#running() === 0) this.#endRenewal();
    return [...this.#jobs.values()].map((info) => ({ ...info }));
  }

  async read(id: string): Promise<JobResult> {
    const info = this.#jobs.get(id);
    if (info === undefined) return unknownJob(id);
    const output = new CommandOutput(DEFAULT_OUTPUT_BYTES);
    try {
      let [from, length] = [1, this.#piece];
      for (; from <= DEFAULT_OUTPUT_BYTES + 1 && length === this.#piece; from += length) {
        const said = await this.#ask("read job", { id, from: String(from), count: String(this.#piece) });
        if (said.get("result") !== "read") return { code: "not_found", error: fill(texts.lostJob, id) };
        const bytes = Buffer.from(said.get("data") ?? "", "base64");
        ({ length } = bytes);
        output.add("stdout", bytes);
        // A piece that was read before the end may not be the last one.
        if (length < this.#piece || from + length > DEFAULT_OUTPUT_BYTES) noteEnd(info, said.get("exit"));
      }
    } catch {
      return { code: "io", error: "The sandbox did not answer; try again" };
    }
    output.finish();
    return { job: { ...info }, output: outputText(output), truncated: output.truncated };
  }

  async stop(id: string): Promise<JobResult> {
    if (this.#jobs.get(id)?.exitCode === undefined && this.#jobs.has(id))
      await this.#ask("stop job", { id }).catch(() => undefined);
    return this.read(id);
  }

  /** A mark for the environment of a command, by which its programs can be ended. */
  newMark(): string {
    return `${this.#group}-${(this.#marks += 1)}-`;
  }

  #endRenewal(): void {
    clearInterval(this.#renewal);
    this.#renewal = undefined;
  }

  /** Drops the jobs. Returns a script that ends them, and all other programs with a mark from here. */
  close(): string {
    this.#endRenewal();
    return `set -- ${this.#group}\n${END_MARKED}\nrm -rf ${this.#folder}`;
  }

  #running(): number {
    return [...this.#jobs.values()].filter(({ exitCode }) => exitCode === undefined).length;
  }

  #ask(name: string, given: Readonly<Record<string, string>> = {}, run: RunCommand = this.#run) {
    const fixed = { group: this.#group, jobs: this.#folder, ending: END_MARKED };
    return askSandbox((line) => run(line, {}), script(name), { ...fixed, ...given });
  }
}

function noteEnd(info: JobInfo, code: string | undefined): void {
  if (code !== undefined) info.exitCode ??= Number(code) || 0;
}
