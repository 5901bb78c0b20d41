/** Works on threads with the graph of an agent. */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { Command, END, type StateSnapshot } from "@langchain/langgraph";
import type { FileData } from "../../backends/backend.ts";
import { RunFailure } from "../../core/errors.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import type { ReadChild } from "../contracts/children.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import type { AgentPath, AgentState, FilesState } from "../contracts/state.ts";
import type { ValidatedArgs } from "../contracts/middleware.ts";
import type { Agent, AgentInput, AgentSnapshot, WorkOptions } from "../contracts/agent.ts";
import type { AgentEnd } from "../contracts/events.ts";
import { directAnswer } from "../models/answers.ts";
import { newMessages, received, unread } from "./reading-inbox.ts";
import { taskMessage } from "../messages/messages.ts";
import { MODEL_AWAITED } from "../models/client-model.ts";
import { closeAbandonedCalls } from "./close-open-calls.ts";
import { CHILD_AWAITED } from "./background-tasks.ts";
import { GIVEN_FILES } from "./channels.ts";
import { DeepAgentGraph } from "./deep-agent-graph.ts";
import { readStopReason } from "../budget/limits.ts";
import { Meter } from "../budget/meter.ts";
import { StepFiles } from "../step/files.ts";
import { graphFailure } from "./internals.ts";
import { type OpenInterrupt, isRequest, openInterrupts, questionOf } from "./open-interrupts.ts";
import { type TaskContext, withContext } from "./step-of-task.ts";
import { Progress } from "./untraced-node.ts";
import texts from "./texts.json" with { type: "json" };

export class ThreadAgent implements Agent {
  readonly graph: DeepAgentGraph;
  readonly #limits: AgentLimits | undefined;

  /** `limits`: those of the run, where the agent is a subagent, which has its own. */
  constructor(graph: DeepAgentGraph, limits?: AgentLimits) {
    this.graph = graph;
    this.#limits = limits;
  }

  subagent(name: string): ThreadAgent | undefined {
    const { checkpointer, facts } = this.graph;
    const found = facts.subagents?.find(name)?.runnable;
    if (!(found instanceof DeepAgentGraph) || typeof checkpointer !== "object") return undefined;
    return new ThreadAgent(found.keptBy(checkpointer, this.graph.store), facts.limits);
  }

  checkCall(tool: string, args: unknown, agent: AgentPath = []): ValidatedArgs {
    const unknown: ValidatedArgs = { ok: false, message: `The tool ${tool} is unknown here` };
    return this.graph.checkCall(agent, tool, args) ?? unknown;
  }

