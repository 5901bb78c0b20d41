/** Runs a program whose functions are the agent's tools: each call is governed, recorded, and made once. */
import { createHash } from "node:crypto";
import type { ToolCall } from "@langchain/core/messages/tool";
import { Semaphore, untilAborted } from "../../core/concurrency.ts";
import { systemClock } from "../../core/clock.ts";
import { oneLine } from "../../core/text.ts";
import type { ProgramCall, ProgramEnd, RunningProgram } from "../../programs/program.ts";
import { ENGINE, PROGRAM_LIMITS, withProgram } from "../../programs/program.ts";
import { type ToolResult, toolError } from "../../tools/tool.ts";
import { DEFAULT_PARALLEL } from "../budget/limits.ts";
import { mergeUpdates } from "../budget/meter.ts";
import type { CallResult } from "../contracts/middleware.ts";
import type {
  InnerCall,
  InnerRecord,
  ProgramQuestions,
  ProgramStart,
  WaitingCall,
} from "../contracts/program.ts";
import type { StateUpdate } from "../contracts/state.ts";
import { textIn } from "../messages/messages.ts";
import type { CallStep } from "./call-step.ts";
import { Suspended, innerStep } from "./inner-step.ts";
import { digest } from "./seal.ts";
import type { Governed } from "./govern.ts";

type GovernCall = (call: ToolCall, step: CallStep) => Promise<Governed>;

/**
 * Runs a program for the call of `step`. When nothing but calls that wait for people is left, it is stopped, and all of
 * their questions are asked at once. With the answers it starts from its top; ended calls answer from their records.
 *
 * @throws a pause, and what nobody may answer, as `govern` does.
 */
export async function runProgram(source: string, step: CallStep, govern: GovernCall): Promise<ToolResult> {
  const { program: scope, scope: call } = step;
  const outer = call.context.callId;
  const first = { now: systemClock(), engine: ENGINE };
  for (;;) {
    const questions = await scope.questions();
    const known = await scope.records.begin(first);
    if (known.start.engine !== ENGINE) {
      const made = listed(known.calls) || "no calls";
      const problem = `The program was interrupted, and cannot continue with another version of its engine. Before that it had made: ${made}. Check what they did before you continue.`;
      return toolError(problem);
    }
    const pass = new Pass(step, govern, { questions, ...known });
    const input = {
      source,
      names: [...step.agent.tools.values()].flatMap(({ name, kind }) => (kind === "delegate" ? [] : [name])),
      now: known.start.now,
      seed: createHash("sha256").update(outer).digest().readUInt32BE(0) % 1_000_000,
      signal: call.context.signal,
    };
    const end = await withProgram(input, pass, (running) => pass.drive(running));
    if ("busy" in end) return toolError(end.busy);
    if (!("waiting" in end)) return resultOf(end, pass);
    await questions.ask(end.waiting);
  }
}

/** Returns the error of a program that does not compile. Any other end of the engine proves nothing. */
export async function compileProgram(source: string, signal: AbortSignal): Promise<ToolResult | undefined> {
  const input = { source, names: [], now: 0, seed: 0, signal, onlyCompiles: true };
  const host = { called: () => undefined, waits: () => undefined };
  const end = await withProgram<ProgramEnd>(input, host, (running) => untilAborted(running.end, signal));
  const { error = "" } = "outcome" in end && "error" in end.outcome ? end.outcome : {};
  return error.startsWith("SyntaxError: ") ? toolError(error) : undefined;
}

const digestOf = (name: string, args: unknown): string => digest([name, args]);

interface Known {
  questions: ProgramQuestions;
  start: ProgramStart;
  calls: ReadonlyMap<number, InnerRecord>;
}

type PassEnd = ProgramEnd | { waiting: readonly WaitingCall[] };

/** One start of a program, until it ends or can only wait for people. */
class Pass {
  readonly #step: CallStep;
  readonly #govern: GovernCall;
  readonly #known: Known;
  /** Recorded calls that the program has made again, by the order in which they ended. */
  readonly #again = new Map<number, Required<Pick<InnerRecord, "ended">> & { number: number }>();
  /** New calls: they begin when all recorded ones have been answered, so that a difference is found before. */
  readonly #held: ProgramCall[] = [];
  readonly #waiting: WaitingCall[] = [];
  readonly #ended: number;
  readonly #turns: Semaphore;
  readonly updates: StateUpdate[] = [];
  readonly made: Array<{ name: string; isError: boolean }> = [];
  #program: RunningProgram | undefined;
  #answered = 0;
  #order: number;
  #atWork = 0;
  #isWaiting = false;
  #hasFailed = false;
  #isOver: ProgramEnd | undefined;
  /** Records and answers, one after the other. */
  readonly #ends = new Semaphore(1);
  #settle: (end: PassEnd) => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;

  constructor(step: CallStep, govern: GovernCall, known: Known) {
    this.#step = step;
    this.#govern = govern;
    this.#known = known;
    this.#ended = [...known.calls.values()].filter(({ ended }) => ended !== undefined).length;
    this.#order = this.#ended;
    this.#turns = new Semaphore(step.agent.limits.parallelTools ?? DEFAULT_PARALLEL);
  }

