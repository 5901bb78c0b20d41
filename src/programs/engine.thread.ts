/** Runs one program in QuickJS. Runs in a thread of its own; `program.ts` starts it. */
import { parentPort, workerData } from "node:worker_threads";
import { type Deferred, EvalFlags, JSException, QuickJS } from "quickjs-wasi";
import engine from "quickjs-wasi/quickjs.wasm";
import type { EngineInput, FromEngine, ToEngine } from "./program.ts";

const { source, names, now, seed, limits, compiled, onlyCompiles } = workerData as EngineInput; // set by program.ts

/** Time at work in the program, in ms; waiting for calls does not count. */
let spentMs = 0;
let answers = 0;
let calls = 0;
let hasEnded = false;
/** The program's clock, in ms. It stands still while the program works, but for a little at each reading. */
let clock = now;
/** Below a millisecond, so that programs that start at the same time draw different numbers. */
let fraction = BigInt(seed);
const pending = new Map<number, Deferred>();
const log: string[] = [];
let room = limits.logCharacters;

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
const post = (message: FromEngine): void => parentPort?.postMessage(message);

/** Ends the program. The first end counts. */
function end(outcome: { value: string } | { error: string }): void {
  if (hasEnded) return;
  hasEnded = true;
  post({ kind: "end", outcome, log: log.join("\n") });
}

/** Defines the functions of the program. Arguments and answers cross as JSON. */
const PRELUDE = `(function (call, write, names) {
  const { parse, stringify } = JSON;
  const known = new Map();
  for (const name of parse(names)) {
    known.set(name, (args) => {
      // Made here, its stack names the line of the call.
      const failure = new Error();
      return call(name, args === undefined ? "{}" : (stringify(args) ?? "null")).then((answer) => {
        const { value, error } = parse(answer);
        if (error === undefined) return value;
        failure.message = error;
        throw failure;
      });
    });
  }
  const missing = (name) =>
    new Error("No tool is named '" + name + "'. Tools: " + [...known.keys()].join(", ") + ".");
  globalThis.tools = new Proxy(Object.freeze(Object.fromEntries(known)), {
    get(_, name) {
      if (typeof name === "symbol" || name === "then") return undefined;
      if (!known.has(name)) throw missing(name);
      return known.get(name);
    },
  });
  const textOf = (value) => (typeof value === "string" ? value : (stringify(value) ?? String(value)));
  const print = (...values) => write(values.map(textOf).join(" "));
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print };
})`;

/** Reports the end of the program's own promise. */
const ENDING = `(function (main, done, failed) {
  const { stringify } = JSON;
  const textOf = (error) => {
    if (!(error instanceof Error)) return "The program threw " + (stringify(error) ?? String(error));
    return error.name + ": " + error.message + (error.stack ? "\\n" + error.stack : "");
  };
  main.then((value) => stringify(value) ?? "null").then(done, (error) => failed(textOf(error)));
})`;

function call(vm: QuickJS, name: string, args: string): Deferred {
  if (calls >= limits.calls) throw new Error(`A program may make ${limits.calls} calls.`);
  if (args.length > limits.valueCharacters) throw new Error(`The arguments of ${name} are too long.`);
  const deferred = vm.newPromise();
  pending.set((calls += 1), deferred);
  post({ kind: "call", number: calls, name, args });
  return deferred;
}

function write(line: string): void {
  if (room <= 0) return;
  log.push(line.length > room ? `${line.slice(0, room)}…` : line);
  room -= line.length + 1;
}

function done(value: string): void {
  const characters = value.length;
  if (characters <= limits.valueCharacters) return end({ value });
  end({
    error: `The program returned ${characters} characters of JSON, more than ${limits.valueCharacters}. Return less, or write it to a file.`,
  });
}

/** Lets the program work until it waits or ends. */
function work(vm: QuickJS, step: () => void): void {
  const begun = performance.now();
  try {
    step();
    vm.executePendingJobs();
  } catch (error) {
    const stack = error instanceof JSException ? (error.stack ?? "") : "";
    const problem =
      error instanceof Error ? `${error.name}: ${error.message}\n${stack}` : "The program failed.";
    end({ error: withoutOurs(problem) });
  }
  spentMs += performance.now() - begun;
  if (hasEnded) return;
  if (pending.size === 0) end({ error: "The program waits for something that never happens." });
  else post({ kind: "idle", answers, calls, spentMs });
}

/** Names only lines of the program itself. */
const withoutOurs = (problem: string): string =>
  problem
    .split("\n")
    .filter(
      (line) => line.trim() !== "" && !/^\s+at .*\b(prelude|ending)\.js\b|^\s+at .*\bnative\b/.test(line),
    )
    .join("\n");

async function runEngine(): Promise<void> {
  const wasm = compiled ?? (await WebAssembly.compile(engine));
  const vm = await QuickJS.create({
    wasm,
    memoryLimit: limits.memoryBytes,
    maxStackSize: limits.stackBytes,
    timezoneOffset: 0,
    // The clock seeds the random numbers too. Both are the same whenever the program starts again.
    wasi: (memory: { readonly buffer: ArrayBuffer }) => ({
      clock_time_get(_clock: number, _precision: bigint, result: number) {
        new DataView(memory.buffer).setBigUint64(result, BigInt(clock) * 1_000_000n + fraction, true);
        fraction = 0n;
        clock += 1;
        return 0;
      },
      fd_write: () => 0,
    }),
  });
  parentPort?.on("message", ({ number, answer, at }: ToEngine) => {
    answers += 1;
    clock = Math.max(clock, at);
    const deferred = pending.get(number);
    pending.delete(number);
    work(vm, () => deferred?.resolve(vm.newString(answer)));
  });
  post({ kind: "begins", compiled: wasm });
  const text = (value: { toString(): string } | undefined): string => value?.toString() ?? "";
  const none = (act: () => void) => {
    act();
    return vm.undefined;
  };
  const functions = {
    call: vm.newFunction("call", (name, args) => call(vm, text(name), text(args)).handle),
    write: vm.newFunction("write", (line) => none(() => write(text(line)))),
    done: vm.newFunction("done", (value) => none(() => done(text(value)))),
    failed: vm.newFunction("failed", (problem) => none(() => end({ error: withoutOurs(text(problem)) }))),
  };
  work(vm, () => {
    const list = vm.newString(JSON.stringify(names));
    vm.callFunction(vm.evalCode(PRELUDE, "prelude.js"), vm.undefined, functions.call, functions.write, list);
    const flags = onlyCompiles ? EvalFlags.COMPILE_ONLY : EvalFlags.TYPE_GLOBAL;
    const main = vm.evalCode(`(async () => {${source}\n})()`, "program.js", flags);
    if (onlyCompiles) return end({ value: "null" });
    vm.callFunction(vm.evalCode(ENDING, "ending.js"), vm.undefined, main, functions.done, functions.failed);
  });
}

void runEngine();
