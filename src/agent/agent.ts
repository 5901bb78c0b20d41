/** The only door between runs and the agent: its functions, and the types they speak. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, END, type StateSnapshot } from "@langchain/langgraph";
import type { MaybePromise, FileData } from "../backends/backend.ts";
import { RunFailure } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import type {
  AgentEvent,
  AgentPath,
  AgentSnapshot,
  AgentState,
  EffectLog,
  HitlRequest,
  HitlResponse,
  Inbox,
  InboxMessage,
  PendingInterrupt,
  ValidatedArgs,
} from "./contracts.ts";
import { directAnswer } from "./conversation/answers.ts";
import { newMessages, unread } from "./conversation/inbox.ts";
import { isEvicted } from "./conversation/offloaded-texts.ts";
import { type DeepAgent, assembleDeepAgent } from "./definition/create-deep-agent.ts";
import type { DeepAgentParams } from "./definition/params.ts";
import { INTERRUPT } from "./engine/langgraph-keys.ts";
import { graphFailure, stopReasonOf } from "./engine/limits.ts";
import { type OpenInterrupt, openInterrupts } from "./engine/open-interrupts.ts";
import { type TracePlace, eventOf, withContext } from "./engine/task-context.ts";
import { MODEL_AWAITED } from "./models/client-model.ts";
import { type ResolveOptions, resolveModel } from "./models/resolve.ts";
import { type EarlierEnd, closeAbandonedCalls } from "./subagents/close-open-calls.ts";

export type { EarlierEnd } from "./subagents/close-open-calls.ts";
export type { TracePlace } from "./engine/task-context.ts";
export type { ModelLender, SamplingReply, SamplingRequest } from "./models/client-model.ts";
export type { InterruptOn } from "./middleware/human-in-the-loop.ts";
export type { DeepAgentParams, SubAgent } from "./definition/params.ts";
export type {
  ActionRequest,
  AgentEvent,
  AgentPath,
  AgentSnapshot,
  CallIdentity,
  Decision,
  DecisionType,
  EffectLog,
  HitlRequest,
  HitlResponse,
  Inbox,
  InboxMessage,
  PendingInterrupt,
  SameCalls,
  StoredOutcome,
  TokenUsage,
} from "./contracts.ts";

/** An agent as runs know it. */
export interface Agent {
  readonly graph: DeepAgent["graph"];
  /** Checks a call of this agent or of a subagent of its, before what a person made of it is stored. */
  validateCall(tool: string, args: unknown, agent?: AgentPath): ValidatedArgs;
}

/** What to do next in a thread. */
export type AgentInput =
  /**
   * A new task. Handed over again for the same run it is not added twice: the run goes on. `after`: how the
   * run before it in the thread ended, if not well; the calls it left behind are told so. `told`: messages to
   * earlier runs of the thread; those that ended before they had read them come before the task.
   */
  | {
      kind: "task";
      task: string;
      after?: EarlierEnd | undefined;
      told?: readonly InboxMessage[];
    }
  /**
   * Answers by interrupt id; requests whose answers are left out, or do not fit, stay open. An edit is to be
   * checked before by `validateCall`: to a call that cannot be made it denies the call.
   */
  | { kind: "resume"; answers: Readonly<Record<string, HitlResponse>> }
  /** Go on from the last checkpoint. */
  | { kind: "continue" };

export interface StreamOptions {
  threadId: string;
  runId: string;
  signal: AbortSignal;
  /** Keeps calls with outside effects from being made twice when a run goes on after a crash. */
  effects?: EffectLog;
  /** What the agent is told while it works. It does not finish before it has read all of it. */
  inbox?: Inbox;
  /** Whether answers wait that the agent was not resumed with: then a limit does not close the other requests yet. */
  hasAnswers?: () => MaybePromise<boolean>;
  /** Where its spans belong, if a tracer listens. */
  trace?: TracePlace;
}

/** The model that `options` and the environment choose. */
export async function buildLlm(options: ResolveOptions): Promise<BaseChatModel> {
  return (await resolveModel(options)).model;
}

/** Builds an agent; what it needs of the outside comes as parameters. */
export function buildAgent(params: DeepAgentParams): Agent {
  const { graph } = assembleDeepAgent(params);
  return {
    graph,
    validateCall: (name, args, agent = []) => {
      const unknown: ValidatedArgs = { ok: false, message: `Nothing is known of the tool ${name} here` };
      return graph.checkCall(agent, name, args) ?? unknown;
    },
  };
}

/**
 * Works on a thread and tells what happens, in order. Ends with `finished`, or with `paused` and all
 * requests that wait for a person.
 *
 * @throws RunFailure when the run cannot go on, with a stable code; an abort error when `signal` aborted;
 *   anything else is a bug.
 */