  async snapshot(threadId: string): Promise<AgentSnapshot> {
    return snapshotOf(await this.#thread(threadId));
  }

  async drawing(): Promise<string> {
    return (await this.graph.getGraphAsync({ xray: true })).drawMermaid();
  }

  async work(threadId: string, input: AgentInput, options: WorkOptions): Promise<AgentEnd> {
    let reading: Promise<StateSnapshot> | undefined;
    const begun = (): Promise<StateSnapshot> => (reading ??= this.#thread(threadId));
    let next: GraphInput = await this.#inputOf(threadId, input, options, begun);
    const context = await this.#contextOf(options, begun);
    for (;;) {
      const { asked, reached } = await this.#run(threadId, next, context, options);
      options.signal.throwIfAborted();
      const { checkpointer } = this.graph;
      if (typeof checkpointer !== "object") throw new Error("an agent without a checkpointer cannot wait");
      // All open interrupts, in subagents too. A limit closes earlier questions.
      const waiting = asked && whatWaits(await openInterrupts(checkpointer, { thread_id: threadId }), asked);
      if (waiting && !waiting.childAwaited) return { kind: "paused", ...waiting };
      // A limit has closed the requests, or a call that waits looked before another one saw the message.
      const state = reached ?? valuesOf(await this.#thread(threadId));
      const told = await newMessages(options.inbox, state.messages ?? []);
      if (told.length === 0) return waiting ? { kind: "paused", ...waiting } : finishedEvent(state);
      next = waiting ? null : await received(told, state, this.#readChild);
    }
  }

  #thread(threadId: string): Promise<StateSnapshot> {
    return this.graph.getState({ configurable: { thread_id: threadId } }, { subgraphs: true });
  }

  /** The files of a subagent that worked by itself, with those that it started from. */
  readonly #readChild: ReadChild = async ({ name, threadId }) => {
    const child = this.subagent(name);
    const { checkpointer } = this.graph;
    if (child === undefined || typeof checkpointer !== "object") return {};
    const newest = await checkpointer.getTuple({ configurable: { thread_id: threadId } });
    // Most subagents change no files of the thread, and reading a whole conversation takes long.
    const hasFiles = "files" in (newest?.checkpoint.channel_versions ?? {});
    const writesFiles = newest?.pendingWrites?.some(([, channel]) => channel === "files");
    return hasFiles || writesFiles ? valuesOf(await child.#thread(threadId)) : {};
  };

  /** Everything that the graph and those below it need of the run. `begun` reads the thread as it was before. */
  async #contextOf(
    { runId: run, trace: tracePlace, agent = [], signal: _signal, ...given }: WorkOptions,
    begun: () => Promise<StateSnapshot>,
  ): Promise<TaskContext> {
    const context: TaskContext = { ...given, run, tracePlace, readChild: this.#readChild };
    if (this.#limits === undefined) return context;
    // A subagent that works by itself, and not inside a task of the agent that delegated.
    const files = valuesOf(await begun())[GIVEN_FILES] as FilesState | undefined; // our channel
    return {
      ...context,
      path: agent,
      top: agent.length,
      files: new StepFiles(files ?? {}).atStart(),
      meter: new Meter(this.#limits),
    };
  }

  /**
   * Runs the graph until it ends or waits. `asked`: after interrupts, the ids of approvals in the order of their
   * requests. `reached`: the state, if it is known without reading the thread.
   */
  async #run(
    threadId: string,
    input: GraphInput,
    given: TaskContext,
    { runId, signal, events }: WorkOptions,
  ): Promise<{ asked?: string[]; reached?: Partial<AgentState> }> {
    const progress = new Progress();
    const asked: string[] = [];
    const context: TaskContext = {
      ...given,
      progress,
      events: {
        tell: (event) => {
          if ("interruptId" in event) asked.push(event.interruptId);
          events?.tell(event);
        },
        stored: async () => events?.stored(),
      },
    };
    try {
      // Events of subagents come in the same way. Not streaming their steps saves much of their time.
      const stream = await this.graph.stream(input, {
        configurable: withContext({ thread_id: threadId }, context),
        // Traces are found by this tag. Checkpoints keep it too, so it is short.
        tags: ["deepagent-mcp"],
        metadata: { run: runId },
        streamMode: "custom",
        durability: "sync",
        signal,
      });
      for await (const _ of stream);
      if (progress.isInterrupted) return { asked };
      // A graph that a limit may end while it waits continues as another graph.
      const isOneGraph = progress.hasBegun && !new Meter(this.graph.facts.limits, context.meter).hasTotals;
      return isOneGraph ? { reached: progress.state([this.graph.streamChannelsAsIs].flat()) } : {};
    } catch (error) {
      signal.throwIfAborted();
      throw graphFailure(error);
    }
  }

  async #inputOf(
    threadId: string,
    input: AgentInput,
    { runId, startNote }: WorkOptions,
    begun: () => Promise<StateSnapshot>,
  ): Promise<GraphInput> {
    const thread = { configurable: { thread_id: threadId } };
    if (input.kind === "resume") {
      const { checkpointer } = this.graph;
      const newest = typeof checkpointer === "object" ? await checkpointer.getTuple(thread) : undefined;
      // Not every saver keeps the run in the metadata.
      if (memberOf(newest?.metadata, "run") !== runId) {
        const { messages = [] } = valuesOf(await this.graph.getState(thread));
        if (messages.every(({ id }) => id !== runId)) throw lostThread();
      }
      const answers = await this.graph.fittingAnswers(thread.configurable, input.answers);
      return Object.keys(answers).length === 0 ? null : new Command({ resume: answers });
    }
    const { values, tasks } = await begun();
    const messages: readonly BaseMessage[] = values["messages"] ?? [];
    if (messages.some(({ id }) => id === runId)) return null;
    if (input.kind === "continue") throw lostThread();
    // An earlier run stopped within a step. Results of its finished calls count, the other calls are cancelled: those of
    // the step, or those of a reply that was stored in it. A thread with nothing but a child's first state has none.
    for (let pass = 0, left = tasks; pass < 2 && left.length > 0 && messages.length > 0; pass += 1) {
      await closeAbandonedCalls(this.graph, thread.configurable, input.after);
      await this.graph.updateState(thread, null, END);
      left = (await this.#thread(threadId)).tasks;
    }
    const task = taskMessage(input.task, { id: runId, startNote });
    const told = unread(input.told ?? [], messages);
    const { messages: before = [], ...update } = await received(told, values, this.#readChild);
    return { ...update, messages: [...before, task] };
  }
}

type GraphInput = Command<unknown, Partial<AgentState>, "__start__"> | Partial<AgentState> | null;

const lostThread = (): RunFailure => new RunFailure("storage", texts.checkpointsGone);

export function snapshotOf(state: StateSnapshot): AgentSnapshot {
  const { todos = [], files = {}, messages = [] } = valuesOf(state);
  const present = Object.entries(files).filter((entry): entry is [string, FileData] => entry[1] !== null);
  return { todos, files: Object.fromEntries(present), answer: finalText(messages) };
}

export const finishedEvent = ({ messages = [], structuredResponse }: Partial<AgentState>): AgentEnd => ({
  kind: "finished",
  answer: finalText(messages) || directAnswer(messages),
  ...defined({ structured: structuredResponse, stopReason: readStopReason(messages.at(-1)) }),
});

/** The questions of a thread that stopped, in the order of `asked`; undefined if nothing can be answered. */
export function whatWaits(
  open: readonly OpenInterrupt[],
  asked: readonly string[],
): Omit<Extract<AgentEnd, { kind: "paused" }>, "kind"> | undefined {
  const modelAwaited = open.some(({ value }) => value === MODEL_AWAITED);
  const childAwaited = open.some(({ value }) => value === CHILD_AWAITED);
  const waiting = open
    .filter(({ value }) => value !== MODEL_AWAITED && value !== CHILD_AWAITED)
    .toSorted((a, b) => asked.indexOf(a.id) - asked.indexOf(b.id));
  const interrupts = waiting.flatMap(({ id, value }) => (isRequest(value) ? [{ id, request: value }] : []));
  const questions = waiting.filter(({ value }) => !isRequest(value)).map(questionOf);
  return open.length === 0 ? undefined : { interrupts, questions, modelAwaited, childAwaited };
}

export const valuesOf = ({ values }: StateSnapshot): Partial<AgentState> => values as Partial<AgentState>; // our channels

function finalText(messages: readonly BaseMessage[]): string {
  const last = messages.at(-1);
  return AIMessage.isInstance(last) && (last.tool_calls ?? []).length === 0 ? last.text : "";
}
