/** Finds the questions that a thread waits on, and checks the answers to them. */
import { isDeepStrictEqual } from "node:util";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointTuple, Send } from "@langchain/langgraph";
import { isObject, isRecord, defined } from "../../core/unknown.ts";
import { checkAnswer } from "../../tools/check-answer.ts";
import type { Answer, Question, Value } from "../../tools/request.ts";
import type {
  AskedByProgram,
  AskedQuestion,
  HitlRequest,
  HitlResponse,
  PendingQuestion,
} from "../contracts/question.ts";
import type { ValidatedArgs } from "../contracts/middleware.ts";
import { responseProblem } from "../calls/check.ts";
import { digest } from "../calls/seal.ts";
import {
  CHECKPOINTER_KEY,
  ERROR,
  INTERRUPT,
  NO_TASK,
  RESUME,
  RESUME_MAP_KEY,
  SCRATCHPAD_KEY,
  type Scratchpad,
  TASKS_CHANNEL,
  interruptsIn,
} from "./internals.ts";
import { TOOLS } from "./channels.ts";

/** An open interrupt of a thread: a request for approval, or whatever a tool of the user asked. */
export interface OpenInterrupt {
  readonly id: string;
  /** LangGraph's own id. */
  readonly interruptId: string;
  readonly value: unknown;
  /** JSON Schema of the answer, if whoever asks states one. */
  readonly schema?: Record<string, unknown>;
}

/** The id of a question: LangGraph's, with a number from the second question of a task on, so that each differs. */
export function questionId(interruptId: string, value: unknown): string {
  const number = isRequest(value) ? value.question : isAsked(value) ? value.number : undefined;
  return number === undefined || number === 1 ? interruptId : `${interruptId}-${number}`;
}

/** The questions of the program whose call asks, if it is one of a program. */
export const askedByProgram = (value: unknown): AskedByProgram | undefined =>
  isRequest(value) || isAsked(value) ? value.program : undefined;

/** The open interrupts of a thread, subagents included. LangGraph's `getState` also lists answered ones. */
export async function openInterrupts(
  checkpointer: BaseCheckpointSaver,
  { thread_id, checkpoint_id, checkpoint_ns = "" }: NonNullable<RunnableConfig["configurable"]>,
): Promise<OpenInterrupt[]> {
  const at: Address = { thread_id, checkpoint_ns: checkpoint_ns as string }; // LangGraph's
  const tuple = await checkpointer.getTuple({ configurable: { ...at, ...defined({ checkpoint_id }) } });
  const writes = tuple?.pendingWrites ?? [];
  const found = await Promise.all(
    openQuestions(writes).map(async ([task, , written]) => {
      // A task keeps only the last interrupt of the subagent it runs; the subagent's checkpoint has all.
      const nested = await openInterrupts(checkpointer, below(at, task));
      if (nested.length > 0) return nested;
      return interruptsIn(written).flatMap(({ id, value, response_schema: schema }) =>
        id ? [{ id: questionId(id, value), interruptId: id, value, ...defined({ schema }) }] : [],
      );
    }),
  );
  const order = callOrder(tuple);
  return found.flat().toSorted((a, b) => order(a) - order(b));
}

/** The place of a question's call among the calls of the reply that a step runs; those without one come last. */
function callOrder(tuple: CheckpointTuple | undefined): (interrupt: OpenInterrupt) => number {
  const calls = sendsIn(tuple).map(({ args }: { args?: unknown }) => Object(args).callId);
  return ({ value }) => {
    if (!isRequest(value)) return calls.length;
    const ids = [value.actionRequests[0]?.toolCallId, ...(value.agent ?? []).map(({ callId }) => callId)];
    const at = calls.findIndex((call) => ids.includes(call));
    return at < 0 ? calls.length : at;
  };
}

/** The tasks that a step runs for calls. */
export function sendsIn(tuple: CheckpointTuple | undefined): Send[] {
  const sent: unknown = tuple?.checkpoint.channel_values[TASKS_CHANNEL];
  return Array.isArray(sent) ? (sent as Send[]) : []; // LangGraph's channel
}

export type Writes = NonNullable<CheckpointTuple["pendingWrites"]>;

/** The tasks of a step that have finished: those with a write to another channel than the three of LangGraph. */
export const finishedTasks = (writes: Writes): ReadonlySet<string> =>
  new Set(writes.flatMap(([task, channel]) => ([INTERRUPT, RESUME, ERROR].includes(channel) ? [] : [task])));

/** Interrupts of tasks that have not finished. */
function openQuestions(writes: Writes): Writes {
  const finished = finishedTasks(writes);
  return writes.filter(([task, channel]) => channel === INTERRUPT && !finished.has(task));
}

/** The place of a graph's checkpoints. */
export type Address = Readonly<{ thread_id: unknown; checkpoint_ns: string }>;

/** The place of the graph that a call's task runs. */
export const below = ({ thread_id, checkpoint_ns }: Address, task: string): Address => ({
  thread_id,
  checkpoint_ns: [checkpoint_ns, `${TOOLS}:${task}`].filter((part) => part !== "").join("|"),
});

