import { AIMessage, type BaseMessage, HumanMessage, mergeUsageMetadata } from "@langchain/core/messages";
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import { type RunnableConfig, mergeConfigs } from "@langchain/core/runnables";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import { byIdentity } from "../../core/by-identity.ts";
import { memberOf, textMemberOf } from "../../core/unknown.ts";
import { ownTurn } from "../../core/concurrency.ts";
import { defined } from "../../core/defined.ts";
import { RunFailure } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import {
  MOST_ASKED,
  continued,
  isEmptyReply,
  markCut,
  resumed,
  unfinished,
} from "../models/answers.ts";
import { textOf, withStartNote } from "../messages/messages.ts";
import { type Strategy, bindStrategy } from "../models/structured-answer.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { ESTIMATE } from "../compaction/compacted-view.ts";
import { contextWindow, findExchange } from "../models/exchange.ts";
import { findWrapping } from "../models/plain-model.ts";
import { isOpenAi } from "../messages/mend.ts";
import { callModel } from "../models/call-model.ts";
import type { ReplyCache } from "../models/reply-cache.ts";
import { LONGEST_REPLY, answeredBy, isCut } from "../models/reply.ts";
import { type ToolBinder, type ToolBinding, isGoogle } from "../models/tool-binder.ts";
import { heard } from "../models/heard.ts";
import { readMarkup } from "../models/text-reply.ts";
import { type Meter, countCalls } from "../budget/meter.ts";
import { contextOf } from "./step-of-task.ts";

export interface Asking {
  strategy: Strategy | undefined;
  binder: ToolBinder;
  cache: ReplyCache | undefined;
  finish: (request: ModelRequest) => ModelRequest;
  meter: Meter;
  /** Instruction for the last call, which has no tools; absent in all others. */
  report?: string | undefined;
  config: RunnableConfig;
  log: Logger;
}

/** A reply as Google's package takes it, which reads the name of an agent as an unknown role. */
const withoutName = byIdentity((message: BaseMessage): BaseMessage => {
  if (!AIMessage.isInstance(message) || message.name === undefined) return message;
  const { content, additional_kwargs, response_metadata, tool_calls = [], usage_metadata, id } = message;
  const fields = { content, additional_kwargs, response_metadata, tool_calls };
  return new AIMessage({ ...fields, ...defined({ usage_metadata, id }) });
});

/** A reply as `@langchain/google` 0.2.6 sends it with its calls, which it reads from content blocks only. */
const withCallBlocks = byIdentity((message: BaseMessage): BaseMessage => {
  const { content } = message;
  const isOwn = typeof content !== "string" && content.some(({ type }) => type === "functionCall");
  if (!AIMessage.isInstance(message) || isOwn || !message.tool_calls?.length) return message;
  const { additional_kwargs, response_metadata, tool_calls, id } = message;
  const text = message.text === "" ? [] : [{ type: "text", text: message.text }];
  return new AIMessage({
    content: [...text, ...tool_calls.map((call) => ({ ...call, type: "tool_call" }))],
    additional_kwargs,
    response_metadata: { ...response_metadata, output_version: "v1" },
    tool_calls,
    ...defined({ id }),
  });
});

/** The reply to a request. It is asked for again if it was cut, is empty, or lacks the structured answer. */
export async function askModel(given: ModelRequest, asking: Asking): Promise<AIMessage> {
  try {
    const reply = await completeReply(given, asking);
    given.attempted?.(undefined);
    return reply;
  } catch (error) {
    given.attempted?.(error);
    throw error;
  }
}

function sentRequest(given: ModelRequest, { strategy, finish, report }: Asking) {
  const { tools = [], toolChoice, options, notice } = strategy ? bindStrategy(strategy, given.model) : {};
  const request = finish(notice ? appendSystemPrompt(given, notice) : given);
  const { messages, model, systemMessage } = request;
  const input = [
    ...(textOf(systemMessage) === "" ? [] : [systemMessage]),
    ...messages
      .map(withStartNote)
      .map(isGoogle(model) ? withoutName : (message) => message)
      .map(model._llmType() === "google" ? withCallBlocks : (message) => message),
    ...(report === undefined ? [] : [new HumanMessage(report)]),
  ];
  // Anthropic refuses calls in a history without tools. OpenAI's package leaves out the choice `none`.
  const withoutCalls = isOpenAi(model) ? { tools: [] } : { tools: request.tools, toolChoice: "none" };
  const binding: ToolBinding = {
    model,
    ...(report === undefined
      ? { tools: [...request.tools, ...tools], toolChoice: request.toolChoice ?? toolChoice }
      : withoutCalls),
    ...(options ? { options } : {}),
  };
  const nameOf = (tool: BindToolsInput): string | undefined =>
    isStructuredTool(tool) ? tool.name : textMemberOf(memberOf(tool, "function"), "name");
  const toolNames = [...request.tools, ...tools].flatMap((tool) => nameOf(tool) ?? []);
  return { request, input, binding, toolNames };
}

