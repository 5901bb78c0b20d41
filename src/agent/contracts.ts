/**
 * The types that the rooms of the agent share: its state, tools, middleware, and the log of effects.
 * This file imports no implementation.
 */
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage, BaseMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BaseStore, Command } from "@langchain/langgraph";
import type { z } from "zod";
import type { FileData, MaybePromise } from "../backends/backend.ts";
import type {
  BoundPreview,
  CallPreview,
  FileDiff,
  Todo,
  ToolContext,
  ToolKind,
  ToolSpec,
} from "../tools/tool.ts";

/** The run as hooks and wrappers see it. */
export interface AgentRuntime {
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
}

export type ToolHandler = (request: ToolCallRequest) => Promise<ToolMessage | Command>;

export type StateUpdate = Partial<AgentState> & { jumpTo?: JumpTarget };

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

/** A plain function with the facts a model needs to call it. */
export interface ToolFunction {
  name: string;
  description: string;
  schema: z.ZodObject;
  /** Default `execute`: unknown effects. */
  kind?: ToolKind;
  invoke(args: Record<string, unknown>, config: RunnableConfig): unknown;
}

/** Tools that `tools` parameters accept. */
export type ToolInput = StructuredToolInterface | ToolSpec | ToolFunction | AgentTool;

export type ValidatedArgs = { ok: true; args: Record<string, unknown> } | { ok: false; message: string };

/** Everything one call may use: the tool layer's context and the graph's configuration. */
export interface CallScope {
  readonly context: ToolContext;
  readonly config: RunnableConfig;
  /** The state the call's step began with. */
  readonly state: AgentState;
}

/** A tool as the graph runs it, whatever it was made from. */
export interface AgentTool {
  readonly name: string;
  readonly kind: ToolKind;
  /** The tool as the model and LangChain's middleware see it. */
  readonly offered: StructuredToolInterface;
  validate(args: unknown): ValidatedArgs;
  /** Runs the call with the given arguments; throws only for bugs of the tool. */
  run(call: ToolCall, scope: CallScope): Promise<ToolMessage | Command>;
  preview(args: Record<string, unknown>, context: ToolContext): Promise<BoundPreview>;
  pathOf(args: Record<string, unknown>): string | undefined;
  /** The change that a successful call made; `undefined` if arguments and answer do not show it. */
  changeOf?(args: Record<string, unknown>, artifact: unknown): FileDiff | undefined;
}

/**
 * Files of a thread by absolute virtual path. A subagent's state holds only what it changed, deletions
 * (`null`) included, over the files of the agent that delegated to it.
 */
export type FilesState = Readonly<Record<string, FileData | null>>;

/** The place to which a hook may send the agent instead of the usual next step. */
export type JumpTarget = "model" | "tools" | "end";

/** The state of an agent thread; middleware adds channels of its own. */
export interface AgentState {
  messages: BaseMessage[];
  files: FilesState;
  todos: Todo[];
  structuredResponse?: unknown;
  [channel: string]: unknown;
}

/** A message of a person to an agent that is at work. */
export interface InboxMessage {
  /** Becomes the id of the message in the thread, by which the agent knows that it has it. */
  id: string;
  text: string;
}

/** The messages to an agent since it began. */
export interface Inbox {
  /** All messages so far, oldest first, those it has included. */
  messages(): MaybePromise<readonly InboxMessage[]>;
}

/** The result of a tool call: a message for the model, or a message together with a state change. */
export type Outcome = ToolMessage | Command;

/** Identifies one tool call of a run by facts in its checkpoint: the same after a crash, never used twice. */
export interface CallIdentity {
  agent: AgentPath;
  /** Id of the assistant message that made the call. */
  messageId: string;
  callId: string;
}

/** The result of a call in the encoding of checkpoints. */
export interface StoredOutcome {
  type: string;
  data: Uint8Array;
}

/**
 * Remembers calls with outside effects beyond the end of the process, so that none is made twice. When
 * a method has returned, its fact is stored.
 */
export interface EffectLog {
  /** The record of a call; `undefined` if it never began. Without `outcome`, its end is unknown. */
  find(call: CallIdentity): MaybePromise<{ outcome?: StoredOutcome } | undefined>;
  /** The call is about to run. @throws when it must not, because it could not be stored or the work is lost. */
  begin(call: CallIdentity, tool: string): MaybePromise<void>;
  finish(call: CallIdentity, outcome: StoredOutcome): MaybePromise<void>;
  /** The call stopped to ask a person, without an effect, and will start over. */
  withdraw(call: CallIdentity): MaybePromise<void>;
}

/** Why a run ended early, with what it had. The last one: its answer is as long as the model may answer. */
export type StopReason =
  | "max_iterations"
  | "max_tool_calls"
  | "max_tokens"
  | "max_cost"
  | "max_wall_time"
  | "max_steps"
  | "repeated_calls"
  | "max_output_tokens";

/** Limits of a run. */
export type LimitReason = Exclude<StopReason, "max_output_tokens">;

/** A stable reason of a failed run, as far as models cause it. */
export type ModelFailureReason =
  | "model_auth"
  | "model_not_found"
  | "model_rate_limited"
  | "model_unavailable"
  | "model_stream_broken"
  | "model_error"
  | "context_overflow";

/** One subagent on the way from the main agent: the `task` call that started it, and its type. */
export interface AgentPathSegment {
  /** Tool call id of the `task` call. */
  callId: string;
  /** Subagent type, such as `general-purpose`. */
  name: string;
  /** Its task in a few words: the first sentence, at most 60 characters. */
  task?: string;
}

/** The place in the tree of agents; `[]` is the main agent. */
export type AgentPath = readonly AgentPathSegment[];

export type DecisionType = "approve" | "edit" | "reject";

/** Later calls that a person can approve together with one. */
export interface SameCalls {
  /** Equal for all of them, and for no others. */
  key: string;
  /** Names these calls for a person: `edit_file of /a.md, …`. */
  text: string;
}

/** One gated call that waits for a person. */
export interface ActionRequest {
  name: string;
  args: Record<string, unknown>;
  description: string;
  toolCallId: string;
  preview?: CallPreview;
  /** Absent: no other call counts as the same. */
  same?: SameCalls;
}

export interface ReviewConfig {
  actionName: string;
  allowedDecisions: DecisionType[];
  argsSchema?: Record<string, unknown>;
}

/** Payload of an interrupt. Ours carry one action request; stock middleware may carry several. */
export interface HitlRequest {
  actionRequests: ActionRequest[];
  reviewConfigs: ReviewConfig[];
  /** The agent that made the call. */
  agent?: AgentPath;
  /** The number of the question about this call, from the second one on. */
  question?: number;
  /** Digest of the call as each question about it showed it, this one last. */
  shown?: string[];
}

export type Decision =
  | { type: "approve" }
  | { type: "edit"; editedAction: { name: string; args: Record<string, unknown> } }
  | {
      type: "reject";
      message?: string;
      /**
       * The time to decide has passed, or the decision cannot be carried out. Denies the call even if a person may not
       * reject it.
       */
      expired?: true;
    };

export interface HitlResponse {
  decisions: Decision[];
}

/** Tokens of one or more model calls. */
export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  /** Part of `inputTokens` that came from the provider's prompt cache. */
  cachedInputTokens: number;
}

export interface PendingInterrupt {
  /** The id of this question. A call that changes after its approval is asked about under another id. */
  id: string;
  request: HitlRequest;
}