/** Checks the arguments of an edited call; `undefined` where the tools of the asking agent are not known. */
export type EditCheck = (request: HitlRequest, tool: string, args: unknown) => ValidatedArgs | undefined;

/** The problem of an answer to an open interrupt, if it has one. A program's own interrupt takes anything. */
export function answerProblem(
  { value }: OpenInterrupt,
  answer: unknown,
  checkEdit: EditCheck,
): string | undefined {
  if (isAsked(value)) {
    const checked = checkAnswer(value.question, asAnswer(answer));
    return checked.ok ? undefined : checked.message;
  }
  if (!isRequest(value)) return undefined;
  const problem = responseProblem(value, answer);
  if (problem !== undefined) return problem;
  for (const decision of (answer as HitlResponse).decisions) {
    if (decision.type !== "edit") continue;
    const checked = checkEdit(value, decision.editedAction.name, decision.editedAction.args);
    if (checked?.ok === false) return checked.message.replace(/\.?$/, ".");
  }
  return undefined;
}

export const isAsked = (value: unknown): value is AskedQuestion =>
  isRecord(value) && isRecord(value["question"]) && typeof value["toolCallId"] === "string";

/** An answer in the form that programs use: with its type, or the values of the fields alone. */
function asAnswer(given: unknown): Answer {
  const values = isRecord(given) ? given : { answer: given };
  const types: readonly unknown[] = ["fields", "value", "opened", "decline", "expired"];
  if (types.includes(values["type"])) return given as Answer; // whose values are checked
  return { type: "fields", values: values as Record<string, Value> };
}

export const questionOf = ({ id, value, schema }: OpenInterrupt): PendingQuestion =>
  isAsked(value)
    ? { id, question: value.question, agent: value.agent, callId: value.toolCallId }
    : { id, question: { kind: "interrupt", value, ...defined({ schema }) }, agent: [] };

export interface BoundAnswer {
  answer: Answer;
  asked: string;
}

/** Differs for each question: when a call begins again, others may ask something else. */
export const sealOfQuestion = (question: Question): string => digest(question);

/** An answer to a question, for that question alone. */
export const bound = (answer: unknown, { question }: AskedQuestion): BoundAnswer => ({
  answer: asAnswer(answer),
  asked: sealOfQuestion(question),
});

/** The value that resumes an interrupt. A program's own interrupt gets the answer alone. */
export function resumeValue({ value }: OpenInterrupt, answer: unknown): unknown {
  if (isRequest(value) || isAsked(value) || !isRecord(answer)) return answer;
  if (answer["type"] === "value") return answer["value"];
  if (answer["type"] === "fields") return answer["values"];
  return { declined: true };
}

/** True if an interrupt asks for an approval. */
export const isRequest = (value: unknown): value is HitlRequest =>
  isObject(value) && "actionRequests" in value;

/** Takes the place of an answer that was refused, which LangGraph would offer again. */
const REFUSED = { deepagent: "refused answer" };

/**
 * Takes away an answer without an id, which LangGraph, below someone else's graph, offers to every open question though
 * it has shown one. It counts only if no other question is open; else all stay open.
 */
export async function refuseBroadcastAnswer({ configurable = {} }: RunnableConfig): Promise<void> {
  const scratchpad = configurable[SCRATCHPAD_KEY] as Scratchpad | undefined; // LangGraph's
  if (scratchpad?.nullResume === undefined) return;
  const hasOwn = scratchpad.resume.length > scratchpad.interruptCounter + 1;
  if (hasOwn) return;
  const isStale = Boolean(configurable[RESUME_MAP_KEY]) || isDeepStrictEqual(scratchpad.nullResume, REFUSED);
  if (!isStale && (await isOnlyQuestion(configurable))) return;
  delete scratchpad.nullResume;
}

/** True if only the running task has asked, in its graph and the graphs around it; otherwise the answer is removed. */
async function isOnlyQuestion(configurable: Record<string, unknown>): Promise<boolean> {
  const checkpointer = configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined; // LangGraph's
  const { thread_id, checkpoint_ns: own } = configurable;
  if (typeof checkpointer !== "object" || typeof own !== "string") return false;
  const places = own.split("|").map((_, depth, parts) => parts.slice(0, depth).join("|"));
  const around = await Promise.all(
    places.map((checkpoint_ns) => checkpointer.getTuple({ configurable: { thread_id, checkpoint_ns } })),
  );
  const tuples = around.filter((tuple) => tuple !== undefined);
  const hasOneTask = ({ pendingWrites = [] }: CheckpointTuple): boolean =>
    new Set(openQuestions(pendingWrites).map(([task]) => task)).size <= 1;
  if (tuples.every(hasOneTask)) return true;
  const stored = tuples.filter(({ pendingWrites = [] }) =>
    pendingWrites.some(([task, channel]) => task === NO_TASK && channel === RESUME),
  );
  await Promise.all(stored.map(({ config }) => checkpointer.putWrites(config, [[RESUME, REFUSED]], NO_TASK)));
  return false;
}
