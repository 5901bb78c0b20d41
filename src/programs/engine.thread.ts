/** Runs one program in QuickJS. Runs in a thread of its own; `program.ts` starts it. */
import { parentPort, workerData } from "node:worker_threads";
import { type Deferred, EvalFlags, JSException, QuickJS } from "quickjs-wasi";
import engine from "quickjs-wasi/quickjs.wasm";
import prelude from "./prelude.vm.js";
import { orElse } from "../core/errors.ts";
import type { EngineInput, FromEngine, ToEngine } from "./program.ts";

const { source, names, now, seed, limits, compiled, onlyCompiles } = workerData as EngineInput; // set by program.ts

/** Time at work in the program, in ms; waiting for calls does not count. */
let spentMs = 0;
let answers = 0;
let calls = 0;
let hasEnded = false;
/** The end of the program's own part. Calls that nobody awaits are still answered. */
let outcome: { value: string } | { error: string } | undefined;
/** Reasons of promises that were rejected, and that nothing has handled yet. */
const rejected: string[] = [];
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
  for (const reason of rejected) write(`A promise was rejected, and the program did not await it: ${reason}`);
  post({ kind: "end", outcome, log: log.join("\n") });
}

/** Printable ASCII without capitals, as English sorts it. */
const ASCII_ORDER = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))
  .filter((character) => character === character.toLowerCase())
  .sort(new Intl.Collator("en").compare)
  .join("");

/** Formats and compares by Node's own tables. English and UTC, unless the program names others. */
function localize(type: string, method: string, args: string): unknown {
  const [given, ...rest]: unknown[] = (JSON.parse(args) as unknown[]).map((one) => one ?? undefined); // from the prelude
  const before = method === "localeCompare" ? [String(rest.shift())] : [];
  const [locale = "en-US", options] = rest;
  const number = Number(given ?? Number.NaN);
  const value = type === "BigInt" ? BigInt(String(given)) : type === "String" ? String(given) : number;
  const receiver: object = type === "Date" ? new Date(number) : Object(value);
  const choices = type === "Date" ? { timeZone: "UTC", ...Object(options) } : options;
  return Reflect.apply(Reflect.get(receiver, method), receiver, [...before, locale, choices]);
}

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
  const error = `The program returned ${value.length} characters of JSON, more than ${limits.valueCharacters}. Return less, or write it to a file.`;
  outcome = value.length <= limits.valueCharacters ? { value } : { error };
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
  if (outcome !== undefined && (pending.size === 0 || "error" in outcome)) end(outcome);
  else if (pending.size === 0) end({ error: "The program waits for something that never happens." });
  else post({ kind: "idle", answers, calls, spentMs });
}

/** Names only lines of the program itself. */
const withoutOurs = (problem: string): string =>
  problem
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s+at .*\bprelude\.js\b|^\s+at .*\bnative\b/.test(line))
    .join("\n");

async function runEngine(): Promise<void> {
  const wasm = compiled ?? (await WebAssembly.compile(engine));
  const vm = await QuickJS.create({
    wasm,
    memoryLimit: limits.memoryBytes,
    maxStackSize: limits.stackBytes,
    timezoneOffset: 0,
    onUnhandledRejection: (_promise: unknown, reason: { toString(): string }, isHandled: boolean) => {
      const text = reason.toString();
      if (!isHandled) rejected.push(text);
      else if (rejected.includes(text)) rejected.splice(rejected.indexOf(text), 1);
    },
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
  const functions = [
    vm.newFunction("call", (name, args) => call(vm, text(name), text(args)).handle),
    vm.newFunction("write", (line) => none(() => write(text(line)))),
    vm.newFunction("localize", (type, method, args) => {
      const error = "its arguments are not valid; give a locale such as de-DE, and options of Intl";
      return vm.newString(
        JSON.stringify(orElse(() => ({ value: localize(text(type), text(method), text(args)) }), { error })),
      );
    }),
    vm.newFunction("done", (value) => none(() => done(text(value)))),
    vm.newFunction("failed", (problem) => none(() => (outcome = { error: withoutOurs(text(problem)) }))),
  ];
  const program = await compileProgram(vm);
  work(vm, () => {
    if ("error" in program) throw program.error;
    const texts = [JSON.stringify(names), ASCII_ORDER].map((one) => vm.newString(one));
    const report = vm.callFunction(vm.evalCode(prelude, "prelude.js"), vm.undefined, ...functions, ...texts);
    if (onlyCompiles) return end({ value: "null" });
    const main = vm.evalCode(program.code, "program.js", program.flags);
    vm.callFunction(report, vm.undefined, main, program.flags === EvalFlags.ASYNC ? vm.true : vm.false);
  });
}

async function withoutTypes(code: string): Promise<string> {
  const { transform } = await import("sucrase");
  const options = { disableESTransforms: true, keepUnusedImports: true };
  return orElse(() => transform(code, { transforms: ["typescript", "imports"], ...options }).code, code);
}

/**
 * Finds out in which form the program is written: a script with `await`, or the body of an async function with
 * `return`; in a code fence or not; with types, imports and exports or without.
 */
async function compileProgram(vm: QuickJS): Promise<{ code: string; flags: number } | { error: unknown }> {
  const [, code = source] = /^\s*```[^\n]*\n([^]*)```\s*$/.exec(source) ?? [];
  const problems: unknown[] = [];
  for (const plainCode of [() => code, () => withoutTypes(code)]) {
    const plain = await plainCode();
    for (const form of [
      { code: plain, flags: EvalFlags.ASYNC },
      { code: `(async () => {${plain}\n})()`, flags: EvalFlags.TYPE_GLOBAL },
    ])
      try {
        vm.evalCode(form.code, "program.js", form.flags | EvalFlags.COMPILE_ONLY);
        return form;
      } catch (problem) {
        problems.push(problem);
      }
  }
  return { error: problems[1] };
}

void runEngine();
