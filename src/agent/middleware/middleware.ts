import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, type BaseMessage, SystemMessage, type ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { StructuredToolInterface } from "@langchain/core/tools";
import type { BaseStore, Command } from "@langchain/langgraph";
import type { MaybePromise } from "../../backends/backend.ts";
import type { AgentTool } from "../agent-tool.ts";
import type { DecisionType } from "../events.ts";
import { addSpent, type Carried, SPENT } from "../limits/meter.ts";
import { textOf } from "../message-text.ts";
import type { AgentState, JumpTarget } from "../state.ts";

/** What hooks and wrappers may know of the run they are part of. */
export interface AgentRuntime {
  readonly context: unknown;
  readonly store?: BaseStore;
  readonly signal?: AbortSignal;
  readonly threadId?: string;
  /** Of a run that the server keeps; a graph invoked by itself has none. */
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

/** How a person is asked about one call. */
export interface Gate {
  allowedDecisions: DecisionType[];
  description?: string;
  argsSchema?: Record<string, unknown>;
  /** Nobody is to be asked this time; only who was asked already is waited for. */
  isWaived?: true;
}

/** Whether a call needs a person's approval; asked in the call's own graph task, before anything else. */
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
 * Made with LangChain's `createMiddleware`, which checks what its hooks take. They are no functions here, so
 * that those of a literal are typed by our form.
 */
export interface LangChainMiddleware extends Partial<
  Record<HookName | "wrapModelCall" | "wrapToolCall", object>
> {
  readonly name: string;
  readonly stateSchema?: unknown;
  readonly contextSchema?: unknown;
  readonly tools?: readonly object[] | undefined;
}

/** What callers may pass: ours, or anything made with LangChain's `createMiddleware`. */
export type AgentMiddleware = Middleware | LangChainMiddleware;

/** Nests the `wrapModelCall` of a stack around `call`. */
export function composeModelCall(stack: readonly Middleware[], call: ModelHandler): ModelHandler {
  return stack.reduceRight<ModelHandler>((inner, layer) => {
    const wrap = layer.wrapModelCall?.bind(layer);
    if (!wrap) return inner;
    return (request) => wrap(request, (changed) => inner(withOneSystemPrompt(request, changed)));
  }, call);
}

/** A request as it leaves the stack, with its system prompt in one message. */
export function finishRequest(stack: readonly Middleware[], request: ModelRequest): ModelRequest {
  const { closingPrompt, ...finished } = stack.reduce(
    (changed, layer) => layer.finishRequest?.(changed) ?? changed,
    request,
  );
  return closingPrompt === undefined ? finished : appendSystemPrompt(finished, closingPrompt);
}

/** Nests the `wrapToolCall` of a stack around `call`. */
export function composeToolCall(stack: readonly Middleware[], call: ToolHandler): ToolHandler {
  return stack.reduceRight<ToolHandler>((inner, layer) => {
    const wrap = layer.wrapToolCall?.bind(layer);
    return wrap ? (request) => wrap(request, inner) : inner;
  }, call);
}

/** Adds text to the end of the system prompt, after a blank line. */
export function appendSystemPrompt(request: ModelRequest, text: string): ModelRequest {
  const systemMessage = joinSystem(request.systemMessage, text);
  return { ...request, systemMessage, systemPrompt: textOf(systemMessage) };
}

/** What was last joined to a message: the prompts of an agent are the same on every call. */
const joined = new WeakMap<SystemMessage, { text: string | SystemMessage; result: SystemMessage }>();

/** `message` followed by `text`: after a blank line where both are texts, else as further blocks. */
export function joinSystem(message: SystemMessage, text: string | SystemMessage): SystemMessage {
  const known = joined.get(message);
  if (known?.text === text) return known.result;
  const result = join(message, text);
  joined.set(message, { text, result });
  return result;
}

function join({ content }: SystemMessage, text: string | SystemMessage): SystemMessage {
  const added = typeof text === "string" ? text : text.content;
  if (typeof content === "string" && typeof added === "string") {
    return new SystemMessage(content === "" ? added : `${content}\n\n${added}`);
  }
  return new SystemMessage({ content: [...blocksOf(content), ...blocksOf(added)] });
}

const blocksOf = (content: SystemMessage["content"]) =>
  typeof content !== "string" ? content : content === "" ? [] : [{ type: "text", text: content }];

/** LangChain keeps the prompt twice, as text and as message; whichever a wrapper changed wins. */
function withOneSystemPrompt(before: ModelRequest, after: ModelRequest): ModelRequest {
  if (after.systemMessage !== before.systemMessage) {
    return { ...after, systemPrompt: textOf(after.systemMessage) };
  }
  if (after.systemPrompt !== before.systemPrompt) {
    return { ...after, systemMessage: new SystemMessage(after.systemPrompt) };
  }
  return after;
}

/** Several updates of the state as one: messages in order, files by path, what was spent added up, else the last one counts. */
export function mergeUpdates(updates: readonly StateUpdate[]): StateUpdate {
  const messages = updates.flatMap((update) => update.messages ?? []);
  const files: StateUpdate["files"] = Object.assign({}, ...updates.map((update) => update.files ?? {}));
  const merged: StateUpdate = Object.assign({}, ...updates);
  const spent = updates.flatMap((update) => (update[SPENT] ? [update[SPENT] as Partial<Carried>] : [])); // our channel
  return {
    ...merged,
    ...(spent.length > 1 ? { [SPENT]: addSpent({}, spent) } : {}),
    ...(messages.length > 0 ? { messages } : {}),
    ...(Object.keys(files ?? {}).length > 0 ? { files } : {}),
  };
}
