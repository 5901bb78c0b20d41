/** Starts subagents, ours and graphs of others, and takes over their reports, files and state. */
import type { BaseMessageLike } from "@langchain/core/messages";
import { AIMessage, BaseMessage, ChatMessage, coerceMessageLikeToMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type BaseCheckpointSaver, isGraphBubbleUp } from "@langchain/langgraph";
import type { FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { Semaphore } from "../../core/concurrency.ts";
import { ConfigurationError, errorMessage, isTransient } from "../../core/errors.ts";
import { namesText } from "../../core/listing.ts";
import { isRecord, memberOf, recordOf, defined } from "../../core/unknown.ts";
import { type ToolResult, toolError } from "../../tools/tool.ts";
import type { AgentState, TextsByName } from "../contracts/state.ts";
import { directAnswer } from "../models/answers.ts";
import { beforeReply, lastAnswer, taskMessage } from "../messages/messages.ts";
import { NoStructuredResponse } from "../models/structured-answer.ts";
import type {
  AgentDefinition,
  BuiltSubagent,
  SpawnScope,
  SubagentRunnable,
  Subagents,
} from "./definition.ts";
import { CHECKPOINTER_KEY, graphFailure } from "./internals.ts";
import { DEFAULT_PARALLEL, currentRun, readStopReason } from "../budget/limits.ts";
import { type Meter, SPENT } from "../budget/meter.ts";
import { LEFT_OFF, changedState, contextState, mergedUpdate, sharedState } from "./channels.ts";
import { contextOf, meterOf, subagentConfig, taskStep } from "./step-of-task.ts";
import { failureFacts } from "../models/failure.ts";
import { tellChild, tellReport } from "../step/child-events.ts";
import { describeConflict, mergeFiles } from "../step/merge-files.ts";

/** The line about files in the report of a foreign subagent that shows no state before its end. */
export const FILES_NOT_KNOWN =
  "The files it had changed are unknown: it does not report its state while it works.";

/** A runnable that reports its state while it works, with a graph that reads it from checkpoints. */
interface StatefulRunnable {
  stream(input: Record<string, unknown>, config: RunnableConfig): Promise<AsyncIterable<unknown>>;
}

interface Graph extends StatefulRunnable {
  withConfig(config: RunnableConfig): Graph;
  getState(config: RunnableConfig): Promise<{ values: unknown }>;
}

/**
 * The runnable itself, if it is a graph of LangGraph or an agent of LangChain, which has one inside. Undefined if a
 * program put an `invoke` of its own in front of the class's: that one is to be called.
 */
export function statefulRunnable(runnable: SubagentRunnable): StatefulRunnable | undefined {
  const owns = (at: unknown, ...names: string[]) => names.some((name) => Object.hasOwn(Object(at), name));
  const isOwn = (at: unknown) => owns(at, "invoke") && !owns(at, "stream", "_streamIterator");
  const isReplaced = isOwn(runnable) || isOwn(Object.getPrototypeOf(runnable));
  return graphIn(runnable) && !isReplaced ? (runnable as SubagentRunnable & StatefulRunnable) : undefined;
}

/** The state that a foreign subagent had reached; `undefined`: no checkpoint of ours has it. */
export async function stateReached(
  runnable: SubagentRunnable,
  checkpointer: BaseCheckpointSaver,
  address: Readonly<{ thread_id: unknown; checkpoint_ns: string }>,
): Promise<Partial<AgentState> | undefined> {
  const graph = graphIn(runnable);
  if (!graph || !(await checkpointer.getTuple({ configurable: address }))) return undefined;
  // A copy, because a graph reads parts of its state by a checkpointer of its own.
  const kept = Object.assign(graph.withConfig({}), { checkpointer });
  const configurable = { ...address, [CHECKPOINTER_KEY]: checkpointer };
  const { values } = await kept.getState({ configurable });
  return foreignState(values);
}

/** The result of a foreign subagent as a state. A graph on a server returns messages as plain objects. */
function foreignState(output: unknown): Partial<AgentState> {
  if (typeof output === "string") return { messages: [new AIMessage(output)] };
  if (!isRecord(output)) return {};
  if (BaseMessage.isInstance(output) || isMessageFields(output)) return { messages: [toMessage(output)] };
  const { messages, structuredResponse, ...rest } = output;
  const isMessage = (value: unknown): boolean =>
    BaseMessage.isInstance(value) || Array.isArray(value) || (isRecord(value) && isMessageFields(value));
  return {
    ...rest,
    // A server reports empty channels as null.
    ...(structuredResponse === undefined || structuredResponse === null ? {} : { structuredResponse }),
    ...(Array.isArray(messages) ? { messages: messages.filter(isMessage).map(toMessage) } : {}),
  };
}

const isMessageFields = (value: Record<string, unknown>): boolean =>
  ("role" in value || "type" in value) && ("content" in value || "kwargs" in value);

/** Names of types as LangChain's classes have them, such as `AIMessageChunk`, mean the same as `ai`. */
function toMessage(given: unknown): BaseMessage {
  if (BaseMessage.isInstance(given)) return given;
  const fields = recordOf(given);
  const { type, role, content } = fields;
  const kind = typeof type === "string" ? type.replace(/Message(Chunk)?$/, "").toLowerCase() : undefined;
  const like = Array.isArray(given) ? given : { ...fields, ...defined({ type: kind }) };
  const text = typeof content === "string" ? content : "";
  try {
    return coerceMessageLikeToMessage(like as BaseMessageLike); // anything else throws
  } catch {
    return new ChatMessage(text, typeof role === "string" ? role : "other");
  }
}

const graphIn = (runnable: unknown): Graph | undefined =>
  [runnable, memberOf(runnable, "graph")].find(isGraph);

/** LangGraph marks its graphs: several versions of its package may be installed. */
const isGraph = (value: unknown): value is Graph => memberOf(value, "lg_is_pregel") === true;

/** Starts subagents, each on its own copy of the state, and returns one report each. */
export class SubagentRunner implements Subagents {
  readonly subagents: readonly BuiltSubagent[];
  readonly #slots: Semaphore;
  readonly #refusal: string | undefined;

  /** `refusal`: what every call is answered with instead, where delegation ends. */
  constructor(subagents: readonly BuiltSubagent[], parallel: number, refusal?: string) {
    this.#refusal = refusal;
    this.subagents = subagents;
    this.#slots = new Semaphore(parallel);
  }

  find(name: string): BuiltSubagent | undefined {
    return this.subagents.find((subagent) => subagent.name === name);
  }

  tellQueued(
    { tool_calls: calls = [] }: AIMessage,
    { limits, tools }: AgentDefinition,
    config: RunnableConfig,
  ): void {
    if (this.#refusal !== undefined) return;
    for (const { id = "", name: tool, args } of calls.slice(limits.parallelTools ?? DEFAULT_PARALLEL)) {
      const { subagent_type: name, description } = args;
      if (tools.get(tool)?.kind !== "delegate") continue;
      if (typeof name !== "string" || typeof description !== "string") continue;
      if (this.find(name)) tellChild("subagent_queued", id, name, description, taskStep(config));
    }
  }

  async spawn(task: { subagentType: string; description: string }, scope: SpawnScope): Promise<ToolResult> {
    if (this.#refusal !== undefined) return toolError(this.#refusal);
    const subagent = this.find(task.subagentType);
    if (!subagent) {
      const names = namesText(this.subagents.map(({ name }) => name));
      return toolError(`invoked agent of type ${task.subagentType}, the only allowed types are ${names}`);
    }
    try {
      void subagent.runnable; // which may be built on this first use, and have mistakes in its parameters
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return toolError(`subagent '${subagent.name}' cannot be started: ${error.message}`);
    }
    const { description } = task;
    const { callId, config } = scope;
    if (this.#slots.isFull)
      tellChild("subagent_queued", callId, subagent.name, description, taskStep(config));
    return this.#slots.run(async () => {
      const segment = tellChild("subagent_started", callId, subagent.name, description, taskStep(config));
      const started = scope.files.atStart();
      const nested = subagentConfig(config, segment, started);
      const result = await this.#invoke(subagent, description, scope, started, nested);
      const text = typeof result.content === "string" ? result.content : "";
      tellReport(segment, { text, status: result.status }, taskStep(config));
      return result;
    }, config.signal);
  }

  async #invoke(
    subagent: BuiltSubagent,
    description: string,
    scope: SpawnScope,
    started: ThreadFiles,
    config: RunnableConfig,
  ): Promise<ToolResult> {
    const { state } = scope;
    const task = JSON.stringify([subagent.name, description]);
    const { thread_id, [CHECKPOINTER_KEY]: kept } = scope.config.configurable ?? {};
    const checkpoint_ns = subagent.graph && leftOffIn(state)[task];
    // The state that it had reached when it lost its model in the same task.
    const left = checkpoint_ns // where it is known, so is the checkpointer
      ? await stateReached(subagent.runnable, kept as BaseCheckpointSaver, { thread_id, checkpoint_ns })
      : undefined;
    const input = {
      ...sharedState(state),
      ...(subagent.isFork ? contextState(state) : {}),
      ...(left && { ...contextState(left), todos: left.todos }),
      messages: [
        ...(left?.messages ?? (subagent.isFork ? beforeReply(state.messages, scope.callId) : [])),
        taskMessage(description, { startNote: subagent.graph && contextOf(config).startNote }),
      ],
      ...(subagent.graph ? {} : { files: Object.fromEntries(started.entries()) }),
    };
    const account = { task, started, account: meterOf(config, {}) };
    let reached: unknown = {};
    try {
      if (subagent.graph) await subagent.graph.workInside(config, input, (state) => (reached = state));
      else for await (const state of statesOf(subagent.runnable, input, config)) reached = state;
      return report(reached, subagent, scope, account);
    } catch (error) {
      // A subagent whose steps could not be stored has not failed: it continues from its last checkpoint.
      if (isGraphBubbleUp(error) || isTransient(error) || (config.signal?.aborted ?? false)) throw error;
      const failure = graphFailure(error);
      const saidLast = failure instanceof NoStructuredResponse ? failure.said : "";
      // It can continue in the namespace of its checkpoints, if anything stores them.
      const namespace: unknown = scope.config.configurable?.["checkpoint_ns"];
      const isKept = subagent.graph && kept !== undefined && typeof namespace === "string";
      const place = isKept && failureFacts(error).retryable ? namespace : undefined;
      return report(reached, subagent, scope, account, { failure: errorMessage(failure), saidLast, place });
    }
  }
}

async function* statesOf(
  runnable: SubagentRunnable,
  input: Record<string, unknown>,
  config: RunnableConfig,
): AsyncGenerator {
  const stateful = statefulRunnable(runnable);
  // The configuration of a graph on a server is sent there, without our keys, which hold this thread's files.
  const shared = Object.entries(config.configurable ?? {}).filter(([key]) => !key.startsWith("__"));
  const isRemote = isGraph(runnable) && "graphId" in runnable;
  const own = isRemote ? { ...config, configurable: Object.fromEntries(shared) } : config;
  if (!stateful) return yield await runnable.invoke(input, own);
  yield* await stateful.stream(input, { ...own, streamMode: "values" } as RunnableConfig); // LangGraph's option
}

const leftOffIn = (state: AgentState): TextsByName => (state[LEFT_OFF] as TextsByName | undefined) ?? {}; // our channel

/**
 * @param task equal for the same task of the same subagent.
 * @param failure why it ended without an answer; `output` is then the state it had reached.
 * @param saidLast its last words, if the state does not have them.
 * @param place checkpoint from which it can continue, if it failed because it lost its model.
 */
function report(
  output: unknown,
  subagent: BuiltSubagent,
  scope: SpawnScope,
  { task, started, account }: { task: string; started: ThreadFiles; account: Meter },
  failed: Partial<Record<"failure" | "saidLast" | "place", string | undefined>> = {},
): ToolResult {
  const { failure, saidLast, place = "" } = failed;
  const state = subagent.graph ? (output as Partial<AgentState>) : foreignState(output); // of ours it is that
  const isChanged = ([path, data]: [string, unknown]) => subagent.graph || started.get(path) !== data;
  const changed = Object.fromEntries(Object.entries(state.files ?? {}).filter(isChanged));
  const merged = mergeFiles(changed, started, scope.files, scope.callId);
  scope.files.apply(merged.update);
  const notes = merged.conflicts.map(describeConflict);
  const { messages } = currentRun(state.messages ?? []);
  // The structured answer as JSON, else the last text of the assistant, else the text of the last message.
  const said =
    state.structuredResponse === undefined
      ? directAnswer(messages) || lastAnswer(messages) || (messages.at(-1)?.text ?? "")
      : JSON.stringify(state.structuredResponse);
  const answer = said || (subagent.graph ? "Task completed" : "");
  const noAnswer =
    "it ended without an answer. A runnable must return a text, a message, or a state with `messages`.";
  const why = failure ?? (answer === "" ? noAnswer : undefined);
  const problem = failureReport(subagent, state.messages ?? [], merged.update, why, saidLast);
  if (place !== "")
    notes.push("Start it again with the same description, and it continues from where it was.");
  const wasLeft = leftOffIn(scope.state)[task] ?? "";
  return {
    content: [problem ?? answer, ...notes].join("\n\n"),
    ...(problem === undefined ? {} : { status: "error" }),
    update: {
      ...spentUpdate(state, scope, account),
      ...changedState(state, scope.state, scope.folding),
      ...mergedUpdate(merged),
      ...(place === wasLeft ? {} : { [LEFT_OFF]: { [task]: place } }),
    },
  };
}

/** The subagent's use, for the delegating agent's state, if a limit needs it. */
export function spentUpdate(
  { messages = [], ...state }: Partial<AgentState>,
  scope: Pick<SpawnScope, "config" | "state">,
  account: Meter,
): Record<string, unknown> {
  if (!meterOf(scope.config, {}).countsSubagents) return {};
  // A subagent that ended in an earlier process, or is not ours, was not counted while it worked.
  if (account.spent.tokens === 0) account.load({ ...state, messages });
  return { [SPENT]: { run: currentRun(scope.state.messages).id, ...account.spent } };
}

/** The report of a subagent that threw or reached a limit, with its last words; undefined if it did not fail. */
function failureReport(
  { name, runnable }: BuiltSubagent,
  messages: readonly BaseMessage[],
  files: FilesUpdate,
  failure: string | undefined,
  saidLast = "",
): string | undefined {
  const stopReason = readStopReason(messages.at(-1));
  // An answer that is cut has a note about it, and is an answer.
  const hasAnswered = stopReason === undefined || stopReason === "max_output_tokens";
  if (failure === undefined && hasAnswered) return undefined;
  const said = failure === undefined ? "" : saidLast || lastAnswer(currentRun(messages).messages);
  return [
    `Error: subagent '${name}' failed: ${failure ?? lastAnswer(messages.slice(-1))}`,
    ...(statefulRunnable(runnable) ? keptFiles(files) : [FILES_NOT_KNOWN]),
    ...(said === "" ? [] : [`What it said before:\n${said}`]),
  ].join("\n\n");
}

/** A line about the files of a subagent that failed; nothing if it changed none. */
export function keptFiles(files: FilesUpdate): string[] {
  const changed = Object.keys(files).sort();
  return changed.length > 0 ? [`Files it had changed are kept: ${changed.join(", ")}`] : [];
}
