import { SystemMessage } from "@langchain/core/messages";
import { textOf } from "../message-text.ts";
import type { Middleware, ModelRequest } from "./middleware.ts";

const CACHE = { type: "ephemeral" } as const;

/**
 * Marks the stable prefix (tools and system prompt) and the newest turn for Anthropic's prompt cache.
 * Other providers cache by themselves or not at all; their requests stay as they are.
 */
export function promptCachingMiddleware(): Middleware {
  return {
    name: "PromptCachingMiddleware",
    wrapModelCall: (request, next) => next(isAnthropic(request) ? marked(request) : request),
  };
}

const isAnthropic = ({ model }: ModelRequest): boolean => model._llmType() === "anthropic";

function marked(request: ModelRequest): ModelRequest {
  const systemMessage = markEnd(request.systemMessage);
  return {
    ...request,
    systemMessage,
    systemPrompt: textOf(systemMessage),
    modelSettings: { cache_control: CACHE, ...request.modelSettings },
  };
}

/** The message with a mark on its last block; the caller's own marks stay. */
function markEnd(message: SystemMessage): SystemMessage {
  if (textOf(message) === "") return message;
  if (typeof message.content === "string") {
    return new SystemMessage({ content: [{ type: "text", text: message.content, cache_control: CACHE }] });
  }
  const last = message.content.at(-1);
  if (!last || "cache_control" in last) return message;
  return new SystemMessage({ content: [...message.content.slice(0, -1), { ...last, cache_control: CACHE }] });
}
