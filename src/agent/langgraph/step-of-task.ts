/** Everything that a task of the graph needs besides its state: agent path, files, meter, trace, events. */
import { setMaxListeners } from "node:events";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import type { BackendRuntime, ThreadFiles } from "../../backends/backend.ts";
import { resolveBackend, taskRuntime } from "../../backends/runtime.ts";
import type { Logger } from "../../core/logger.ts";
import { memberOf, defined } from "../../core/unknown.ts";
import type { AgentPath, AgentPathSegment, AgentState, FilesState } from "../contracts/state.ts";
import type { AgentRuntime, Step, RunTrace, TracePlace } from "../contracts/middleware.ts";
import type { ReadChild } from "../contracts/children.ts";
import type { WorkOptions } from "../contracts/agent.ts";
import type { AgentEvent, StepEvent } from "../contracts/events.ts";
import { READ_KEY, RESUMING_KEY, STEP_KEY } from "./internals.ts";
import type { AgentLimits } from "../contracts/limits.ts";
import { Meter } from "../budget/meter.ts";
import { StepFiles } from "../step/files.ts";

/** Our key in `configurable`; two underscores keep it out of checkpoint metadata. */
const CONTEXT_KEY = "__deepagent";

/** The run that a graph of ours, and those below it, work for. */
export interface TaskContext extends Omit<Partial<WorkOptions>, "runId" | "signal" | "agent" | "trace"> {
  run?: string | undefined;
  /** Length of the agent path at which the run works. Default 0. */
  top?: number;
  /** Reads the state of a background subagent that has ended. */
  readChild?: ReadChild;
  tracePlace?: TracePlace | undefined;
  trace?: RunTrace | undefined;
  /** Counts the use of the graph's own agent. */
  meter?: Meter;
  /** Place of the graph in the tree of agents. */
  path?: AgentPath;
  files?: ThreadFiles;
  /** The stream mode `custom` carries events too. */
  hasEvents?: true;
  /** Notices each task of the graph that begins, and interrupts. */
  progress?: { notice(task: RunnableConfig): void; isInterrupted: boolean };
}

/** Key of metadata by which traces distinguish agents. */
export const AGENT_NAME = "lc_agent_name";
/** Key of `configurable` by which LangSmith distinguishes an agent from those it delegates to. */
export const AGENT_TYPE = "ls_agent_type";

/** A task's configuration, or the runtime of its hooks: both carry the task's own keys. */
export type Scope = RunnableConfig | AgentRuntime;

/** The task context in `config`; empty outside of graphs that have one. */
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

export const agentPath = (config: Scope): AgentPath => contextOf(config).path ?? [];

/** LangGraph's count of steps over the whole thread. */
export function stepOf(config: RunnableConfig): number {
  const step: unknown = config.metadata?.[STEP_KEY];
  return typeof step === "number" ? step : 0;
}

/** The state the running task started from; once the task has ended, the one that its graph has reached. */
export function readState(config: Scope, channels: string[]): AgentState {
  // Set by LangGraph for every task; absent only outside of a graph, which is a bug.
  const read = config.configurable?.[READ_KEY] as (channels: string[]) => AgentState;
  return read(channels);
}

/** The files as the running task sees them; `callId`: the call that changes them. */
export function threadFiles(config: Scope, callId?: string): StepFiles {
  const base: FilesState = readState(config, ["files"]).files ?? {};
  return new StepFiles(base, contextOf(config).files, callId);
}

export const isResuming = (config: RunnableConfig): boolean => config.configurable?.[RESUMING_KEY] === true;

/**
 * The configuration of a subagent's graph. The key `checkpoint_id` must be absent, not undefined: with it, the nested
 * graph would run its finished calls again at every resume.
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
      {
        path: [...agentPath(config), segment],
        files,
        meter: meterOf(config, {}).account(),
        children: undefined,
        say: undefined,
      },
    ),
  };
}

/** The agent's meter. A graph that runs by itself gets one for this task only. */
export const meterOf = (config: Scope, limits: AgentLimits): Meter =>
  contextOf(config).meter ?? new Meter(limits);

/** Keeps Node from warning of a leak: every call and nested graph listens on its signal while it works. */
export const expectFanOut = (signal: AbortSignal): void => setMaxListeners(0, signal);

/** The options of `stream` with events of the agent and its subagents in mode `custom`, where `eventOf` finds them. */
export const withEvents = <Options extends object>(
  options: Options & Pick<RunnableConfig, "configurable">,
): Options => ({ ...options, configurable: withContext(options.configurable, { hasEvents: true }) });

/** Sends an event to the tracer of the run, to its journal, and to those who asked for events. */
function emit(config: Scope, event: StepEvent): void {
  const { trace, events, hasEvents } = contextOf(config);
  trace?.tell(event);
  events?.tell(event);
  // LangGraph puts the writer on every task's config
  if (hasEvents) (config as LangGraphRunnableConfig).writer?.({ deepagent: event });
}

/** The event inside a chunk of stream mode `custom`, if it is one of ours. */
export const eventOf = (chunk: unknown): AgentEvent | undefined =>
  memberOf(chunk, "deepagent") as AgentEvent | undefined; // the key is written by `emit` only

export function taskStep(config: Scope): Step {
  const { path: agent = [], trace } = contextOf(config);
  return {
    agent,
    get budget() {
      return meterOf(config, {});
    },
    get files() {
      return threadFiles(config);
    },
    backend: (source, state, log) =>
      resolveBackend(source, backendRuntime(config, threadFiles(config), state, log)),
    tell: (event, child) => emit(config, { ...event, agent: child ? [...agent, child] : agent }),
    traceModel: (model) => trace?.modelCall(agent, model),
  };
}

export function agentRuntime(config: Scope): AgentRuntime {
  const {
    context,
    store,
    signal,
    writer,
    configurable = {},
    metadata = {},
  } = config as LangGraphRunnableConfig;
  const { run: runId } = contextOf(config);
  return {
    step: taskStep(config),
    context,
    configurable,
    metadata,
    ...(typeof configurable["thread_id"] === "string" ? { threadId: configurable["thread_id"] } : {}),
    ...defined({ store, signal, writer, runId }),
  };
}

export const backendRuntime = (
  config: Scope,
  files: ThreadFiles,
  state: AgentState,
  log?: Logger,
): BackendRuntime => ({
  ...taskRuntime(config as LangGraphRunnableConfig, files, state),
  ...defined({ log }),
});