/** A reply with its tokens: estimated where the provider reports none, so that limits hold. Changes `reply`. */
function withUsage(
  reply: AIMessage,
  input: readonly BaseMessage[],
  { model, tools }: ToolBinding,
): AIMessage {
  const exchange = findExchange(model);
  if (exchange === undefined || (reply.usage_metadata?.total_tokens ?? 0) > 0) return reply;
  const ofTools = tools.filter(isStructuredTool);
  const input_tokens = ESTIMATE.ofAll(input) + ESTIMATE.ofTools(ofTools);
  const output_tokens = Math.max(1, ESTIMATE.of(reply));
  reply.usage_metadata = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
  exchange.note(
    `The server of the model ${exchange.profile.model} reports no tokens. They are estimated from the texts.`,
  );
  return reply;
}

/** True if a reply is empty because the request left no room for it, which some providers do not report. */
function fillsWindow(reply: AIMessage, { model, messages }: ModelRequest): boolean {
  const window = contextWindow(model) ?? Infinity;
  const sent = reply.usage_metadata?.input_tokens ?? 0;
  return (
    isCut(reply) && isEmptyReply(reply) && sent >= 0.95 * window && ESTIMATE.ofAll(messages) > window / 2
  );
}

async function completeReply(given: ModelRequest, asking: Asking): Promise<AIMessage> {
  const { strategy, binder, cache, meter, report, config, log } = asking;
  const { request, input, binding, toolNames } = sentRequest(given, asking);
  const settings = request.modelSettings ?? {};
  // A report is shown with the message that it becomes part of, and not by stream mode `messages`.
  const unshown = { ...config, tags: [...(config.tags ?? []), "langsmith:nostream"] };
  const shown = report === undefined ? config : unshown;
  const say = report === undefined ? contextOf(config).say : undefined;
  const askNow = async (input: BaseMessage[], before: string): Promise<AIMessage> => {
    const reply = await callModel(
      request,
      (oneTry) =>
        binder.bind(binding).invoke(
          input,
          mergeConfigs(findWrapping(request.model), {
            ...shown,
            ...oneTry,
            ...settings,
            ...heard(say, before, shown),
          }),
        ),
      { step: given.runtime.step, signal: config.signal, log, toolNames },
    );
    await ownTurn();
    return withUsage(answeredBy(reply, binding.model), input, binding);
  };
  let isIncomplete = false;
  const ask = async (input: BaseMessage[], before = ""): Promise<AIMessage> => {
    const asked = () => askNow(input, before);
    const reply = await (cache ? cache.reply({ ...binding, settings }, input, asked) : asked());
    isIncomplete = readMarkup(reply, toolNames, strategy);
    return reply;
  };
  say?.("");
  let reply = await ask(input);
  if (report !== undefined) return isCut(reply) ? markCut(reply) : reply;
  let said = reply.text;
  const asked = [...input];
  const times = { cut: 0, paused: 0, empty: 0, unstructured: 0, uncalled: 0, unwritten: 0 };
  for (let calls = 1; ; calls += 1) {
    say?.(reply.text);
    if (fillsWindow(reply, request))
      throw new RunFailure(
        "context_overflow",
        "The model wrote nothing: the request fills its context window.",
      );
    const missing = unfinished(reply, strategy, isIncomplete);
    if (!missing) return reply;
    times[missing.kind] += 1;
    // A continued reply may become as long again.
    const isLong = missing.kind === "cut" && reply.text.length > LONGEST_REPLY / 2;
    const isLast = isLong || times[missing.kind] > MOST_ASKED[missing.kind];
    if (!isLast) await meter.lookElsewhere(contextOf(config).budget);
    if (isLast || meter.wouldReach(given.state.messages, reply, calls)) {
      const isCutText = missing.kind === "cut" || (missing.kind === "uncalled" && isCut(reply));
      return isCutText && !isEmptyReply(reply) ? markCut(reply) : reply;
    }
    const before = reply;
    if (missing.kind === "paused") asked.push(before);
    // No provider takes an empty message.
    else asked.push(...(said.trim() === "" ? [] : [new AIMessage(said)]), new HumanMessage(missing.prompt));
    reply = await ask(asked, missing.kind === "cut" || missing.kind === "paused" ? before.text : "");
    said = reply.text;
    reply.usage_metadata = mergeUsageMetadata(before.usage_metadata, reply.usage_metadata);
    if (missing.kind === "cut") continued(before.text, reply);
    if (missing.kind === "paused") resumed(before, reply);
    countCalls(reply, calls + 1);
  }
}