export async function* streamEvents(
  agent: Agent,
  input: AgentInput,
  options: StreamOptions,
): AsyncGenerator<AgentEvent> {
  const { signal, threadId } = options;
  let next: GraphInput = await graphInput(agent, input, options);
  for (;;) {
    const asked = yield* streamGraph(agent, next, options);
    signal.throwIfAborted();
    const waiting = asked && whatWaits(await openIn(agent, threadId), asked);
    if (waiting) return yield { kind: "paused", ...waiting };
    // A limit has closed what was asked.
    const thread = await readThread(agent, threadId);
    const messages = await newMessages(options.inbox, thread.values["messages"] ?? []);
    if (messages.length === 0) return yield finishedEvent(thread);
    next = { messages };
  }
}

/** What is open yet, in subagents too: a limit closes what was asked before. */
async function openIn({ graph: { checkpointer } }: Agent, threadId: string): Promise<OpenInterrupt[]> {
  if (typeof checkpointer !== "object") throw new Error("an agent without a checkpointer cannot wait");
  return openInterrupts(checkpointer, { thread_id: threadId });
}

/** Lets the graph work until it stops; at interrupts, it gives the ids of approvals in the order they were asked for. */
async function* streamGraph(
  agent: Agent,
  input: GraphInput,
  { threadId, runId, signal, effects, inbox, hasAnswers, trace }: StreamOptions,
): AsyncGenerator<AgentEvent, string[] | undefined> {
  const asked: string[] = [];
  let isInterrupted = false;
  try {
    // Events of subagents come in the same way. That their steps are not streamed saves much of their time.
    const stream = await agent.graph.stream(input, {
      configurable: withContext(
        { thread_id: threadId },
        { run: runId, effects, inbox, hasAnswers, tracePlace: trace },
      ),
      // What traces are found by; checkpoints keep it too, so it is short.
      tags: ["deepagent-mcp"],
      metadata: { run: runId },
      streamMode: ["custom", "updates"],
      durability: "sync",
      signal,
    });
    // With two modes, chunks are [mode, payload].
    for await (const [, chunk] of stream as AsyncIterable<[string, unknown]>) {
      const event = eventOf(chunk);
      if (event?.kind === "approval_requested") asked.push(event.interruptId);
      if (event) yield event;
      isInterrupted ||= typeof chunk === "object" && chunk !== null && INTERRUPT in chunk;
    }
    return isInterrupted ? asked : undefined;
  } catch (error) {
    signal.throwIfAborted();
    throw graphFailure(error);
  }
}

/** What a thread holds now: todos, files, the last answer. */
export async function getAgentState(agent: Agent, threadId: string): Promise<AgentSnapshot> {
  return snapshotOf(await readThread(agent, threadId));
}

/** The input that goes on with the given answers, by interrupt id and never by broadcast. */
export function resumeAgentInput(answers: Readonly<Record<string, HitlResponse>>): AgentInput {
  return { kind: "resume", answers };
}

async function readThread({ graph }: Agent, threadId: string): Promise<ThreadState> {
  return graph.getState({ configurable: { thread_id: threadId } }, { subgraphs: true });
}

type GraphInput = Command<unknown, Partial<AgentState>, "__start__"> | Partial<AgentState> | null;

async function graphInput(
  agent: Agent,
  input: AgentInput,
  { threadId, runId }: { threadId: string; runId: string },
): Promise<GraphInput> {
  const thread = { configurable: { thread_id: threadId } };
  if (input.kind === "resume") {
    if (!(await hasRun(agent, threadId, runId))) throw lostThread();
    const answers = await agent.graph.fittingAnswers(thread.configurable, input.answers);
    return Object.keys(answers).length === 0 ? null : new Command({ resume: answers });
  }
  const { values, next } = await agent.graph.getState(thread);
  const messages: readonly BaseMessage[] = values["messages"] ?? [];
  if (messages.some(({ id }) => id === runId)) return null;
  if (input.kind === "continue") throw lostThread();
  if (next.length > 0) {
    // An earlier run stopped within a step: what its calls finished counts, the others are given up.
    await closeAbandonedCalls(agent.graph, thread.configurable, input.after);
    await agent.graph.updateState(thread, null, END);
  }
  const task = new HumanMessage({ id: runId, content: input.task });
  return { messages: [...unread(input.told ?? [], messages), task] };
}

