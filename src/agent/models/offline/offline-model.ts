/** The rule-based model that needs no key. */
import { createHash } from "node:crypto";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import type { BaseLanguageModelInput } from "@langchain/core/language_models/base";
import {
  BaseChatModel,
  type BaseChatModelCallOptions,
  type BindToolsInput,
} from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  type UsageMetadata,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { Runnable } from "@langchain/core/runnables";
import { type OfferedTool, type Step, currentTurn } from "./conversation.ts";
import { nextCoordinatorStep } from "./coordinate.ts";
import { nextExamineStep } from "./examine.ts";

interface OfflineCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
}

/**
 * A chat model without a language model: what it says next follows from the messages and the bound tools
 * by fixed rules, and it says so. With a `task` tool it plans, delegates one subagent per part of the
 * files, writes a report and a note; without one it examines what it is told to and reports.
 *
 * The same conversation always gives the same reply. Token counts are estimates, four characters each.
 */
export class OfflineModel extends BaseChatModel<OfflineCallOptions> {
  constructor() {
    super({});
  }

  override _llmType(): string {
    return "offline";
  }

  override getName(): string {
    return "offline";
  }

  override bindTools(
    tools: BindToolsInput[],
    options?: Partial<OfflineCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, OfflineCallOptions> {
    return this.withConfig({ ...options, tools });
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    const message = offlineReply(messages, options.tools ?? []);
    await runManager?.handleLLMNewToken(message.text);
    return { generations: [{ text: message.text, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, tool_calls: calls = [], ...reply } = offlineReply(messages, options.tools ?? []);
    const message = new AIMessageChunk({
      content: text,
      tool_call_chunks: calls.map(({ id, name, args }, index) => ({
        type: "tool_call_chunk",
        index,
        name,
        args: JSON.stringify(args),
        ...(id === undefined ? {} : { id }),
      })),
      response_metadata: reply.response_metadata,
      ...(reply.usage_metadata === undefined ? {} : { usage_metadata: reply.usage_metadata }),
    });
    const chunk = new ChatGenerationChunk({ text, message });
    yield chunk;
    await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
  }
}

/** The reply to a conversation; pure. */
export function offlineReply(messages: readonly BaseMessage[], tools: readonly BindToolsInput[]): AIMessage {
  const { text, calls } = nextStep(
    messages,
    new Map(tools.map(offeredTool).map((tool) => [tool.name, tool])),
  );
  const ids = callIds(messages);
  return new AIMessage({
    content: text,
    tool_calls: calls.map(({ name, args }, index) => ({ type: "tool_call", id: ids(index), name, args })),
    usage_metadata: estimatedUsage(messages, text, calls),
    response_metadata: { model_name: "offline" },
  });
}

function nextStep(messages: readonly BaseMessage[], tools: ReadonlyMap<string, OfferedTool>): Step {
  const turn = currentTurn(messages);
  return tools.has("task") ? nextCoordinatorStep(turn, tools) : nextExamineStep(turn, tools);
}

/**
 * Ids that depend on the place in the conversation alone. The opening message is part of them, so that
 * subagents that work at the same time do not use the same ones.
 */
function callIds(messages: readonly BaseMessage[]): (index: number) => string {
  const opening = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
  const conversation = createHash("sha256").update(opening).digest("hex").slice(0, 8);
  const reply = messages.filter((message) => AIMessage.isInstance(message)).length;
  return (index) => `offline_${conversation}_${reply}_${index}`;
}

function offeredTool(tool: BindToolsInput): OfferedTool {
  const definition: unknown = "function" in tool ? tool.function : tool;
  const field = (name: string): string => {
    const value: unknown =
      typeof definition === "object" && definition !== null ? Reflect.get(definition, name) : "";
    return typeof value === "string" ? value : "";
  };
  return { name: field("name"), description: field("description") };
}

function estimatedUsage(messages: readonly BaseMessage[], text: string, calls: Step["calls"]): UsageMetadata {
  const input = messages.reduce((sum, message) => sum + message.text.length, 0);
  const output = text.length + (calls.length === 0 ? 0 : JSON.stringify(calls).length);
  const tokens = { input_tokens: Math.ceil(input / 4), output_tokens: Math.ceil(output / 4) };
  return { ...tokens, total_tokens: tokens.input_tokens + tokens.output_tokens };
}
