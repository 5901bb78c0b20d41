import type { ContentBlock } from "@langchain/core/messages";
import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";

/** One part of a message, as MCP sampling (2025-11-25) has it. */
export type SamplingBlock =
  | { type: "text"; text: string }
  | { type: "image" | "audio"; data: string; mimeType: string }
  | { type: "tool_use"; id: string; name: string; input: Record<string, unknown> }
  | { type: "tool_result"; toolUseId: string; content: SamplingBlock[]; isError?: boolean };

export interface SamplingMessage {
  role: "user" | "assistant";
  content: SamplingBlock[];
}

/** A model call in the terms of MCP's `sampling/createMessage`. */
export interface SamplingRequest {
  systemPrompt?: string;
  messages: SamplingMessage[];
  tools?: { name: string; description?: string; inputSchema: Record<string, unknown> }[];
  toolChoice?: { mode: "auto" | "required" | "none" };
  maxTokens: number;
}

/** What became of a model call: an answer, or that the client would not or could not give one. */
export type SamplingReply =
  | { kind: "answer"; content: SamplingBlock[]; model: string; stopReason?: string }
  | { kind: "declined"; message: string };

/** Room for one reply: enough for a long file in one tool call. */
const MAX_TOKENS = 16_384;

export interface CallOptions {
  tools?: readonly BindToolsInput[];
  toolChoice?: unknown;
}

/**
 * A model call as a sampling request. A user message with tool results has nothing else in it, and every
 * tool use is followed by its result, as the rules of sampling demand; equal calls give equal requests.
 */
export function samplingRequest(
  messages: readonly BaseMessage[],
  { tools = [], toolChoice }: CallOptions,
): SamplingRequest {
  const system = messages.filter((message) => SystemMessage.isInstance(message)).map(({ text }) => text);
  return {
    ...(system.length === 0 ? {} : { systemPrompt: system.join("\n\n") }),
    messages: conversation(messages),
    ...(tools.length === 0 ? {} : { tools: tools.map(samplingTool), toolChoice: choiceOf(toolChoice) }),
    maxTokens: MAX_TOKENS,
  };
}

function conversation(messages: readonly BaseMessage[]): SamplingMessage[] {
  const said: SamplingMessage[] = [];
  let results: SamplingMessage | undefined;
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) {
      if (results === undefined) said.push((results = { role: "user", content: [] }));
      results.content.push(toolResult(message));
      continue;
    }
    results = undefined;
    const role = AIMessage.isInstance(message)
      ? "assistant"
      : HumanMessage.isInstance(message)
        ? "user"
        : undefined;
    if (role === undefined) continue;
    const content = [...blocksOf(message), ...(AIMessage.isInstance(message) ? toolUses(message) : [])];
    if (content.length > 0) said.push({ role, content });
  }
  return said;
}

function toolUses({ tool_calls: calls = [] }: AIMessage): SamplingBlock[] {
  return calls.map(({ id = "", name, args }) => ({ type: "tool_use", id, name, input: args }));
}

function toolResult(message: ToolMessage): SamplingBlock {
  const isError = message.status === "error" ? { isError: true } : {};
  return { type: "tool_result", toolUseId: message.tool_call_id, content: blocksOf(message), ...isError };
}

function blocksOf(message: BaseMessage): SamplingBlock[] {
  if (typeof message.content === "string") return textBlock(message.content);
  return message.contentBlocks.flatMap(samplingBlock);
}

function samplingBlock(block: ContentBlock.Standard): SamplingBlock[] {
  if (block.type === "text") return textBlock(block.text);
  if (block.type === "image" || block.type === "audio") {
    const { data, mimeType } = block;
    if (typeof data === "string" && mimeType) return [{ type: block.type, data, mimeType }];
  }
  const silent = ["tool_call", "reasoning", "invalid_tool_call"];
  return silent.includes(block.type) ? [] : textBlock(`[${block.type}: not shown to this model]`);
}

const textBlock = (text: string): SamplingBlock[] => (text.trim() === "" ? [] : [{ type: "text", text }]);

function samplingTool(tool: BindToolsInput): NonNullable<SamplingRequest["tools"]>[number] {
  const { name, description, parameters } = convertToOpenAITool(tool).function;
  const inputSchema = { type: "object", ...(parameters as Record<string, unknown> | undefined) };
  return { name, ...(description === undefined ? {} : { description }), inputSchema };
}

/** Sampling can demand a call, but not of one tool: who wants a certain one gets one of them. */
function choiceOf(choice: unknown): NonNullable<SamplingRequest["toolChoice"]> {
  if (choice === undefined || choice === "auto") return { mode: "auto" };
  return { mode: choice === "none" ? "none" : "required" };
}

/** The message that an answer stands for. */
export function answeredMessage({
  content,
  model,
  stopReason,
}: Extract<SamplingReply, { kind: "answer" }>): AIMessage {
  return new AIMessage({
    content: content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"),
    tool_calls: content.flatMap((block) =>
      block.type === "tool_use"
        ? [{ type: "tool_call" as const, id: block.id, name: block.name, args: block.input }]
        : [],
    ),
    response_metadata: {
      model_name: model,
      ...(stopReason === undefined ? {} : { stop_reason: stopReason }),
    },
  });
}
