/** Keeps replies to requests that are made again. */
import { createHash, randomUUID } from "node:crypto";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import type { BaseCache } from "@langchain/langgraph-checkpoint";
import { byIdentity } from "../../core/by-identity.ts";
import { errorMessage } from "../../core/errors.ts";
import { canonicalJson } from "../../core/json.ts";
import type { Logger } from "../../core/logger.ts";
import { toolText } from "../messages/messages.ts";
import type { ToolBinding } from "./tool-binder.ts";

/**
 * Replies to earlier requests to the same model, with the same settings, tools and messages. The calls of a cached
 * reply are run again each time. If the cache fails, the model is asked.
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
    { model, tools, ...others }: ToolBinding & { settings: Record<string, unknown> },
    messages: readonly BaseMessage[],
    ask: () => Promise<AIMessage>,
  ): Promise<AIMessage> {
    // The content of each message for the model, without its id, which differs from thread to thread.
    const contents = messages.map((message) => {
      const { type, name, content } = message;
      const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
      const answered = ToolMessage.isInstance(message) ? [message.tool_call_id, message.status] : [];
      return [type, name, content, calls.map(({ id, name, args }) => [id, name, args]), answered];
    });
    const facts = [model.serialize(), tools.map(textOfTool), others, contents];
    const digest = createHash("sha256").update(canonicalJson(facts)).digest("hex");
    const key: [string[], string] = [["deepagent", "replies"], digest];
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

/** Providers' own tools are plain objects. */
const textOfTool = byIdentity((tool: ToolBinding["tools"][number]) =>
  isStructuredTool(tool) ? toolText(tool) : JSON.stringify(tool),
);

/** A reply as a message of its own, which nothing was paid for. */
function again(reply: AIMessage): AIMessage {
  const { content, tool_calls = [], invalid_tool_calls = [], additional_kwargs, response_metadata } = reply;
  const fields = { content, tool_calls, invalid_tool_calls, additional_kwargs, response_metadata };
  return new AIMessage({ ...fields, id: randomUUID() });
}
