import { isDoneWithin } from "../../core/clock.ts";
import { errorMessage } from "../../core/errors.ts";
import type { ExecuteOptions, ExecuteResponse } from "../executor.ts";
import type { LoadPackage } from "../../core/optional-package.ts";
import { memberOf } from "../../core/unknown.ts";
import { LimitedSandbox, SandboxError } from "./base-sandbox.ts";
import { CommandOutput, type OutputStream, stopReason, timedOutResponse, written } from "./command-output.ts";
import { END_MARKED, MARK_NAME, unattended } from "./environment.ts";
import { type FileTransfer, assignments, script, scriptLine } from "./sandbox-files.ts";
import type { ShellLimits } from "./shell-backend.ts";
import texts from "../texts.json" with { type: "json" };

/** Options for sandboxes of all providers. */
export interface RemoteOptions extends ShellLimits {
  /** A sandbox that runs already; it is left running. Default: a new one, removed with `close`. */
  sandboxId?: string;
  /** Directory of the agent's files. Default: the usual one of the provider. */
  workdir?: string;
  /** Environment of commands. */
  env?: Readonly<Record<string, string>>;
  /** Further parameters of a new sandbox, as the provider's package takes them. */
  parameters?: Readonly<Record<string, unknown>>;
}

/** A sandbox at a provider: everything in which providers differ. Failures are thrown. */
export interface RemoteMachine extends FileTransfer {
  readonly id: string;
  /**
   * Runs a command line in a shell and passes its output to `onOutput`, until `signal` aborts. `drained` resolves when
   * all output has arrived, which descendants may delay for ever.
   */
  start(
    line: string,
    onOutput: (stream: OutputStream, chunk: string | Uint8Array) => void,
    signal: AbortSignal,
  ): Promise<{ exitCode: Promise<number | null>; drained: Promise<void> }>;
  /** Ends the sandbox for good. */
  remove(): Promise<void>;
  /** Closes the connections and other resources of this process, if there are any. */
  release?(): void;
}

/** After the end of a command, its output counts as complete if nothing arrives for this time. */
const QUIET_MS = 2000;

/** Most time for ending commands. */
const ENDING_MS = 2000;

/** A sandbox at a provider. Made by `openRemote`. */
export class RemoteSandbox extends LimitedSandbox {
  readonly id: string;
  readonly #machine: RemoteMachine;
  readonly #options: RemoteOptions;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #hasStarted = false;
  #closed: Promise<void> | undefined;

  constructor(machine: RemoteMachine, options: RemoteOptions, workdir: string) {
    super({ root: workdir, readChunk: 256 * 1024, transfer: machine }, options, "remote");
    this.id = machine.id;
    this.#machine = machine;
    this.#options = options;
  }

