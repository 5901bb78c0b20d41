/** Layers around the agent's loop, and the requests that pass through them. */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage, BaseMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BaseStore, Command } from "@langchain/langgraph";
import type { MaybePromise } from "../../backends/backend.ts";
import type { AgentTool, CallResult } from "./call.ts";
import type { DecisionType } from "./question.ts";
import type { Step } from "./step.ts";
import type { AgentState, StateUpdate } from "./state.ts";

/** The run as hooks and wrappers see it. */
export interface AgentRuntime {
  /** The step of the agent: its files, its budget, and those who watch it. */
  readonly step: Step;
  readonly context: unknown;
  readonly store?: BaseStore;
  readonly signal?: AbortSignal;
  readonly threadId?: string;
  /** The id of a run of the server; a graph invoked by itself has none. */
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
   * Ends the system prompt, after all that is the same over threads and runs: what comes before keeps its
   * bytes, and its place in the provider's cache, when this changes.
   */
  closingPrompt?: string;
  tools: StructuredToolInterface[];
  toolChoice?: unknown;
  modelSettings?: Record<string, unknown>;
  readonly state: AgentState;
  readonly runtime: AgentRuntime;
  /**
   * Told what the model threw, or `undefined` when it answered, each time it is asked: a layer further in may
   * make an answer of a failure.
   */
  readonly attempted?: (failure: unknown) => void;
  /** Another model takes over when this one fails: the call is given up sooner. */
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
  /** `undefined`: the call may run unasked, as far as this layer is concerned. */
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
  /** The same in LangChain's form. A layer has one of the two. */
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
