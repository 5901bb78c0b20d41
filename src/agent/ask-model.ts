import { type AIMessage, type BaseMessage, HumanMessage, mergeUsageMetadata } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { ownTurn } from "../core/turns.ts";
import type { ToolBinder } from "./bind-tools.ts";
import type { Logger } from "../core/logger.ts";
import { countCalls, type Meter } from "./limits/meter.ts";
import { textOf } from "./message-text.ts";
import { appendSystemPrompt, type ModelRequest } from "./middleware/middleware.ts";
import { callModel } from "./models/call-model.ts";
import type { ReplyCache } from "./models/reply-cache.ts";
import { answeredBy } from "./models/reply.ts";
import { bindingOf, type Strategy } from "./structured.ts";
import { answerInText, hasCalls, reminderFor } from "./structured-text.ts";

/** How often a model that ends without the structured answer is asked for it again. */
const MAX_REMINDERS = 3;

export interface Asking {
  /** How the structured answer is asked for, where there is to be one. */
  strategy: Strategy | undefined;
  binder: ToolBinder;
  /** Replies to earlier requests. */
  cache: ReplyCache | undefined;
  /** What is changed last of the request. */
  finish: (request: ModelRequest) => ModelRequest;
  /** What the agent has used before, and its limits. */
  meter: Meter;
  config: RunnableConfig;
  log: Logger;
}

/**
 * One turn of the model: its reply to the request. A model that ends without the structured answer is
 * reminded of it; what was said between is not kept, its tokens and calls are counted.
 */
export async function askModel(
  given: ModelRequest,
  { strategy, binder, finish, cache, meter, config, log }: Asking,
): Promise<AIMessage> {
  const { tools = [], toolChoice, options, notice } = strategy ? bindingOf(strategy, given.model) : {};
  const request = finish(notice ? appendSystemPrompt(given, notice) : given);
  const { messages, model, systemMessage } = request;
  const input = textOf(systemMessage) === "" ? messages : [systemMessage, ...messages];
  const binding = {
    model,
    tools: [...request.tools, ...tools],
    toolChoice: request.toolChoice ?? toolChoice,
    ...(options ? { options } : {}),
  };
  const settings = request.modelSettings ?? {};
  const askNow = async (input: BaseMessage[]): Promise<AIMessage> => {
    const reply = await callModel(
      request,
      (oneTry) => binder.bind(binding).invoke(input, { ...config, ...oneTry, ...settings }),
      { scope: config, log },
    );
    await ownTurn();
    return answeredBy(reply, model);
  };
  const ask = async (input: BaseMessage[]): Promise<AIMessage> =>
    cache ? cache.reply({ ...binding, settings }, input, () => askNow(input)) : askNow(input);
  let reply = await ask(input);
  if (!strategy) return reply;
  const asked = [...input];
  for (let calls = 1; calls <= MAX_REMINDERS; calls += 1) {
    if (hasCalls(reply) || answerInText(reply, strategy) !== undefined) break;
    if (meter.wouldReach(given.state.messages, reply, calls)) break;
    // No provider takes an empty message.
    asked.push(...(reply.text.trim() === "" ? [] : [reply]), new HumanMessage(reminderFor(strategy)));
    const before = reply;
    reply = await ask(asked);
    reply.usage_metadata = mergeUsageMetadata(before.usage_metadata, reply.usage_metadata);
    countCalls(reply, calls + 1);
  }
  return reply;
}