  override async execute(command: string, options: ExecuteOptions = {}): Promise<ExecuteResponse> {
    const wrong = Object.keys(options.env ?? {}).find((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
    const refused = `Error: '${wrong}' cannot be the name of an environment variable.`;
    if (wrong !== undefined) return { output: refused, exitCode: 1, truncated: false };
    try {
      return await super.execute(command, options);
    } catch {
      // Exceptions of a provider's package may name hosts and accounts.
      return { output: texts.commandNotRun, exitCode: 1, truncated: false };
    }
  }

  /** Ends commands, jobs and leftover programs, and the sandbox if it was made for this object. */
  close(): Promise<void> {
    const end = async (): Promise<void> => {
      const ending = this.jobs.close();
      this.#closing.abort();
      await Promise.allSettled(this.#running);
      if (this.#options.sandboxId === undefined) await this.#machine.remove();
      else if (this.#hasStarted) await this.#end(ending);
      this.#machine.release?.();
    };
    return (this.#closed ??= end());
  }

  protected async run(command: string, options: ExecuteOptions, maxOutputBytes: number) {
    const running = this.#runToEnd(command, options, maxOutputBytes);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #runToEnd(command: string, options: ExecuteOptions, maxOutputBytes: number) {
    const { timeout = this.commands.timeout } = options;
    const signals = [this.#closing.signal, ...(options.signal === undefined ? [] : [options.signal])];
    const signal = AbortSignal.any(signals);
    this.#hasStarted = true;
    const mark = this.jobs.newMark();
    const onShown = (chunk: string): void => options.onOutput?.(chunk);
    const output = new CommandOutput(maxOutputBytes, onShown, options.keepBytes);
    if (signal.aborted) return { output: "", exitCode: null, truncated: false };
    const settled = new AbortController();
    const stopped = stopReason(timeout, signal, settled.signal);
    const own = unattended({}, { ...this.#options.env, ...options.env }, false);
    const env = { ...own, [MARK_NAME]: mark };
    const entries = Object.entries(env).map(([name, value], at) => [`e${at}`, `${name}=${value}`] as const);
    const variables = { directory: options.cwd ?? "/", command, ...Object.fromEntries(entries) };
    const given = entries.map(([name]) => `"$${name}"`).join(" ");
    const line = `${assignments(variables)}${script("start at provider")}exec env ${given} "$shell" -c "$command" </dev/null\n`;
    let isStopped = false;
    const onOutput = (stream: OutputStream, chunk: Buffer): void => {
      // Shells around the command report its end on standard error.
      if (!isStopped || stream === "stdout") output.add(stream, chunk);
    };
    const ended = this.#toEnd(line, onOutput, settled.signal);
    try {
      const first = await Promise.race([ended, stopped]);
      if (typeof first === "object") {
        output.finish();
        const { exitCode, isBroken } = first;
        return { ...written(output), exitCode, truncated: output.truncated || isBroken };
      }
      isStopped = true;
      const kill = this.#end(`set -- ${mark}\n${END_MARKED}`);
      await Promise.all([kill, isDoneWithin(ENDING_MS, Promise.allSettled([ended]))]);
      output.finish();
      return first === "timeout" ? timedOutResponse(output, timeout) : { ...written(output), exitCode: null };
    } finally {
      settled.abort();
    }
  }

  /** Runs a script that ends commands, for a short time at most. */
  async #end(script: string): Promise<void> {
    const done = new AbortController();
    await isDoneWithin(ENDING_MS, Promise.allSettled([this.#toEnd(script, () => {}, done.signal)]));
    done.abort();
  }

  /** Runs a script to its end. `isBroken` is true if the output broke off. */
  async #toEnd(script: string, onOutput: (stream: OutputStream, chunk: Buffer) => void, signal: AbortSignal) {
    let lastChunkAt = 0;
    const onChunk = (stream: OutputStream, chunk: string | Uint8Array): void => {
      lastChunkAt = performance.now();
      onOutput(stream, Buffer.from(chunk));
    };
    const command = await this.#machine.start(scriptLine(script), onChunk, signal);
    let isBroken = false;
    const drained = command.drained.catch(() => (isBroken = true));
    const exitCode = await command.exitCode;
    lastChunkAt = Math.max(lastChunkAt, performance.now());
    for (let left = QUIET_MS; left > 0 && !(await isDoneWithin(left, drained));)
      left = lastChunkAt + QUIET_MS - performance.now();
    return { exitCode, isBroken };
  }
}

/** Opens a new sandbox, or the running one that `sandboxId` names, which `find` looks for. Throws `SandboxError`. */
export async function openRemote(
  provider: {
    name: string;
    workdir: string;
    find(id: string): Promise<RemoteMachine>;
    create(): Promise<RemoteMachine>;
  },
  options: RemoteOptions,
): Promise<RemoteSandbox> {
  const { sandboxId, workdir = provider.workdir } = options;
  const opening = sandboxId === undefined ? provider.create() : provider.find(sandboxId);
  const machine = await opening.catch((error: unknown) => {
    const what =
      sandboxId === undefined ? "did not start a sandbox" : `has no running sandbox '${sandboxId}'`;
    const reason = errorMessage(error).slice(0, 300);
    throw new SandboxError("NOT_INITIALIZED", `${provider.name} ${what}: ${reason}`, { cause: error });
  });
  const sandbox = new RemoteSandbox(machine, options, workdir);
  if (sandboxId !== undefined) return sandbox;
  const parent = new RemoteSandbox(machine, { ...options, sandboxId: machine.id }, "/");
  const made = await parent.execute('mkdir -p -- "$DIRECTORY"', { env: { DIRECTORY: workdir } });
  if (made.exitCode === 0) return sandbox;
  await sandbox.close();
  const message = `The directory ${workdir} could not be created in a sandbox of ${provider.name}: ${made.output.trim().slice(-500)}`;
  throw new SandboxError("COMMAND_FAILED", message);
}

/** The package and the keys that a provider needs. */
export interface ProviderPackage {
  provider: string;
  name: string;
  /** The version this was written for. */
  version: string;
  /** The class of the client. A package without it is another one. */
  client: string;
  /** Environment variables with the keys, as a person should set them. */
  keys: readonly string[];
  hasKeys(environment: NodeJS.ProcessEnv): boolean;
}

/**
 * Loads the client class of a provider's package. Throws a `SandboxError` that explains how to get the package and
 * the key if either is missing.
 */
export async function loadClient(needs: ProviderPackage, load: LoadPackage): Promise<unknown> {
  const { provider, name, version, client, keys } = needs;
  let cause: unknown;
  try {
    const found = memberOf(await load(name), client);
    if (typeof found === "function" && needs.hasKeys(process.env)) return found;
  } catch (error) {
    cause = error;
  }
  const message = `Sandboxes of ${provider} need its package and a key: run npm install ${name}@${version} and set ${keys.join(" and ")}`;
  throw new SandboxError("NOT_INITIALIZED", message, { cause });
}
