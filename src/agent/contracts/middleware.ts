/** Tools and their calls, the step that they belong to, and the layers around the agent's loop. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage, BaseMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig, RunnableToolLike } from "@langchain/core/runnables";
import type { DynamicStructuredTool, StructuredToolInterface } from "@langchain/core/tools";
import type { BaseStore, Command } from "@langchain/langgraph";
import type { z } from "zod";
import type { Backend, BackendSource, MaybePromise, ThreadFiles } from "../../backends/backend.ts";
import type { Logger } from "../../core/logger.ts";
import type {
  BoundPreview,
  FileDiff,
  ToolContext,
  ToolKind,
  ToolResult,
  ToolSpec,
} from "../../tools/tool.ts";
import type { AgentEvent } from "./events.ts";
import type { AgentLimits, Spent } from "./limits.ts";
import type { DecisionType } from "../../tools/request.ts";
import type { AgentPath, AgentPathSegment, AgentState, StateUpdate } from "./state.ts";

/** A plain function with the facts a model needs to call it. */
export interface ToolFunction {
  name: string;
  description: string;
  schema: z.ZodObject;
  /** Default `execute`: unknown effects. */
  kind?: ToolKind;
  invoke(args: Record<string, unknown>, config: RunnableConfig): unknown;
}

/** A tool that the model's provider runs, in the provider's own form, such as `{ type: "web_search" }`. */
export interface ProviderTool {
  readonly invoke?: never;
  readonly handle?: never;
  readonly [field: string]: unknown;
}

/** A runnable of LangChain as a tool, by its `asTool`. */
export type RunnableTool = Pick<RunnableToolLike, "lc_namespace" | "name" | "description" | "schema">;

export type ToolInput = StructuredToolInterface | RunnableTool | ToolSpec | ToolFunction | AgentTool;

export type ValidatedArgs = { ok: true; args: Record<string, unknown> } | { ok: false; message: string };

/** Everything one call may use: the tool layer's context and the graph's configuration. */
export interface CallScope {
  readonly context: ToolContext;
  readonly config: RunnableConfig;
  readonly step: Step;
  /** The state the call's step began with. */
  readonly state: AgentState;
  /** Does the work of a call and reports its beginning and end to LangChain's callbacks. */
  readonly observe: (
    call: ToolCall,
    offered: DynamicStructuredTool,
    work: () => Promise<CallResult>,
  ) => Promise<CallResult>;
  /** True if the graph stops with this error to ask a person. Such an error has to be thrown on. */
  readonly isPause: (error: unknown) => boolean;
}

/** The result of a call. It never changes: layers make new ones. */
export interface CallResult extends Readonly<Omit<ToolResult, "whole" | "update">> {
  /**
   * A text too large for `content`: it goes into a file. `start` and `end` stand around the part that is shown. A layer
   * that redacts `content` has to redact this as well.
   */
  readonly whole?: NonNullable<ToolResult["whole"]> & { readonly start?: string };
  readonly update?: StateUpdate;
  /** Further tool messages of a LangChain command. */
  readonly further?: readonly CallResult[];
  /** The message or command of a LangChain tool, for all its other fields. */
  readonly native?: unknown;
}

/** A tool as the graph runs it, whatever it was made from. */
export interface AgentTool {
  readonly name: string;
  readonly kind: ToolKind;
  /** The tool as the model and LangChain's middleware see it. */
  readonly offered: StructuredToolInterface;
  validate(args: unknown): ValidatedArgs;
  /** Runs the call with these arguments; throws only for bugs of the tool. */
  run(call: ToolCall, scope: CallScope): Promise<CallResult>;
  preview(args: Record<string, unknown>, context: ToolContext): Promise<BoundPreview>;
  pathOf(args: Record<string, unknown>): string | undefined;
  /** The change that a successful call made; undefined if arguments and answer do not show it. */
  changeOf?(args: Record<string, unknown>, artifact: unknown): FileDiff | undefined;
}