/** Whether the thread's newest state is of this run; its first version did not note that. */
async function hasRun({ graph }: Agent, threadId: string, runId: string): Promise<boolean> {
  const thread = { configurable: { thread_id: threadId } };
  const { checkpointer } = graph;
  const newest = typeof checkpointer === "object" ? await checkpointer.getTuple(thread) : undefined;
  // Metadata of LangGraph's own has no key of ours.
  if (newest !== undefined && (newest.metadata as { run?: unknown } | undefined)?.run === runId) return true;
  const { values } = await graph.getState(thread);
  const messages: readonly BaseMessage[] = values["messages"] ?? [];
  return messages.some(({ id }) => id === runId);
}

const lostThread = (): RunFailure =>
  new RunFailure(
    "storage",
    "What the run did until now is stored no more: its checkpoints were deleted, or replaced by an older copy. " +
      "See in its events what it did, and start a new run for the rest.",
  );

/** A thread as LangGraph gives it. */
export type ThreadState = StateSnapshot;

/** The parts of a thread that runs and clients care about. */
export function snapshotOf(state: ThreadState): AgentSnapshot {
  const { todos = [], files = {}, messages = [] } = valuesOf(state);
  const present = Object.entries(files).filter((entry): entry is [string, FileData] => entry[1] !== null);
  return {
    todos,
    files: Object.fromEntries(present),
    answer: finalText(messages),
  };
}

/** The last event of a run that ended in order. */
export function finishedEvent(state: ThreadState): AgentEvent {
  const { messages = [], structuredResponse } = valuesOf(state);
  const last = messages.at(-1);
  const stopReason = stopReasonOf(last);
  return {
    kind: "finished",
    answer: finalText(messages) || directAnswer(messages),
    ...(structuredResponse === undefined ? {} : { structured: structuredResponse }),
    ...(stopReason ? { stopReason } : {}),
  };
}

/** What a thread that stopped waits for, first what was `asked` first; `undefined`: nothing that can be answered. */
export function whatWaits(
  open: readonly OpenInterrupt[],
  asked: readonly string[],
): { interrupts: PendingInterrupt[]; modelAwaited: boolean } | undefined {
  const interrupts = open.flatMap(({ id, value }): PendingInterrupt[] => {
    // The value is what the gate of this project, or of LangChain's middleware, asked with.
    const request = value as HitlRequest | undefined;
    return Array.isArray(request?.actionRequests) ? [{ id, request }] : [];
  });
  interrupts.sort((a, b) => asked.indexOf(a.id) - asked.indexOf(b.id));
  const modelAwaited = open.some(({ value }) => value === MODEL_AWAITED);
  return interrupts.length > 0 || modelAwaited ? { interrupts, modelAwaited } : undefined;
}

const valuesOf = ({ values }: ThreadState): Partial<AgentState> => values as Partial<AgentState>; // our channels

function finalText(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls ?? []).length === 0 ? last.text : "";
}

/** A step of a thread, as it is kept. */
interface StepRecord {
  number: number;
  checkpointId: string;
  /** Milliseconds since the epoch. */
  time: number;
  /** What the step added to the thread's messages. */
  messages: readonly unknown[];
}

/** A moment of a thread that another thread can begin from. */
interface ThreadPoint {
  number: number;
  checkpointId: string;
  time: number;
  /** The newest message of a person until then. */
  messageId?: string;
  /** One line: what happened there. */
  summary: string;
}

const LINE = 160;

/** The steps of a thread that changed its conversation, oldest first. */
export function pointsOf(steps: readonly StepRecord[]): ThreadPoint[] {
  let messageId: string | undefined;
  return steps.flatMap(({ messages, ...step }) => {
    // What stands for a message whose text went into a file is no message of its own.
    const added = messages
      .flat()
      .filter((message) => BaseMessage.isInstance(message))
      .filter((message) => !isEvicted(message));
    if (added.length === 0) return [];
    messageId = added.findLast((message) => HumanMessage.isInstance(message))?.id ?? messageId;
    const { number, checkpointId, time } = step;
    const summary = oneLine(summaryOf(added), LINE);
    return [{ number, checkpointId, time, summary, ...(messageId === undefined ? {} : { messageId }) }];
  });
}

function summaryOf(messages: readonly BaseMessage[]): string {
  const results = messages.flatMap((message) =>
    ToolMessage.isInstance(message) ? [message.name ?? ""] : [],
  );
  const said = messages.filter((message) => !ToolMessage.isInstance(message)).map(lineOf);
  return [...(results.length === 0 ? [] : [`results of ${results.join(", ")}`]), ...said].join("; ");
}

function lineOf(message: BaseMessage): string {
  if (!AIMessage.isInstance(message))
    return `${message.type === "human" ? "told" : message.type}: ${message.text}`;
  const calls = (message.tool_calls ?? []).map(({ name }) => name);
  return calls.length === 0 ? `answered: ${message.text}` : `called ${calls.join(", ")}`;
}
