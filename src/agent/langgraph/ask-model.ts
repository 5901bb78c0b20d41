import { AIMessage, type BaseMessage, HumanMessage, mergeUsageMetadata } from "@langchain/core/messages";
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import type { RunnableConfig } from "@langchain/core/runnables";
import { isStructuredTool } from "@langchain/core/utils/function_calling";
import { memberOf, textMemberOf } from "../../core/unknown.ts";
import { ownTurn } from "../../core/concurrency.ts";
import type { Logger } from "../../core/logger.ts";
import type { ModelRequest } from "../contracts/middleware.ts";
import { MOST_ASKED, continued, isEmptyReply, markCut, resumed, unfinished } from "../models/answers.ts";
import { textOf, withStartNote } from "../messages/messages.ts";
import { type Strategy, bindStrategy } from "../models/structured-answer.ts";
import { appendSystemPrompt } from "../messages/system-prompt.ts";
import { checkRoom, estimateUsage } from "../compaction/measures.ts";
import { googleHistory, modelClass } from "../messages/mend.ts";
import { callModel } from "../models/call-model.ts";
import type { ReplyCache } from "../models/reply-cache.ts";
import { LONGEST_REPLY, isCut } from "../models/reply.ts";
import { type ToolBinder, type ToolBinding } from "../models/tool-binder.ts";
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
    ...googleHistory(messages.map(withStartNote), model),
    ...(report === undefined ? [] : [new HumanMessage(report)]),
  ];
  // Anthropic refuses calls in a history without tools. OpenAI's package leaves out the choice `none`.
  const withoutCalls =
    modelClass(model).history === "chat" ? { tools: [] } : { tools: request.tools, toolChoice: "none" };
  const binding: ToolBinding = {
    model,
    ...(report === undefined
      ? { tools: [...request.tools, ...tools], toolChoice: request.toolChoice ?? toolChoice }
      : withoutCalls),
    ...(options ? { options } : {}),
  };
  const toolNames = [...request.tools, ...tools].flatMap((tool: BindToolsInput) =>
    isStructuredTool(tool) ? tool.name : (textMemberOf(memberOf(tool, "function"), "name") ?? []),
  );
  return { request, input, binding, toolNames };
}

async function completeReply(given: ModelRequest, asking: Asking): Promise<AIMessage> {
  const { strategy, binder, cache, meter, report, config, log } = asking;
  const { request, input, toolNames, ...sent } = sentRequest(given, asking);
  let { binding } = sent;
  const settings = request.modelSettings ?? {};
  // A report is shown with the message that it becomes part of, and not by stream mode `messages`.
  const tags = [...(config.tags ?? []), "langsmith:nostream"];
  const shown = report === undefined ? config : { ...config, tags };
  const say = report === undefined ? contextOf(config).say : undefined;
  const askNow = async (input: BaseMessage[], before: string): Promise<AIMessage> => {
    const reply = await callModel(
      request,
      async (oneTry) => {
        const options = { ...shown, ...oneTry, ...settings, ...heard(say, before, shown) };
        const reply: unknown = await binder.bind(binding).invoke(input, options);
        return estimateUsage(reply, input, binding);
      },
      { step: given.runtime.step, signal: config.signal, log, toolNames },
    );
    await ownTurn();
    return reply;
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
  let said = textOf(reply);
  const asked = [...input];
  const times = { cut: 0, paused: 0, empty: 0, unstructured: 0, uncalled: 0, unwritten: 0 };
  for (let calls = 1; ; calls += 1) {
    say?.(textOf(reply));
    checkRoom(reply, request);
    const missing = unfinished(reply, strategy, isIncomplete, binding.toolChoice === "any");
    if (!missing) return reply;
    // Some servers accept that a call is forced, and let their model write anything.
    binding = { ...binding, toolChoice: undefined };
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
    said = textOf(reply);
    reply.usage_metadata = mergeUsageMetadata(before.usage_metadata, reply.usage_metadata);
    if (missing.kind === "cut") continued(before.text, reply);
    if (missing.kind === "paused") resumed(before, reply);
    countCalls(reply, calls + 1);
  }
}