  /** Returns how the program ended, once no call of it is at work any more. */
  drive(program: RunningProgram): Promise<PassEnd> {
    this.#program = program;
    const end = new Promise<PassEnd>((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
    void program.end.then((ended) => this.#giveUpIfStuck(ended));
    return untilAborted(end, this.#step.scope.context.signal);
  }

  called(call: ProgramCall): void {
    const record = this.#known.calls.get(call.number);
    if (record && record.call !== digestOf(call.name, JSON.parse(call.args))) return this.#differs(call);
    const { ended } = record ?? {};
    if (ended) this.#again.set(ended.order, { number: call.number, ended });
    else this.#held.push(call);
    // Answers recorded calls in the order in which they ended, and then begins new ones.
    for (let again; (again = this.#again.get(this.#answered + 1));) {
      this.#answered += 1;
      const { number } = again;
      const { answer, at, update } = again.ended;
      if (update?.files) this.#step.files.apply(update.files);
      this.#answer({ number, answer, at }, this.#known.calls.get(number)?.name ?? "", update);
    }
    if (this.#answered < this.#ended) return;
    for (const held of this.#held.splice(0)) void this.#begin(held);
  }

  waits(): void {
    this.#isWaiting = true;
    if (this.#answered < this.#ended) return this.#differs();
    this.#giveUpIfStuck();
  }

  #answer(
    given: Parameters<RunningProgram["answer"]>[0],
    name: string,
    update: StateUpdate | undefined,
  ): void {
    this.made.push({ name, isError: given.answer.startsWith('{"error":') });
    if (update) this.updates.push(update);
    this.#isWaiting = false;
    this.#program?.answer(given);
  }

  /** Never rejects. */
  async #begin({ number, name, args }: ProgramCall): Promise<void> {
    this.#atWork += 1;
    const outer = this.#step.scope.context.callId;
    const inner: InnerCall = { outer, number };
    try {
      const given = JSON.parse(args) as ToolCall["args"]; // which the tool checks
      const call: ToolCall = { type: "tool_call", id: `${outer}:${number}`, name, args: given };
      const record = { name, call: digestOf(name, given) };
      const begun = (): Promise<void> => this.#step.program.records.put(number, record);
      const step = innerStep(this.#step, call, { inner, asked: this.#known.questions, begun });
      const governed = await this.#turns.run(async () => {
        if (this.#hasFailed) throw new Error("the program was stopped");
        return this.#govern(call, step);
      }, step.scope.context.signal);
      if (governed.kind !== "waits") await this.#end(number, record, governed.result);
      else if (governed.pause instanceof Suspended) this.#waiting.push(governed.pause.waiting);
      else throw governed.pause;
    } catch (error) {
      this.#hasFailed = true;
      this.#fail(error);
    }
    this.#atWork -= 1;
    this.#giveUpIfStuck();
  }

  #end(number: number, record: InnerRecord, result: CallResult): Promise<void> {
    return this.#ends.run(async () => {
      // Another start of the program may have taken the call over.
      if (this.#hasFailed) return;
      const order = (this.#order += 1);
      const { update } = result;
      const [at, answer] = [systemClock(), answerOf(result)];
      const ended = { order, at, answer, ...(update && { update }) };
      await this.#step.program.records.put(number, { ...record, ended });
      this.#answer({ number, answer, at }, record.name, update);
    });
  }

  /** Ends the pass when no call is at work, and the program has ended or waits for calls that wait for people. */
  #giveUpIfStuck(over?: ProgramEnd): void {
    this.#isOver ??= over;
    if (this.#atWork > 0 || (!this.#isWaiting && !this.#isOver)) return;
    if (this.#waiting.length > 0) this.#settle({ waiting: this.#waiting });
    else if (this.#isOver) this.#settle(this.#isOver);
  }

  #differs(call?: ProgramCall): void {
    const other = call && `call ${call.number} is ${call.name} with other arguments, or another tool`;
    const which = other ?? "calls are missing";
    const error = `The program took another way than before it was interrupted: ${which}. It was stopped, and nothing further was called. Before that it had made: ${listed(this.#known.calls)}. Check what they did before you continue.`;
    this.#settle({ outcome: { error }, log: "" });
  }
}

const listed = (calls: ReadonlyMap<number, InnerRecord>): string =>
  [...calls]
    .sort(([one], [other]) => one - other)
    .map(([number, { name, ended }]) => `${number}. ${name}${ended ? "" : " (its end is unknown)"}`)
    .join(", ");

/** The answer to a call as JSON: the whole text of its result, or its error. */
function answerOf({ content, whole, plain, status }: CallResult): string {
  const text = plain ?? whole?.text ?? textIn(content);
  if (status === "error") return JSON.stringify({ error: text.replace(/^Error: /, "") });
  if (text.length <= PROGRAM_LIMITS.valueCharacters) return JSON.stringify({ value: text });
  const error = `The result has ${text.length} characters, more than a program takes (${PROGRAM_LIMITS.valueCharacters}). Ask for a part of it.`;
  return JSON.stringify({ error });
}

function resultOf({ outcome, log }: ProgramEnd, { made, updates }: Pass): ToolResult {
  const printed = log === "" ? [] : [`Printed:\n${log}`];
  const update = mergeUpdates(updates) as NonNullable<ToolResult["update"]>; // and channels of layers
  const changes = updates.length > 0 ? { update } : {};
  if (!("error" in outcome)) {
    const value: unknown = JSON.parse(outcome.value);
    const shown = typeof value === "string" ? value : outcome.value;
    return { content: [shown, ...printed].join("\n\n"), ...changes };
  }
  // Names in a row are counted: `read_file (3), write_file failed`.
  const parts: Array<{ text: string; count: number }> = [];
  for (const { name, isError } of made) {
    const text = `${oneLine(name, 64)}${isError ? " failed" : ""}`;
    const last = parts.at(-1);
    if (last?.text === text) last.count += 1;
    else parts.push({ text, count: 1 });
  }
  const names = parts.map(({ text, count }) => (count === 1 ? text : `${text} (${count})`)).join(", ");
  const calls = made.length === 0 ? [] : [`Calls that were made, in the order of their ends: ${names}.`];
  return { ...toolError([outcome.error, ...printed, ...calls].join("\n\n")), ...changes };
}
