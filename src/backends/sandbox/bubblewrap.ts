import { randomBytes } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { runProgram } from "../../core/child-process.ts";
import { errorMessage } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { oneLine } from "../../core/text.ts";
import type { CommandFacts, ExecuteOptions, ExecuteResponse, SandboxBackend } from "../backend.ts";
import type { BackgroundJobs } from "./background-jobs.ts";
import { type BackendFailure, directoryNotFound } from "../errors.ts";
import { FilesystemBackend } from "../filesystem/filesystem.ts";
import { addPrefix, validatePath, withoutSlash } from "../paths.ts";
import { bubblewrapCall, type SandboxMount, type SandboxShape, visiblePath } from "./bubblewrap-arguments.ts";
import { ProcessCgroup } from "./process-cgroup.ts";
import { isMissing, isTimedOut, type NoSandbox, PROBE_TIMEOUT_MS, tooSlow } from "./probe.ts";
import { programPath, SYSTEM_PATH } from "./shell-environment.ts";
import { type Launch, SHELL_LIMITS, ShellExecutor, type ShellLimits } from "./shell-executor.ts";

export interface BubblewrapOptions extends ShellLimits {
  /** The folder that commands may change. It must exist. */
  rootDir: string;
  /** As of `FilesystemBackend`. Default false. */
  respectGitignore?: boolean;
  /** As of `FilesystemBackend`; commands find an empty folder, or a file they cannot read, in their place. */
  hidden?: readonly string[];
  /** Where commands see that folder; the same path they have in the agent's tree. Default `/workspace`. */
  mountPath?: string;
  /** More folders that commands may read; one that does not exist is left out. */
  readOnly?: readonly SandboxMount[];
  /** Environment of commands besides search path, home, language and terminal. */
  env?: Readonly<Record<string, string>>;
  /** MiB of memory of one process. Default 2048. */
  memoryMb?: number;
  /**
   * Processes and threads of one command; of all commands together when the server runs as root, where a
   * control group has to count them. Default 512.
   */
  maxProcesses?: number;
  /** MiB that fit into `/tmp`. Default 512. */
  scratchMb?: number;
  /** Larger files are not searched and not edited by the file tools. Default 10. */
  maxFileSizeMb?: number;
  /** Name or path of the program. Default `bwrap`. */
  bwrap?: string;
}

const OPTIONS: OptionTable<BubblewrapOptions> = {
  ...SHELL_LIMITS,
  rootDir: "a text",
  respectGitignore: "true or false",
  hidden: "a list of non-empty texts",
  mountPath: "a text",
  readOnly: "a list",
  env: "a plain object",
  memoryMb: "a number",
  maxProcesses: "a number",
  scratchMb: "a number",
  maxFileSizeMb: "a number",
  bwrap: "a text",
};

const MIB = 1024 * 1024;
const SIZE_LIMITS_SINCE = [0, 8] as const;

/**
 * A folder, and a shell that sees that folder and the programs of this machine and nothing else: no
 * network, no other files, processes or environment. Linux only.
 *
 * Files are reached by virtual paths, `/x` being `x` in the folder; commands see the folder at
 * `mountPath`. Made by `openBubblewrap`, which finds out first whether this machine can do that.
 */
export class BubblewrapBackend extends FilesystemBackend implements SandboxBackend {
  readonly id: string;
  readonly jobs: BackgroundJobs;
  readonly commands: CommandFacts;
  readonly #executor: ShellExecutor;
  /** Made with the first command; `null` where it cannot be had. */
  #cgroup: ProcessCgroup | null | undefined;