/** Identifies one tool call of a run by facts in its checkpoint: the same after a crash, never used twice. */
export interface CallIdentity {
  agent: AgentPath;
  messageId: string;
  callId: string;
  /** A call of the program that this call runs, by its number. */
  inner?: number;
}

/** The result of a call in the encoding of checkpoints. */
export interface StoredOutcome {
  type: string;
  data: Uint8Array;
}

/** Remembers calls with outside effects, so that none is made twice. Each method returns once its fact is stored. */
export interface EffectLog {
  /** The record of a call, if it began. Without `outcome`, it ended in an unknown way, or continues by its `handle`. */
  find(call: CallIdentity): MaybePromise<{ outcome?: StoredOutcome; handle?: Uint8Array } | undefined>;
  /** The call is about to run. @throws when it must not, because it could not be stored or the work is lost. */
  begin(call: CallIdentity, tool: string): MaybePromise<void>;
  finish(call: CallIdentity, outcome: StoredOutcome): MaybePromise<void>;
  /** The call continues elsewhere, and can be continued by this. */
  keep(call: CallIdentity, handle: Uint8Array): MaybePromise<void>;
  /** The call stopped to ask a person, without an effect, and will start over. */
  withdraw(call: CallIdentity): MaybePromise<void>;
}

/** An event without the agent that it is about. */
export type OwnEvent<Event> = Event extends { agent: AgentPath } ? Omit<Event, "agent"> : never;

/** The step of an agent, as its layers, models and calls see it. They do not know the graph that it is a task of. */
export interface Step {
  readonly agent: AgentPath;
  readonly budget: Budget;
  /** Files of the thread, with the changes of this step. */
  readonly files: ThreadFiles;
  /** Makes the backend of this step. */
  backend(source: BackendSource, state: AgentState, log?: Logger): Promise<Backend>;
  /** Reports an event of this agent, or of its subagent `child`, to those who watch the run. */
  tell(event: OwnEvent<AgentEvent>, child?: AgentPathSegment): void;
  /** Begins the trace of a model call; returns undefined if nobody traces the run. */
  traceModel(model: BaseChatModel): ModelTrace | undefined;
}

/** Counts the use of an agent, and knows its limits. */
export interface Budget {
  readonly limits: AgentLimits;
  add(spent: Spent): void;
}

