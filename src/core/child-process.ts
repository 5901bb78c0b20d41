import { type ChildProcess, spawn, type SpawnOptions, type StdioOptions } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import { codeOf, orElse } from "./errors.ts";

/** Standard input, output and error of a child, which gets no other open file of this process. */
type StandardStreams = [input: Stream, output: Stream, errors: Stream];
type Stream = "ignore" | "inherit" | "pipe";

export interface ChildOptions extends Pick<SpawnOptions, "cwd" | "detached" | "env" | "windowsHide"> {
  stdio: StandardStreams | Stream;
  /** The child's input on the descriptors 3, 4 and so on. */
  inputs?: readonly Uint8Array[];
}

/** The last descriptor that children are meant to have. */
const STANDARD_ERROR = 2;

/**
 * Descriptors above 2 that the launcher of this process left open and that every child would inherit. Node
 * opens none of that kind. Empty on macOS and Windows, where Node starts children with the listed ones only.
 */
let inherited: readonly number[] | undefined;
let nothing: number | undefined;

/** Starts a program that gets its standard streams and `inputs`, and no other open file of this process. */
export function startChild(
  file: string,
  args: readonly string[],
  { inputs = [], ...options }: ChildOptions,
): ChildProcess {
  const child = spawn(file, args, { ...options, stdio: onlyListed(options.stdio, inputs.length) });
  for (const [index, bytes] of inputs.entries()) {
    const stream = child.stdio[STANDARD_ERROR + 1 + index];
    if (stream === null || stream === undefined || !("end" in stream)) continue;
    // A child that ends before it has read them reports its own problem.
    stream.on("error", () => undefined);
    stream.end(bytes);
  }
  return child;
}

/** True if a process has this id, whoever it belongs to. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** Why a program that was started did not end well. */
export class ProgramFailure extends Error {
  readonly isTimeout: boolean;
  /** The exit code; `null`: it was killed. */
  readonly code: number | null;

  constructor(message: string, isTimeout: boolean, code: number | null) {
    super(message);
    this.isTimeout = isTimeout;
    this.code = code;
  }
}

export interface ProgramOptions extends Omit<ChildOptions, "stdio"> {
  timeout: number;
  input?: string | Uint8Array;
  /** Default: no limit. */
  maxOutput?: number;
  /** Kills the program when it is aborted. */
  signal?: AbortSignal;
}

/**
 * Runs a program to its end and returns its output. Rejects with `ProgramFailure`, whose message is the program's
 * standard error, and with Node's error when it cannot be started. `timeout` is in milliseconds; `input` is passed on
 * standard input. A program that writes more than `maxOutput` characters is killed, as after its time.
 */
export const runProgram = (
  file: string,
  args: readonly string[],
  { timeout, input, maxOutput = Infinity, signal, ...options }: ProgramOptions,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const stdio: StandardStreams = [input === undefined ? "ignore" : "pipe", "pipe", "pipe"];
    const child = startChild(file, args, { ...options, stdio });
    // Node's own time limit would keep running, and keep this process alive, if the program cannot be started.
    const kill = (): void => void child.kill("SIGKILL");
    const timer = setTimeout(kill, timeout);
    signal?.addEventListener("abort", kill);
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", kill);
    };
    let [output, errors] = ["", ""];
    // A program that ends before it has read its input reports its own problem.
    child.stdin?.on("error", () => undefined).end(input);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (output.length > maxOutput) kill();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (errors.length <= maxOutput) errors += text;
    });
    child.once("error", (error) => {
      end();
      reject(error);
    });
    child.once("close", (code) => {
      end();
      if (code === 0) resolve(output);
      else reject(new ProgramFailure(errors, child.killed, code));
    });
  });

/**
 * Closes the descriptors above standard error that the launcher of this process left open. For a program that owns
 * its process and lets libraries start children, once it has read its inputs from `/dev/fd/N`.
 */
export function closeInherited(): void {
  for (const descriptor of inheritedDescriptors()) closeSync(descriptor);
  inherited = [];
}

/** Replaces every inherited descriptor by the null device, because Node cannot leave one out. */
function onlyListed(streams: ChildOptions["stdio"], inputs: number): StdioOptions {
  const standard = typeof streams === "string" ? [streams, streams, streams] : streams;
  const stdio: (Stream | number)[] = [...standard, ...Array<Stream>(inputs).fill("pipe")];
  const toReplace = inheritedDescriptors().filter((number) => number >= stdio.length);
  if (toReplace.length === 0) return stdio;
  nothing ??= openSync(devNull, "r+");
  for (let number = stdio.length; number <= Math.max(...toReplace); number += 1) stdio[number] = "ignore";
  for (const number of toReplace) stdio[number] = nothing;
  return stdio;
}

const inheritedDescriptors = (): readonly number[] =>
  (inherited ??= orElse(() => (process.platform === "linux" ? readdirSync("/proc/self/fd") : []), [])
    .map(Number)
    .filter((number) => number > STANDARD_ERROR && outlivesExec(number)));

function outlivesExec(descriptor: number): boolean {
  // There is none of the descriptor that the folder was read with.
  const facts = orElse(() => readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8"), "");
  const flags = /^flags:\s*(\d+)$/m.exec(facts)?.[1];
  // The bit of O_CLOEXEC.
  return flags !== undefined && (Number.parseInt(flags, 8) & 0o2000000) === 0;
}
