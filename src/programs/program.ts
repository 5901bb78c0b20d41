// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../core/thread-texts.d.ts" />
/** Runs a program in a thread that it cannot hold up or exhaust. It can call the listed functions and nothing else. */
import { Worker } from "node:worker_threads";
import { Semaphore } from "../core/concurrency.ts";

export const PROGRAM_LIMITS = {
  calls: 200,
  memoryBytes: 64 * 1024 * 1024,
  stackBytes: 256 * 1024,
  /** Time at work; waiting for calls does not count. */
  ownMs: 30_000,
  /** Characters of the JSON that it returns, and of each call's arguments. */
  valueCharacters: 1024 * 1024,
  logCharacters: 20_000,
};

export type ProgramLimits = Readonly<typeof PROGRAM_LIMITS>;

/** Changes of the engine that may make a program take another way through the same answers. */
export const ENGINE = "quickjs-wasi 3.6.2";

export interface ProgramInput {
  /** The body of an async function. */
  readonly source: string;
  readonly names: readonly string[];
  /** The time that its clock begins with, in ms since 1970. */
  readonly now: number;
  /** Distinguishes the random numbers of programs that begin at the same time: 0 to 999,999. */
  readonly seed: number;
  /** Compiles the program and does not run it. Default false. */
  readonly onlyCompiles?: boolean;
}

export interface EngineInput extends ProgramInput {
  readonly limits: ProgramLimits;
  /** The engine as a module of WebAssembly, once a program has begun in this process: compiling it takes most of a short program's time. */
  readonly compiled?: object | undefined;
}

/** A call of a tool. `number`: from 1, in the order in which the program makes them. `args`: JSON. */
export interface ProgramCall {
  readonly number: number;
  readonly name: string;
  readonly args: string;
}

/** The answer to a call: JSON with `value` or `error`. `at`: the time of it, in ms since 1970. */
export interface ToEngine {
  readonly number: number;
  readonly answer: string;
  readonly at: number;
}

export type FromEngine =
  | { readonly kind: "begins"; readonly compiled: object }
  | ({ readonly kind: "call" } & ProgramCall)
  /** The program waits. It has got this many answers and made this many calls. */
  | { readonly kind: "idle"; readonly answers: number; readonly calls: number; readonly spentMs: number }
  | ({ readonly kind: "end" } & ProgramEnd);

export interface ProgramEnd {
  /** `value`: JSON. `error`: a text for the model. */
  readonly outcome: { readonly value: string } | { readonly error: string };
  /** Printed by the program. */
  readonly log: string;
}

export interface ProgramHost {
  called(call: ProgramCall): void;
  /** The program waits for answers, and has received all that exist. */
  waits(): void;
}

/** Programs at work in this process; each may take its memory and a thread. */
const programThreads = new Semaphore(32);

/** The engine, which every thread can use. */
let compiled: object | undefined;

export class RunningProgram {
  readonly end: Promise<ProgramEnd>;
  readonly #worker: Worker;
  readonly #ownMs: number;
  #answers = 0;
  #spentMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #settle: (end: ProgramEnd) => void = () => undefined;

  constructor(code: string, input: EngineInput, host: ProgramHost) {
    this.#ownMs = input.limits.ownMs;
    this.end = new Promise((resolve) => (this.#settle = resolve));
    // The thread has no environment and no output.
    this.#worker = new Worker(code, {
      eval: true,
      workerData: { ...input, compiled },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      // Besides the memory of the engine, which counts by itself.
      resourceLimits: { maxOldGenerationSizeMb: 128 },
    });
    this.#worker.on("message", (message: FromEngine) => {
      if (message.kind === "begins") {
        // The first one comes before any program has begun.
        compiled ??= message.compiled;
        return this.#startClock();
      }
      if (message.kind === "call") return host.called(message);
      if (message.kind === "end") return this.#settle(message);
      this.#spentMs = message.spentMs;
      // Answers that it has not got yet are on their way.
      if (message.answers < this.#answers) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
      host.waits();
    });
    this.#worker.once("error", () => this.#fail("The program was stopped: it took too much memory."));
    this.#worker.once("exit", () => this.#fail("The program was stopped."));
  }

  answer(message: ToEngine): void {
    this.#answers += 1;
    this.#startClock();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    this.#worker.postMessage(message);
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#worker.terminate();
  }

  #startClock(): void {
    const seconds = Math.round(this.#ownMs / 1000);
    this.#timer ??= setTimeout(
      () => this.#fail(`The program was stopped: it worked for more than ${seconds} seconds.`),
      Math.max(0, this.#ownMs - this.#spentMs),
    );
  }

  #fail(error: string): void {
    clearTimeout(this.#timer);
    this.#settle({ outcome: { error }, log: "" });
  }
}

/**
 * Starts a program and lets `work` drive it. The thread ends with `work`.
 *
 * @throws the signal's reason while it waits for its turn.
 */
export async function withProgram<Result>(
  input: ProgramInput & { readonly limits?: ProgramLimits; readonly signal: AbortSignal },
  host: ProgramHost,
  work: (program: RunningProgram) => Promise<Result>,
): Promise<Result | { busy: string }> {
  const { signal, limits = PROGRAM_LIMITS, ...program } = input;
  const { default: code } = await import("./engine.thread.ts?text");
  const patience = AbortSignal.timeout(60_000);
  let isAtWork = false;
  try {
    return await programThreads.run(
      async () => {
        isAtWork = true;
        const running = new RunningProgram(code, { ...program, limits }, host);
        try {
          return await work(running);
        } finally {
          await running.stop();
        }
      },
      AbortSignal.any([signal, patience]),
    );
  } catch (error) {
    if (isAtWork || signal.aborted || !patience.aborted) throw error;
    return { busy: "Too many programs are at work. Try again later, or make the calls one by one." };
  }
}