/** The run as hooks and wrappers see it. */
export interface AgentRuntime {
  /** The step of the agent: its files, its budget, and those who watch it. */
  readonly step: Step;
  readonly context: unknown;
  readonly store?: BaseStore;
  readonly signal?: AbortSignal;
  readonly threadId?: string;
  /** Id of the server's run; a graph invoked by itself has none. */
  readonly runId?: string;
  readonly writer?: (chunk: unknown) => void;
  readonly configurable: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** One model call on its way through the stack; wrappers pass on changed copies. */
export interface ModelRequest {
  model: BaseChatModel;
  messages: BaseMessage[];
  systemPrompt: string;
  systemMessage: SystemMessage;
  /**
   * Ends the system prompt, after all that is the same over threads and runs: the text before it keeps its bytes, and
   * its place in the provider's cache, when this changes.
   */
  closingPrompt?: string;
  tools: StructuredToolInterface[];
  toolChoice?: unknown;
  modelSettings?: Record<string, unknown>;
  readonly state: AgentState;
  readonly runtime: AgentRuntime;
  /** Receives the error of each try of the model, if it failed: a layer further in may make an answer of a failure. */
  readonly attempted?: (failure: unknown) => void;
  /** Another model takes over when this one fails: the call is abandoned sooner. */
  readonly hasSpare?: true;
  /** Changes the thread's state together with the reply. */
  updateState(update: StateUpdate): void;
}

export type ModelHandler = (request: ModelRequest) => Promise<AIMessage>;

export interface ToolCallRequest {
  toolCall: ToolCall;
  tool: StructuredToolInterface | undefined;
  readonly state: AgentState;
  readonly runtime: AgentRuntime;
  /** A program made the call: its result goes there, and not to the model. */
  readonly isInner?: true;
}

export type ToolHandler = (request: ToolCallRequest) => Promise<ToolMessage | Command>;

export type CallHandler = (request: ToolCallRequest) => Promise<CallResult>;

export type Hook = (state: AgentState, runtime: AgentRuntime) => MaybePromise<StateUpdate | undefined | void>;

/** The question that a person is asked about one call. */
export interface Gate {
  allowedDecisions: DecisionType[];
  description?: string;
  argsSchema?: Record<string, unknown>;
  /** No new question is asked this time; a question that is already open is still waited for. */
  isWaived?: true;
  /** No rule that a person saved allows the call. */
  asksAlways?: true;
}

/** Decides if a call needs a person's approval. Runs in the call's own graph task, before anything else. */
export type ToolGate = (request: ToolCallRequest) => Promise<Gate | undefined>;

/** A channel holds the newest object (after `null`, `initial` again), or the newest text of each name. */
export type LayerChannel = { kind: "latest"; initial: object } | { kind: "texts" };

/**
 * One layer around the agent's loop, in LangChain's shape.
 *
 * `before*` hooks run first to last, `after*` last to first; `wrap*` nest, the first outermost.
 */
export interface Middleware {
  /** Unique in a stack. */
  readonly name: string;
  /** LangGraph state schema, zod object or annotation with the channels it adds. */
  readonly stateSchema?: unknown;
  /** Channels of layers of this project, by name. */
  readonly channels?: Readonly<Record<string, LayerChannel>>;
  readonly tools?: readonly AgentTool[];
  /** Gets a function that adds a tool to the agent from its next turn on; false: it has one of that name. */
  readonly followTools?: (add: (tool: AgentTool) => boolean) => void;
  /** Selects the tools of a request before all wrappers, so that none of them counts or sees the others. */
  readonly selectTools?: (offered: StructuredToolInterface[], state: AgentState) => StructuredToolInterface[];
  /** Returns undefined if the call may run unasked, as far as this layer is concerned. */
  readonly gate?: ToolGate;
  readonly beforeAgent?: Hook;
  readonly beforeModel?: Hook;
  readonly afterModel?: Hook;
  readonly afterAgent?: Hook;
  wrapModelCall?(request: ModelRequest, next: ModelHandler): Promise<AIMessage>;
  /** The last change of a request, when all wrappers of the stack have had it; applied first to last. */
  readonly finishRequest?: (request: ModelRequest) => ModelRequest;
  /** Wraps a call and sees its whole result, also the text that goes into a file. */
  wrapCall?(request: ToolCallRequest, next: CallHandler): Promise<CallResult>;
  /** Wraps a call in LangChain's form. A layer has one of the two. */
  wrapToolCall?(request: ToolCallRequest, next: ToolHandler): Promise<ToolMessage | Command>;
}

export type HookName = "beforeAgent" | "beforeModel" | "afterModel" | "afterAgent";

/**
 * Made with LangChain's `createMiddleware`, which checks the arguments of its hooks. They are not declared as functions
 * here, so that those of a literal get our types.
 */
export interface LangChainMiddleware extends Partial<
  Record<HookName | "wrapModelCall" | "wrapToolCall", object>
> {
  readonly name: string;
  readonly stateSchema?: unknown;
  readonly contextSchema?: unknown;
  readonly tools?: readonly object[] | undefined;
}

/** Middleware that callers may pass: ours, or any made with LangChain's `createMiddleware`. */
export type AgentMiddleware = Middleware | LangChainMiddleware;

export interface ModelTrace {
  answered(reply: AIMessage): void;
  failed(error: unknown): void;
}

/** The tracer of one run, with all graphs below its own. */
export interface RunTrace {
  tell(event: AgentEvent): void;
  modelCall(agent: AgentPath, model: BaseChatModel): ModelTrace;
}

/** The place of a run in a trace, kept beyond the end of a process. */
export interface TracePlace {
  /** The first span of the run, as `traceparent` of the W3C names it. */
  before(): MaybePromise<string | undefined>;
  /** Stores the first span, when there was none before. */
  began(traceparent: string): MaybePromise<void>;
}