  constructor(options: BubblewrapOptions, hasSizeLimits: boolean) {
    const { rootDir, maxFileSizeMb, respectGitignore = false, hidden = [] } = options;
    const size = maxFileSizeMb === undefined ? {} : { maxFileSizeMb };
    super({ rootDir, virtualMode: true, respectGitignore, hidden, ...size });
    Object.assign(this.capabilities, { executeOptions: true, isolation: "process" });
    this.id = `bubblewrap-${randomBytes(8).toString("hex")}`;
    const shape = shapeOf(options, hasSizeLimits);
    this.#executor = new ShellExecutor({
      ...options,
      // Bubblewrap ends when it is asked to, and the command then without having been asked.
      patience: 0,
      launch: (command, call) => {
        const started = launch(options.bwrap ?? "bwrap", shape, command, call);
        return "error" in started ? started : this.#counted(started, shape.processes);
      },
    });
    this.jobs = this.#executor.jobs;
    this.commands = {
      directory: options.mountPath ?? "/workspace",
      network: false,
      ...this.#executor.limits,
    };
  }

  execute(command: string, options?: ExecuteOptions): Promise<ExecuteResponse> {
    return this.#executor.execute(command, options);
  }

  async close(): Promise<void> {
    await this.#executor.close();
    await this.#cgroup?.remove();
    this.#cgroup = undefined;
  }

  /** As a member of the group that counts; other users than root are counted by the kernel anyway. */
  #counted(started: Launch, processes: number): Launch {
    if (process.getuid?.() !== 0) return started;
    this.#cgroup ??= ProcessCgroup.make(processes) ?? null;
    if (this.#cgroup === null) return started;
    const join = 'echo $$ > "$0" || exit 126; exec "$@"';
    const args = ["-c", join, this.#cgroup.membersFile, started.file, ...started.args];
    return { ...started, file: "/bin/sh", args };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

export type OpenedBubblewrap = { ok: true; backend: BubblewrapBackend } | ({ ok: false } & NoSandbox);

/** Tries the sandbox out, because an installed program says little: containers and kernels forbid it often. */
export async function openBubblewrap(given: BubblewrapOptions): Promise<OpenedBubblewrap> {
  const options = readOptions("Bubblewrap", given, OPTIONS);
  const found = await probeBubblewrap(options);
  if (!found.ok) return found;
  return { ok: true, backend: new BubblewrapBackend(options, found.hasSizeLimits) };
}

export type BubblewrapProbe =
  | { ok: true; version: string; hasSizeLimits: boolean }
  | ({ ok: false } & NoSandbox);

/**
 * Runs one command that does nothing, in the very sandbox that others would run in.
 *
 * @param timeoutMs for each of the two programs that are started. Default 10,000.
 */
export async function probeBubblewrap(
  options: BubblewrapOptions,
  timeoutMs: number = PROBE_TIMEOUT_MS,
): Promise<BubblewrapProbe> {
  const program = options.bwrap ?? "bwrap";
  if (process.platform !== "linux") return { ok: false, reason: "Bubblewrap exists for Linux only." };
  const run = (args: readonly string[], inputs: readonly Uint8Array[] = []) =>
    runProgram(program, args, { timeout: timeoutMs, cwd: "/", inputs });
  let version: string;
  try {
    version = (await run(["--version"])).trim().replace(/^bubblewrap /, "");
  } catch (error) {
    if (isTimedOut(error)) return { ok: false, ...tooSlow(program, timeoutMs) };
    if (isMissing(error)) return { ok: false, reason: `${INSTALL} (the program ${program} was not found)` };
    return {
      ok: false,
      reason: `The program ${program} does not tell its version (${oneLine(errorMessage(error), 200)}).`,
    };
  }
  const hasSizeLimits = isAtLeast(version, SIZE_LIMITS_SINCE);
  try {
    const shape = shapeOf(options, hasSizeLimits);
    const { args, inputs } = bubblewrapCall(shape, "exit 0", shape.writable.at);
    await run(args, inputs);
    return { ok: true, version, hasSizeLimits };
  } catch (error) {
    if (isTimedOut(error)) return { ok: false, ...tooSlow(program, timeoutMs) };
    const said = /bwrap: .*/.exec(errorMessage(error))?.[0] ?? "it ended with an error";
    return {
      ok: false,
      reason: `Bubblewrap ${version} is installed but this system does not let it work (${said}). ${ALLOW}`,
    };
  }
}

const INSTALL =
  "Bubblewrap is missing; install it with the system's package manager, such as apt-get install bubblewrap";
const ALLOW = "It needs unprivileged user namespaces, which the kernel's settings or a container can forbid.";

function isAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

function shapeOf(options: BubblewrapOptions, hasSizeLimits: boolean): SandboxShape {
  const { readOnly = [], hidden = [], memoryMb = 2048, maxProcesses = 512, scratchMb = 512 } = options;
  const { LANG = "C.UTF-8" } = process.env;
  return {
    writable: {
      folder: realpathSync.native(resolve(options.rootDir)),
      at: withoutSlash(options.mountPath ?? "/workspace"),
    },
    readOnly,
    hidden,
    env: {
      PATH: visiblePath(`${process.env["PATH"] ?? ""}:${SYSTEM_PATH}`, readOnly),
      HOME: "/tmp",
      TMPDIR: "/tmp",
      LANG,
      TERM: "dumb",
      ...options.env,
    },
    memory: memoryMb * MIB,
    processes: maxProcesses,
    scratch: scratchMb * MIB,
    hasSizeLimits,
  };
}

function launch(
  program: string,
  shape: SandboxShape,
  command: string,
  { cwd, env }: Pick<ExecuteOptions, "cwd" | "env">,
): Launch | BackendFailure {
  const { folder, at } = shape.writable;
  const valid = validatePath(cwd ?? "/");
  if (!valid.ok) return { error: valid.error, code: valid.code };
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return directoryNotFound("/");
  const all = { ...shape.env, ...env };
  // They are handed over separated by NUL: what comes after one would be an argument of Bubblewrap.
  if (Object.entries(all).some((pair) => pair.join("").includes("\0"))) {
    return { code: "unsupported", error: "An environment variable contains a NUL character." };
  }
  const call = bubblewrapCall({ ...shape, env: all }, command, addPrefix(at, valid.path));
  // Commands can read its environment.
  return { file: programPath(program), ...call, env: {}, cwd: "/" };
}
