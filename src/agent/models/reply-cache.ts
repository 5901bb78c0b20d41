import { createHash, randomUUID } from "node:crypto";
import { BaseChatModel, type BindToolsInput } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import type { BaseCache } from "@langchain/langgraph-checkpoint";
import { byIdentity } from "../../core/by-identity.ts";
import { errorMessage } from "../../core/errors.ts";
import { canonicalJson } from "../../core/json.ts";
import type { Logger } from "../../core/logger.ts";
import { toolText } from "../conversation/compacted-view.ts";
import { joinStream } from "./call-model.ts";

/** Binds tools to a model, and keeps replies to requests that are made again. */

/** Everything a reply depends on, besides the messages. */
type CachedRequest = ToolBinding & { settings: Record<string, unknown> };

const NAMESPACE = ["deepagent", "replies"];

/**
 * Replies to requests that were made before: of the same model, with the same settings, tools and messages.
 * The calls of a cached reply are made anew each time. If the cache fails, the model is asked.
 */
export class ReplyCache {
  readonly #cache: BaseCache;
  readonly #log: Logger;

  constructor(cache: BaseCache, log: Logger) {
    this.#cache = cache;
    this.#log = log;
  }

  /** The reply to `messages`, from the cache or from `ask`. One from the cache has cost no tokens. */
  async reply(
    request: CachedRequest,
    messages: readonly BaseMessage[],
    ask: () => Promise<AIMessage>,
  ): Promise<AIMessage> {
    const key: [string[], string] = [NAMESPACE, keyOf(request, messages)];
    const known = await this.#trying(() => this.#cache.get([key]));
    const found = known?.[0]?.value;
    if (AIMessage.isInstance(found)) return again(found);
    const reply = await ask();
    await this.#trying(() => this.#cache.set([{ key, value: reply }]));
    return reply;
  }

  async #trying<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#log.warn("cache_failed", { problem: errorMessage(error) });
      return undefined;
    }
  }
}

function keyOf({ model, tools, ...others }: CachedRequest, messages: readonly BaseMessage[]): string {
  const facts = [model.serialize(), tools.map(textOfTool), others, messages.map(factsOf)];
  return createHash("sha256").update(canonicalJson(facts)).digest("hex");
}

/** Providers' own tools are plain objects. */
const textOfTool = byIdentity((tool: ToolBinding["tools"][number]) =>
  isStructuredTool(tool) ? toolText(tool) : JSON.stringify(tool),
);

/** The content of a message for the model, without its id, which differs from thread to thread. */
function factsOf(message: BaseMessage): unknown[] {
  const { type, name, content } = message;
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  const answered = ToolMessage.isInstance(message) ? [message.tool_call_id, message.status] : [];
  return [type, name, content, calls.map(({ id, name, args }) => [id, name, args]), answered];
}

/** A reply as a message of its own, which nothing was paid for. */
function again(reply: AIMessage): AIMessage {
  const { content, tool_calls = [], invalid_tool_calls = [], additional_kwargs, response_metadata } = reply;
  const fields = { content, tool_calls, invalid_tool_calls, additional_kwargs, response_metadata };
  return new AIMessage({ ...fields, id: randomUUID() });
}

type Bound = ReturnType<NonNullable<BaseChatModel["bindTools"]>>;

/** How a model is asked to use its tools. */
export interface ToolBinding {
  model: BaseChatModel;
  tools: readonly BindToolsInput[];
  /** The provider's own form, or `any`. */
  toolChoice?: unknown;
  /** Further options of the provider, always the same for one agent. */
  options?: Record<string, unknown>;
}

/** Binds tools to a model once per set of tools: turning schemas into a provider's form is not free. */
export class ToolBinder {
  #last: { binding: ToolBinding; bound: Bound } | undefined;

  bind(binding: ToolBinding): Pick<BaseChatModel, "invoke"> {
    const { model, tools, toolChoice, options } = binding;
    if (tools.length === 0 && !options) return model;
    if (!model.bindTools) {
      throw new Error("This model cannot call tools; choose one that can.");
    }
    if (!this.#last || !isSame(this.#last.binding, binding)) {
      // The choice is the provider's own type; who sets it knows the model.
      const choice = toolChoice === undefined ? {} : { tool_choice: toolChoice as string };
      const bound = model.bindTools([...tools], { ...choice, ...options });
      // OpenAI's package makes another model, to which nothing done to the first one applies.
      if (isChatModel(bound)) joinStream(bound);
      this.#last = { binding, bound };
    }
    return this.#last.bound;
  }
}

/** Also of another copy of LangChain, which a provider's package may bring with it. */
const isChatModel = (bound: Bound): bound is Bound & BaseChatModel =>
  "_generate" in bound && "_llmType" in bound;

/** Tools are compared as objects: middleware may offer a changed one under the same name. */
function isSame(a: ToolBinding, b: ToolBinding): boolean {
  return (
    a.model === b.model &&
    JSON.stringify(a.toolChoice) === JSON.stringify(b.toolChoice) &&
    (a.options === undefined) === (b.options === undefined) &&
    a.tools.length === b.tools.length &&
    a.tools.every((tool, index) => tool === b.tools[index])
  );
}
