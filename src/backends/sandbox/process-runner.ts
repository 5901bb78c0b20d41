import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { runProgram, startChild } from "../../core/child-process.ts";
import { isDoneWithin } from "../../core/clock.ts";
import { errorMessage, codeOf } from "../../core/errors.ts";
import { processStat } from "../../core/process-mark.ts";
import type { ExecuteResponse } from "../executor.ts";
import {
  CommandOutput,
  outputText,
  stopReason,
  timedOutResponse,
  withLine,
  written,
} from "./command-output.ts";
import { END_MARKED, MARK_NAME, SYSTEM_PATH, endScript } from "./environment.ts";

/** A program to start, with all that it gets. */
export interface ProcessRequest {
  file: string;
  args: readonly string[];
  /** The whole environment; nothing is added. */
  env: Readonly<Record<string, string>>;
  cwd?: string;
  /** Same as in `startChild`. */
  inputs?: readonly Uint8Array[];
  /** Bytes of output that are shown. */
  maxOutputBytes: number;
  /** Same as in `ExecuteOptions`. */
  keepBytes?: number | undefined;
  onOutput?: (chunk: string) => void;
  /**
   * True if programs that the program leaves behind may continue: their output is kept, too. Default false: it is dropped.
   */
  keepsPrograms?: boolean;
  /** True if the last of `inputs` stays open as long as any process of the program's sandbox lives. */
  showsLife?: boolean;
  /** Called when the program has ended or could not be started; after it was terminated, when all of its group have. */
  onGone?: () => void;
}

/** `failure`: why the program could not be started. */
export type ProcessEnd = { exitCode: number } | { exitCode: null; failure: string };

/** Time to wait for the last output of a group that was asked to end, or whose leader has ended. */
const LAST_WORDS_MS = 200;

/**
 * Starts programs, each as its own process group with standard input closed. Ends their remaining processes with
 * `close`, with this process, and, if `guarded`, even when this process is killed.
 */
export class ProcessRunner {
  readonly #groups = new Set<ProcessGroup>();
  readonly #mark = randomBytes(12).toString("hex");
  #started = 0;
  readonly #guard: ProcessGuard | undefined;
  readonly #patience: number;
  readonly #onExit = (): void => this.#killAll();

  /**
   * `guarded`: for programs whose descendants may outlive them, or this process. `patience`: milliseconds that a group
   * may take to end after it was asked. 0 kills it at once.
   */
  constructor({ guarded, patience = 2000 }: { guarded: boolean; patience?: number }) {
    this.#guard = guarded ? new ProcessGuard(this.#mark) : undefined;
    this.#patience = patience;
  }

