/** What a task of the graph knows of its surroundings: its place, files, meter, trace and checkpoints. */
import { setMaxListeners } from "node:events";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { BaseCheckpointSaver, CheckpointTuple, LangGraphRunnableConfig } from "@langchain/langgraph";
import type { MaybePromise, BackendRuntime, FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { runtimeOf } from "../../backends/runtime.ts";
import type { Logger } from "../../core/logger.ts";
import type {
  AgentEvent,
  AgentPath,
  AgentPathSegment,
  AgentRuntime,
  AgentState,
  EffectLog,
  FilesState,
  Inbox,
  TracePlace,
} from "../contracts.ts";
import {
  CHECKPOINTER_KEY,
  INTERRUPT,
  NO_TASK,
  READ_KEY,
  RESUMING_KEY,
  SIGNALS_KEY,
  STREAM_KEY,
} from "./langgraph.ts";
import type { AgentLimits } from "./limits.ts";
import { type Carried, Meter, SPENT } from "./meter.ts";
import { StepFiles } from "./step-files.ts";

/** Our key in `configurable`; two underscores keep it out of checkpoint metadata. */
const CONTEXT_KEY = "__deepagent";

/** What a graph of ours, and those below it, are told of the run that they work for. */
export interface TaskContext {
  /** The id of the run. */
  run?: string | undefined;
  /** Makes calls with outside effects known beyond the end of the process. */
  effects?: EffectLog | undefined;
  /** Messages to the main agent. */
  inbox?: Inbox | undefined;
  /** Whether people have answered what the graph cannot know before it is resumed. */
  hasAnswers?: (() => MaybePromise<boolean>) | undefined;
  tracePlace?: TracePlace | undefined;
  trace?: RunTrace | undefined;
  /** Counts what the agent of this graph uses. */
  meter?: Meter;
  /** Where in the tree of agents the graph works. */
  path?: AgentPath;
  /** Files of the agent that delegated. */
  files?: ThreadFiles;
  /** Told of each task of the graph that begins. */
  progress?: { notice(task: RunnableConfig): void };
}

/** Key of metadata by which traces tell agents apart. */
export const AGENT_NAME = "lc_agent_name";
/** Key of `configurable` by which LangSmith tells an agent from those it delegates to. */
export const AGENT_TYPE = "ls_agent_type";

type Config = LangGraphRunnableConfig;
/** A task's configuration, or what hooks are told about it: both carry the task's own keys. */
export type Scope = RunnableConfig | AgentRuntime;
type ReadChannels = (channels: string[]) => AgentState;

/** The context of the task of `config`; empty outside of graphs that were given one. */
export const contextOf = ({ configurable }: Pick<Scope, "configurable">): TaskContext =>
  (configurable?.[CONTEXT_KEY] as TaskContext | undefined) ?? {}; // set by `withContext` only

/** `configurable` with changes of the context that its graph, and those below it, have. */
export const withContext = (
  configurable: Readonly<Record<string, unknown>> | undefined,
  changes: TaskContext,
): Record<string, unknown> => ({
  ...configurable,
  [CONTEXT_KEY]: { ...contextOf({ configurable: { ...configurable } }), ...changes },
});

/** Where in the tree of agents the task of `config` runs. */
export const agentPath = (config: Scope): AgentPath => contextOf(config).path ?? [];

/** Whether a graph inside the task of `config` is part of what somebody streams. */
export const isStreamed = (config: Scope): boolean => config.configurable?.[STREAM_KEY] !== undefined;

/** The state the running task started from; once the task has ended, the one that its graph has reached. */
export function readState(config: Scope, channels: string[]): AgentState {
  // Set by LangGraph for every task; absent only outside of a graph, which is a bug.
  const read = config.configurable?.[READ_KEY] as ReadChannels;
  return read(channels);
}

/** The files as the running task sees them; `callId`: the call that changes them. */
export function threadFiles(config: Scope, callId?: string): StepFiles {
  const base: FilesState = readState(config, ["files"]).files ?? {};
  return StepFiles.of(base, contextOf(config).files, callId);
}

/**
 * Makes known what finished calls of this step changed before the process ended or the run paused: the
 * state has it only when the step is over. To be called by each call of a step before it looks at files.
 */
export async function restoreStepFiles(config: RunnableConfig): Promise<void> {
  const { files: base } = readState(config, ["files"]);
  if (!isResuming(config) || StepFiles.knows(base)) return;
  const writes = await stepWrites(config);
  if (StepFiles.knows(base)) return; // another call of the step was faster
  for (const [task, channel, update] of writes) {
    if (channel !== "files" || task === NO_TASK) continue;
    threadFiles(config, callOf(writes, task)).restore(update as FilesUpdate); // our channel's own updates
  }
}

type Writes = NonNullable<CheckpointTuple["pendingWrites"]>;

/** Whether the graph of this task goes on from a checkpoint. */
export const isResuming = (config: RunnableConfig): boolean => config.configurable?.[RESUMING_KEY] === true;

/**
 * The meter of the calls of a step, knowing all that the run used before. After a pause it is calls that come
 * first, and what those of the same step used that have finished is not in the state yet.
 */
export async function loadedMeter(
  config: RunnableConfig,
  state: AgentState,
  limits: AgentLimits,
): Promise<Meter> {
  const meter = meterOf(config, limits);
  if (meter.isLoaded) return meter;
  const writes = isResuming(config) ? await stepWrites(config) : [];
  const unsaved = writes.flatMap(([, channel, value]) => (channel === SPENT ? [value] : []));
  meter.load(state, unsaved as ReadonlyArray<Partial<Carried>>); // our channel's own updates
  return meter;
}

/** What finished tasks of the running step wrote. */
async function stepWrites({ configurable = {} }: RunnableConfig): Promise<Writes> {
  const checkpointer = configurable[CHECKPOINTER_KEY] as BaseCheckpointSaver | undefined; // LangGraph's key
  if (typeof checkpointer !== "object") return [];
  const task: unknown = configurable["checkpoint_ns"];
  const checkpoint_ns = typeof task === "string" ? task.split("|").slice(0, -1).join("|") : "";
  const at = { thread_id: configurable["thread_id"], checkpoint_ns };
  return (await checkpointer.getTuple({ configurable: at }))?.pendingWrites ?? [];
}

/** What the running task asked last before the process ended or the run paused. */
export async function lastQuestion(config: RunnableConfig): Promise<unknown> {
  if (!isResuming(config)) return undefined;
  const namespace: unknown = config.configurable?.["checkpoint_ns"];
  const task = typeof namespace === "string" ? namespace.slice(namespace.lastIndexOf(":") + 1) : "";
  const asked = (await stepWrites(config)).findLast(
    ([writer, channel]) => writer === task && channel === INTERRUPT,
  );
  return (asked?.[2] as { value?: unknown } | undefined)?.value; // what LangGraph writes there
}

/** The call whose task wrote. */
export function callOf(writes: Writes, task: string): string | undefined {
  for (const [writer, channel, value] of writes) {
    if (writer !== task || channel !== "messages") continue;
    const message: unknown = [value].flat().find((candidate) => ToolMessage.isInstance(candidate));
    if (ToolMessage.isInstance(message)) return message.tool_call_id;
  }
  return undefined;
}

/**
 * The configuration to run a subagent's graph with, inside the task of `config`.
 *
 * The key `checkpoint_id` must be absent, not undefined: with it, the nested graph would run its finished
 * calls again at every resume.
 */
export function subagentConfig(
  config: RunnableConfig,
  segment: AgentPathSegment,
  files: ThreadFiles,
): RunnableConfig {
  const { checkpoint_id: _dropped, ...configurable } = config.configurable ?? {};
  return {
    ...config,
    metadata: { ...config.metadata, [AGENT_NAME]: segment.name },
    configurable: withContext(
      { ...configurable, [AGENT_TYPE]: "subagent" },
      { path: [...agentPath(config), segment], files, meter: meterOf(config, {}).account() },
    ),
  };
}

/**
 * Does `work` for a graph inside the task of `config` with a signal of its own in the place of the one that all
 * graphs of a run share: each step of each graph listens on it, and whoever begins or ends to listen looks
 * through all who do.
 */
export async function withOwnSignal(
  config: RunnableConfig,
  work: (config: RunnableConfig) => Promise<void>,
): Promise<void> {
  const signals = config.configurable?.[SIGNALS_KEY] as { externalAbortSignal?: AbortSignal } | undefined; // LangGraph's shape
  const shared = signals?.externalAbortSignal;
  if (!shared || shared.aborted) return work(config);
  const own = new AbortController();
  const abort = (): void => own.abort(shared.reason);
  expectFanOut(shared);
  expectFanOut(own.signal);
  shared.addEventListener("abort", abort);
  try {
    const ownSignals = { ...signals, externalAbortSignal: own.signal };
    await work({ ...config, configurable: { ...config.configurable, [SIGNALS_KEY]: ownSignals } });
  } finally {
    shared.removeEventListener("abort", abort);
  }
}

/** Counts what the agent of this task uses; of a graph run by itself, for this task only. */
export const meterOf = (config: Scope, limits: AgentLimits): Meter =>
  contextOf(config).meter ?? new Meter(limits);

/** Every call and nested graph listens on its signal while it works: many listeners are fan-out, not a leak. */
export function expectFanOut(signal: AbortSignal): void {
  setMaxListeners(0, signal);
}

/** One model call, as a tracer is told of it. */
export interface ModelTrace {
  answered(reply: AIMessage): void;
  failed(error: unknown): void;
}

/** Told of all that happens while a graph and those below it work. */
export interface RunTrace {
  tell(event: AgentEvent): void;
  modelCall(agent: AgentPath, model: BaseChatModel): ModelTrace;
}

/** Tells an event to whoever traces the run, or streams the graph in mode `custom`. */
export function emit(config: Scope, event: AgentEvent): void {
  contextOf(config).trace?.tell(event);
  (config as Config).writer?.({ deepagent: event }); // LangGraph puts the writer on every task's config
}

/** The event inside a chunk of stream mode `custom`, if it is one of ours. */
export function eventOf(chunk: unknown): AgentEvent | undefined {
  if (typeof chunk !== "object" || chunk === null || !("deepagent" in chunk)) return undefined;
  return chunk.deepagent as AgentEvent; // the key is written by `emit` only
}

/** What hooks and wrappers are told about the run. */
export function agentRuntime(config: Scope): AgentRuntime {
  const { context, store, signal, writer, configurable = {}, metadata = {} } = config as Config;
  const { run: runId } = contextOf(config);
  return {
    context,
    configurable,
    metadata,
    ...(store ? { store } : {}),
    ...(signal ? { signal } : {}),
    ...(writer ? { writer } : {}),
    ...(typeof configurable["thread_id"] === "string" ? { threadId: configurable["thread_id"] } : {}),
    ...(runId === undefined ? {} : { runId }),
  };
}

/** What a backend factory is told about the call. */
export const backendRuntime = (
  config: Scope,
  files: ThreadFiles,
  state: AgentState,
  log?: Logger,
): BackendRuntime => ({ ...runtimeOf(config as Config, files, state), ...(log ? { log } : {}) });
