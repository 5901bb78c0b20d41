/**
 * The only door between runs and the agent: six functions and the types they speak.
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { Command, END } from "@langchain/langgraph";
import { RunFailure } from "../core/errors.ts";
import { type EarlierEnd, settleAbandoned } from "./abandoned.ts";
import type { ValidatedArgs } from "./agent-tool.ts";
import { assembleDeepAgent, type DeepAgent } from "./create-deep-agent.ts";
import type { EffectLog } from "./effects.ts";
import type { AgentEvent, AgentPath, AgentSnapshot, HitlResponse } from "./events.ts";
import { type Inbox, newMessages, unread, withInbox } from "./inbox.ts";
import type { InboxMessage } from "./told.ts";
import { resolveModel, type ResolveOptions } from "./models/resolve.ts";
import type { DeepAgentParams } from "./params.ts";
import { graphFailure } from "./graph-failure.ts";
import { INTERRUPT } from "./langgraph-keys.ts";
import { type OpenInterrupt, openInterrupts } from "./pending.ts";
import { finishedEvent, snapshotOf, type ThreadState, whatWaits } from "./snapshot.ts";
import type { AgentState } from "./state.ts";
import { eventOf, type TracePlace, withAnswers, withEffectLog, withRunId, withTracePlace } from "./step.ts";

export { pointsOf } from "./points.ts";
export type { EarlierEnd } from "./abandoned.ts";
export type { CallIdentity, EffectLog, StoredOutcome } from "./effects.ts";
export type { Inbox } from "./inbox.ts";
export type { TracePlace } from "./step.ts";
export type { InboxMessage } from "./told.ts";
export type { ModelLender } from "./models/client-model.ts";
export type { SamplingReply, SamplingRequest } from "./models/sampling.ts";
export type { InterruptOn } from "./middleware/human-in-the-loop.ts";
export type { DeepAgentParams, SubAgent } from "./params.ts";
export type {
  ActionRequest,
  AgentEvent,
  AgentPath,
  AgentSnapshot,
  Decision,
  DecisionType,
  HitlRequest,
  HitlResponse,
  PendingInterrupt,
  SameCalls,
  TokenUsage,
} from "./events.ts";

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
  hasAnswers?: () => boolean;
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
      configurable: {
        thread_id: threadId,
        ...withRunId(runId),
        ...withEffectLog(effects),
        ...withInbox(inbox),
        ...withAnswers(hasAnswers),
        ...withTracePlace(trace),
      },
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
    await settleAbandoned(agent.graph, thread.configurable, input.after);
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