  start(request: ProcessRequest): ProcessGroup {
    this.#guard?.open();
    const mark = `${this.#mark}-${(this.#started += 1)}-`;
    const env = this.#guard === undefined ? request.env : { ...request.env, [MARK_NAME]: mark };
    // Another process may get the number of a group that is gone.
    for (const known of this.#groups) known.forgetIfGone();
    const group = new ProcessGroup(
      { ...request, env },
      {
        patience: this.#patience,
        forget: (gone) => {
          if (!this.#groups.delete(gone)) return;
          if (gone.id !== undefined) this.#guard?.note("-", gone.id);
          if (this.#groups.size === 0) process.off("exit", this.#onExit);
        },
        endMarked: async () => this.#guard?.endMarked(mark),
      },
    );
    if (group.id !== undefined) {
      if (this.#groups.size === 0) process.on("exit", this.#onExit);
      this.#groups.add(group);
      this.#guard?.note("+", group.id);
    }
    return group;
  }

  /** Process IDs of the programs that have not ended, to which their descendants belong. */
  get leaders(): number[] {
    return [...this.#groups].flatMap(({ id, hasEnded }) => (id === undefined || hasEnded ? [] : [id]));
  }

  /**
   * Runs a program to its end. Calls `onLeft` if it leaves programs behind that may continue. On a timeout (in seconds) or an abort, ends its group and returns the output so far,
   * even if a descendant lives on and holds the output open.
   */
  async run(
    request: ProcessRequest,
    bounds: { timeout: number; signal?: AbortSignal | undefined; onLeft?: (group: ProcessGroup) => void },
  ): Promise<ExecuteResponse> {
    const { timeout, signal, onLeft } = bounds;
    if (signal?.aborted === true) return { output: "", exitCode: null, truncated: false };
    const running = this.start(request);
    const timer = new AbortController();
    const first = await Promise.race([running.ended, stopReason(timeout, signal, timer.signal)]);
    timer.abort();
    if (typeof first !== "string") {
      const { output } = running;
      if (!("failure" in first)) {
        if (request.keepsPrograms === true && !(await isDoneWithin(LAST_WORDS_MS, running.gone()))) {
          output.mute();
          onLeft?.(running);
        }
        return { ...written(output), exitCode: first.exitCode };
      }
      const failure = `Error: The command could not be started: ${first.failure}`;
      return { ...written(output), output: withLine(outputText(output), failure), exitCode: 127 };
    }
    // A group that is killed at once ends before the answer.
    await isDoneWithin(this.#patience === 0 ? 2000 : LAST_WORDS_MS, running.terminate());
    running.output.close();
    if (first === "timeout") return timedOutResponse(running.output, timeout);
    return { ...written(running.output), exitCode: null };
  }

  async close(): Promise<void> {
    const groups = [...this.#groups];
    await isDoneWithin(LAST_WORDS_MS, Promise.all(groups.map((group) => group.terminate())));
    this.#killAll();
    await this.#guard?.endMarked();
    this.#guard?.close();
  }

  #killAll(): void {
    for (const group of this.#groups) group.kill();
  }
}

interface GroupOwner {
  patience: number;
  forget(group: ProcessGroup): void;
  /** Ends the processes that have left the group. */
  endMarked(): Promise<void>;
}

/** A started program with all descendants in its group. */
export class ProcessGroup {
  readonly output: CommandOutput;
  /** Resolves when the program has ended and `output` has all that it wrote. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  /** Undefined when the program could not be started. */
  readonly id: number | undefined = undefined;
  readonly #owner: GroupOwner;
  /** Resolves when the sandbox of the program has no process left; undefined if that cannot be seen. */
  readonly #life: Promise<void> | undefined;
  #isLifeOver = false;
  /** True if the program itself has ended. */
  hasEnded = false;
  #everythingEnded: Promise<void> | undefined;

  constructor(request: ProcessRequest, owner: GroupOwner) {
    this.output = new CommandOutput(request.maxOutputBytes, request.onOutput, request.keepBytes);
    this.#owner = owner;
    const { file, args, env, cwd, inputs = [] } = request;
    let child: ChildProcess;
    try {
      child = startChild(file, args, {
        env,
        detached: true,
        windowsHide: true,
        stdio: ["ignore", "pipe", "pipe"],
        inputs,
        ...(cwd === undefined ? {} : { cwd }),
      });
    } catch (error) {
      // Some failures are thrown at once, such as for a command too long.
      this.ended = Promise.resolve({ exitCode: null, failure: errorMessage(error) });
      request.onGone?.();
      return;
    }
    this.id = child.pid;
    const life = request.showsLife === true ? child.stdio[2 + inputs.length] : undefined;
    const streams = [child.stdout, child.stderr, life];
    if (life) {
      const closed = new Promise<void>((resolve) => life.once("close", () => resolve()));
      const isOver = async (): Promise<void> => {
        await closed;
        this.#isLifeOver = true;
        this.forgetIfGone();
      };
      this.#life = isOver();
      if ("resume" in life) life.resume();
    }
    child.stdout?.on("data", (bytes: Buffer) => this.output.add("stdout", bytes));
    child.stderr?.on("data", (bytes: Buffer) => this.output.add("stderr", bytes));
    this.ended = waitForEnd(child).then((end) => {
      this.output.finish();
      this.hasEnded = true;
      for (const stream of streams) {
        // Output of its remaining descendants is read and dropped.
        if (request.keepsPrograms !== true && stream && "resume" in stream)
          stream.removeAllListeners("data").resume();
        // The stream is a socket to the child, which must not keep this process alive.
        if (stream && "unref" in stream && typeof stream.unref === "function") stream.unref();
      }
      this.forgetIfGone();
      return end;
    });
    void Promise.all([this.ended, this.#life])
      .then(() => this.#everythingEnded)
      .then(request.onGone);
  }

  /** Resolves when the program has ended with all programs that it left behind, as far as that can be seen. */
  async gone(): Promise<void> {
    await this.ended;
    if (this.#life !== undefined) return this.#life;
    while (this.id !== undefined && hasMembers(this.id)) await delay(100, undefined, { ref: false });
  }

  /**
   * Asks the whole group to end. After the patience of the runner, kills its remaining processes and those that left
   * it. Resolves when the program has ended; without patience, when all of them have.
   */
  async terminate(): Promise<void> {
    const { patience } = this.#owner;
    const end = async (): Promise<void> => {
      if (patience > 0) {
        this.#signal("SIGTERM");
        await delay(patience, undefined, { ref: false });
      }
      this.kill();
      await this.#owner.endMarked();
    };
    this.#everythingEnded ??= end();
    await Promise.all([this.ended, patience === 0 ? this.#everythingEnded : undefined]);
  }

  kill(): void {
    this.#signal("SIGKILL");
    this.#owner.forget(this);
  }

  forgetIfGone(): void {
    if (!this.hasEnded || (this.#life !== undefined && !this.#isLifeOver)) return;
    if (this.id === undefined || !tryKill(signalTarget(this.id), 0)) this.#owner.forget(this);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.id === undefined) return;
    // Another process may have the number of the ended leader. None gets it while the group has members.
    const isReused = this.hasEnded && tryKill(this.id, 0);
    if (!isReused) tryKill(signalTarget(this.id), signal);
  }
}

/** The id that signals a program and its children. On Windows, which has no process groups, only the program. */
export const signalTarget = (leader: number, platform: NodeJS.Platform = process.platform): number =>
  platform === "win32" ? leader : -leader;

/** Sends a signal. Returns true if a process with this id exists. */
function tryKill(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch (error) {
    // The process exists but belongs to someone else.
    return codeOf(error) === "EPERM";
  }
}

/** True if a process of a group works. Those that ended and wait for their parent do not count. */
function hasMembers(leader: number): boolean {
  if (!tryKill(signalTarget(leader), 0)) return false;
  if (process.platform !== "linux") return true;
  return readdirSync("/proc").some((pid) => {
    if (!/^\d/.test(pid)) return false;
    const { state, group } = processStat(Number(pid));
    return group === leader && state !== "Z" && state !== "X";
  });
}

const waitForEnd = (child: ChildProcess): Promise<ProcessEnd> =>
  new Promise((resolve) => {
    let end: ProcessEnd | undefined;
    const settle = (): void => {
      if (end) resolve(end);
    };
    child.once("error", (error) => {
      end ??= { exitCode: null, failure: errorMessage(error) };
      settle();
    });
    child.once("exit", (code, signal) => {
      // Shells report 128 and the number of the signal.
      end ??= { exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]) };
      // Output from before the exit is in the pipes and is read within one full turn of the event loop. Their end may
      // never come, because descendants can hold them open.
      setImmediate(() => setImmediate(settle));
    });
    child.once("close", settle);
  });

const ENVIRONMENT = { PATH: SYSTEM_PATH };

/** A small shell that ends the remaining process groups when this process is gone, even if it was killed. */
class ProcessGuard {
  readonly #mark: string;
  #shell: ChildProcess | undefined;

  /** `mark` begins the mark of every command. */
  constructor(mark: string) {
    this.#mark = mark;
  }

  /** Starts the shell. Call it before the first program is started, so that there is no moment without a guard. */
  open(): void {
    // It looks twice: a program that was just starting when this process ended may not have had its mark yet.
    const script = `end_marked() {${END_MARKED}}${endScript("guardGroups")}`;
    this.#shell ??= startWatcher(script, [this.#mark], ENVIRONMENT);
  }

  /** Notes that a group began (`+`) or is gone (`-`). */
  note(change: "+" | "-", group: number): void {
    this.#shell?.stdin?.write(`${change} ${group}\n`);
  }

  /** Kills all processes of one command, or of all commands, in whatever group. */
  async endMarked(mark = this.#mark): Promise<void> {
    if (this.#shell === undefined) return;
    const options = { env: ENVIRONMENT, cwd: "/", timeout: 10_000 };
    await runProgram("/bin/sh", ["-c", END_MARKED, "sh", mark], options).catch(() => undefined);
  }

  /** Ends the shell. Call it when all programs have ended. */
  close(): void {
    this.#shell?.stdin?.end(".\n");
    this.#shell = undefined;
  }
}

/**
 * Starts a shell beside this process, which notices the end of this process by its standard input. It has its own
 * group, so that an interrupt from the terminal does not end it before its work.
 */
function startWatcher(script: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const shell = startChild("/bin/sh", ["-c", script, "sh", ...args], {
    detached: true,
    env,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  const { stdin } = shell;
  if (stdin !== null && "unref" in stdin && typeof stdin.unref === "function") stdin.unref();
  // If the shell cannot be started, this process still ends its groups with `close` and with an orderly exit.
  shell.on("error", () => undefined);
  stdin?.on("error", () => undefined);
  return shell;
}

/** A program that runs when this process is gone, even if it was killed. */
export class LastWill {
  readonly #shell: ChildProcess;

  constructor({ file, args, env }: Pick<ProcessRequest, "file" | "args" | "env">) {
    this.#shell = startWatcher('cat >/dev/null; exec "$@"', [file, ...args], env);
  }

  revoke(): void {
    const { pid, exitCode } = this.#shell;
    if (pid !== undefined && exitCode === null) tryKill(-pid, "SIGKILL");
  }
}
