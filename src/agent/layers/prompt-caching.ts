import { SystemMessage } from "@langchain/core/messages";
import { isObject, memberOf } from "../../core/unknown.ts";
import type { Middleware, ModelRequest } from "../contracts/middleware.ts";
import { type Block, copyMessage, textOf, toBlocks } from "../messages/messages.ts";
import { modelClass } from "../messages/mend.ts";
import { modelName } from "../models/reply.ts";

const CACHE = { type: "ephemeral" } as const;
/** Anthropic takes no more in one request. */
const MAX_MARKS = 4;

/**
 * Marks for Anthropic's cache: tools with the common part of the system prompt, all of that prompt, and the newest turn.
 * Marks of the caller stay, and count. Requests to other providers stay as they are.
 */
export const promptCachingMiddleware = (): Middleware => ({
  name: "PromptCachingMiddleware",
  finishRequest: (request) => {
    // Bedrock's package places the marks itself, and takes one as the sign to do so.
    const { marks } = modelClass(request.model);
    if (marks === "turn") return /claude/i.test(modelName(request.model)) ? withTurnMark(request) : request;
    return marks === "all" ? marked(acceptable(request)) : request;
  },
});

const withTurnMark = (request: ModelRequest): ModelRequest => ({
  ...request,
  modelSettings: { cache_control: CACHE, ...request.modelSettings },
});

/** The newest turn first, because later requests begin with it; then the parts that stay the same for longer. */
function marked(request: ModelRequest): ModelRequest {
  let left = MAX_MARKS - ownMarks(request);
  if (left <= 0) return request;
  const own: unknown = request.modelSettings?.["cache_control"];
  if (own === undefined) left -= 1;
  const hasLongMark = request.messages
    .flatMap(({ content }) => toBlocks(content))
    .some((block) => isMarked(block) && !isShortLived(block));
  // A longer lifetime may not come after a shorter one.
  const mark = own ?? (hasLongMark ? ({ ...CACHE, ttl: "1h" } as const) : CACHE);
  const { closingPrompt, ...rest } = withTurnMark(request);
  const stable = toBlocks(request.systemMessage.content);
  const closing = closingPrompt ? [{ type: "text" as const, text: closingPrompt }] : [];
  // When only one end of the prompt can be marked, the one that changes less is worth more.
  const blocks = [...markEnd(stable, mark, left > 0), ...markEnd(closing, mark, left > 1)];
  const systemMessage = new SystemMessage({ content: blocks });
  return { ...rest, systemMessage, systemPrompt: textOf(systemMessage) };
}

/** Drops the caller's oldest marks above the maximum, and a lifetime longer than that of an earlier mark. */
function acceptable(request: ModelRequest): ModelRequest {
  const { systemMessage, messages, tools } = request;
  let excess = ownMarks(request) - MAX_MARKS;
  let isShort = tools.some((tool) => [tool, Reflect.get(tool, "extras")].some(isShortLived));
  const accept = (blocks: Block[], mayDrop: boolean): Block[] => {
    const accepted = blocks.map((block) => {
      if (!isMarked(block)) return block;
      const { cache_control: _mark, ...plain } = block as Block & { cache_control: unknown };
      if (mayDrop && (excess -= 1) >= 0) return plain;
      isShort ||= isShortLived(block);
      return isShort && !isShortLived(block) ? { ...plain, cache_control: CACHE } : block;
    });
    return accepted.every((block, index) => block === blocks[index]) ? blocks : accepted;
  };
  const content = toBlocks(systemMessage.content);
  const system = accept(content, false);
  const rest = messages.map((message) => {
    if (typeof message.content === "string") return message;
    const blocks = accept(message.content, true);
    return blocks === message.content ? message : copyMessage(message, { content: blocks });
  });
  return {
    ...request,
    systemMessage: system === content ? systemMessage : new SystemMessage({ content: system }),
    messages: rest,
  };
}

/** True for a mark of five minutes, the default. */
const isShortLived = (item: unknown): boolean =>
  isMarked(item) && memberOf(memberOf(item, "cache_control"), "ttl") !== "1h";

function markEnd(blocks: Block[], mark: unknown, isFree: boolean): Block[] {
  const last = blocks.at(-1);
  if (!isFree || !last || "cache_control" in last) return blocks;
  return [...blocks.slice(0, -1), { ...last, cache_control: mark }];
}

/** Marks that the caller, or middleware, has set. */
function ownMarks({ systemMessage, messages, tools, modelSettings = {} }: ModelRequest): number {
  const blocks = [systemMessage, ...messages].flatMap(({ content }) => toBlocks(content));
  const inMessages = blocks.filter(isMarked);
  const inTools = tools.filter((tool) => isMarked(tool) || isMarked(Reflect.get(tool, "extras")));
  return inMessages.length + inTools.length + ("cache_control" in modelSettings ? 1 : 0);
}

const isMarked = (item: unknown): boolean => isObject(item) && "cache_control" in item;
