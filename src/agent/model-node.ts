import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, isGraphBubbleUp, Send } from "@langchain/langgraph";
import { DeepAgentError } from "../core/errors.ts";
import { oneLine } from "../core/text.ts";
import type { AgentParts } from "./agent-parts.ts";
import type { TokenUsage } from "./events.ts";
import {
  composeModelCall,
  mergeUpdates,
  type ModelHandler,
  type ModelRequest,
  type StateUpdate,
} from "./middleware/middleware.ts";
import { modelFailure } from "./models/failure.ts";
import { withoutRequest } from "./models/reply.ts";
import type { AgentState } from "./state.ts";
import { agentPath, agentRuntime, emit } from "./step.ts";

/** Nodes to go to after a reply: with tool calls one task each, without them the end. */
export interface AfterReply {
  /** A node that sees the reply first, when the stack has such hooks. */
  hooks?: string;
  tools: string;
  end: string;
}

/** Calls the model once and decides where to go. */
export function createModelNode(
  parts: AgentParts,
  after: AfterReply,
): (state: AgentState, config: RunnableConfig) => Promise<Command> {
  const binder = new ToolBinder();
  return async (state, config) => {
    // A model that answers at once would otherwise never let the event loop turn.
    await nextTurn();
    const stop = limitReached(parts, state.messages);
    if (stop) return new Command({ update: { messages: [stop] }, goto: after.end });
    const call = composeModelCall(parts.middleware, (request) => callModel(request, binder, config));
    const updates: StateUpdate[] = [];
    const answer = await answered(async () => {
      const request = firstRequest(parts, await parts.model(), state, config);
      return call({ ...request, updateState: (update) => void updates.push(update) });
    }, config.signal);
    const reply = withoutRequest(withSafeIds(answer, state.messages));
    emitModelCalled(reply, config);
    return new Command({
      update: { ...mergeUpdates(updates), messages: [reply] },
      goto: after.hooks ?? nextTasks(reply, after),
    });
  };
}

/**
 * Turns what a provider throws into a failure of the run, after all wrappers had their chance at it. Only
 * the signal tells a cancelled run: a provider's own timeout goes by the same name.
 */
async function answered(call: () => Promise<AIMessage>, signal?: AbortSignal): Promise<AIMessage> {
  try {
    return await call();
  } catch (error) {
    if (isGraphBubbleUp(error) || signal?.aborted || error instanceof DeepAgentError) throw error;
    throw modelFailure(error);
  }
}

/** One task per tool call of a reply, or the end. */
export function nextTasks(reply: BaseMessage | undefined, after: AfterReply): Send[] | string {
  const calls = AIMessage.isInstance(reply) ? (reply.tool_calls ?? []) : [];
  return calls.length === 0 ? after.end : calls.map(({ id }) => new Send(after.tools, { callId: id }));
}

function firstRequest(
  parts: AgentParts,
  model: BaseChatModel,
  state: AgentState,
  config: RunnableConfig,
): Omit<ModelRequest, "updateState"> {
  return {
    model,
    messages: state.messages,
    systemMessage: parts.systemMessage,
    systemPrompt: parts.systemMessage.text,
    tools: [...parts.tools.values()].map(({ offered }) => offered),
    state,
    runtime: agentRuntime(config),
  };
}

async function callModel(
  request: ModelRequest,
  binder: ToolBinder,
  config: RunnableConfig,
): ReturnType<ModelHandler> {
  const { systemMessage, messages } = request;
  const input = systemMessage.text === "" ? messages : [systemMessage, ...messages];
  const bound = binder.bind(request);
  const reply: unknown = await bound.invoke(input, { ...config, ...request.modelSettings });
  if (AIMessage.isInstance(reply)) return reply;
  throw new Error("The model answered with something that is not an assistant message.");
}

/** Binds tools to a model once per set of tools: turning schemas into a provider's form is not free. */
class ToolBinder {
  #last:
    | { model: BaseChatModel; key: string; bound: ReturnType<NonNullable<BaseChatModel["bindTools"]>> }
    | undefined;

  bind(request: ModelRequest): Pick<BaseChatModel, "invoke"> {
    const { model, tools, toolChoice } = request;
    if (tools.length === 0) return model;
    if (!model.bindTools) {
      throw new Error("This model cannot call tools; choose one that can.");
    }
    const key = JSON.stringify([tools.map(({ name }) => name), toolChoice ?? null]);
    if (this.#last?.model !== model || this.#last.key !== key) {
      // The choice is the provider's own type; middleware that sets it knows its model.
      const options = toolChoice === undefined ? {} : { tool_choice: toolChoice as string };
      this.#last = { model, key, bound: model.bindTools(tools, options) };
    }
    return this.#last.bound;
  }
}

/**
 * A reply whose message id is new in the thread and whose call ids are present and unique, as the history
 * needs them. Ids that are fine stay: some providers refer to them later.
 */
function withSafeIds(reply: AIMessage, messages: readonly BaseMessage[]): AIMessage {
  const taken = new Set(messages.map(({ id }) => id));
  // An id that is only assigned is not stored with the message.
  reply._updateId(!reply.id || taken.has(reply.id) ? randomUUID() : reply.id);
  const used = new Set<string>();
  for (const message of messages) {
    if (AIMessage.isInstance(message)) for (const call of message.tool_calls ?? []) used.add(call.id ?? "");
  }
  for (const call of reply.tool_calls ?? []) {
    if (!call.id || used.has(call.id)) call.id = `call_${randomUUID()}`;
    used.add(call.id);
  }
  return reply;
}

/** The message that ends the run when its model calls are used up. */
function limitReached(parts: AgentParts, messages: readonly BaseMessage[]): AIMessage | undefined {
  const { maxIterations } = parts.limits;
  if (maxIterations === undefined) return undefined;
  let calls = 0;
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (HumanMessage.isInstance(message)) break;
    if (AIMessage.isInstance(message)) calls += 1;
  }
  if (calls < maxIterations) return undefined;
  return new AIMessage({
    id: randomUUID(),
    content: `Stopped: the limit of ${maxIterations} model calls for one run is reached. Send a follow-up message to go on.`,
    response_metadata: { stop_reason: STOP_MAX_ITERATIONS },
  });
}

/** `stop_reason` of the message that ends a run at its limit of model calls. */
export const STOP_MAX_ITERATIONS = "max_iterations";

function emitModelCalled(reply: AIMessage, config: RunnableConfig): void {
  const usage = reply.usage_metadata;
  const tokens: TokenUsage = {
    inputTokens: usage?.input_tokens ?? 0,
    outputTokens: usage?.output_tokens ?? 0,
    cachedInputTokens: usage?.input_token_details?.cache_read ?? 0,
  };
  const reported: unknown = reply.response_metadata["model_name"] ?? reply.response_metadata["model"];
  emit(config, {
    kind: "model_called",
    agent: agentPath(config),
    model: typeof reported === "string" ? reported : "",
    usage: tokens,
    text: oneLine(reply.text, 300),
  });
}
