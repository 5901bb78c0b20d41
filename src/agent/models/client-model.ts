/** The model that an MCP client lends, in the terms of sampling. */
import type { BindToolsInput } from "@langchain/core/language_models/chat_models";
import type { ModelProfile } from "@langchain/core/language_models/profile";
import type { BaseMessage } from "@langchain/core/messages";
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";
import { convertToOpenAITool } from "@langchain/core/utils/function_calling";
import type { CreateMessageRequestParams, SamplingMessage } from "@modelcontextprotocol/client";
import { defined } from "../../core/unknown.ts";
import { DeepAgentError, RunFailure } from "../../core/errors.ts";
import { fill, oneLine } from "../../core/text.ts";
import { OwnModel } from "./own-model.ts";
import texts from "./texts.json" with { type: "json" };

/** Answers model calls by a model of the principal's clients. */
export interface ModelLender {
  /**
   * The reply to a request. The same request has the same reply however often it is asked for, also after
   * a crash. `undefined`: nobody answers now, and the agent is to wait without holding anything.
   */
  reply(request: SamplingRequest, signal: AbortSignal | undefined): Promise<SamplingReply | undefined>;
}

/** Interrupt value of a model call that waits for a client to lend its model. */
export const MODEL_AWAITED = "model_awaited";

/** No client lends a model now: the agent stops here, and asks again when it continues. */
export class ModelAwaited extends DeepAgentError {
  constructor() {
    super("model_awaited", "No client lends its model now.");
  }
}

/** The model of the client, through MCP sampling. Tokens are not known: clients do not report them. */
export class ClientModel extends OwnModel {
  readonly #lender: ModelLender;

  constructor(lender: ModelLender) {
    super();
    this.#lender = lender;
  }

  override _llmType(): string {
    return "client";
  }

  override get profile(): ModelProfile {
    return { imageInputs: true, audioInputs: true, videoInputs: false, pdfInputs: false };
  }

  /** @throws ModelAwaited when nobody answers now, RunFailure when the client would not or could not. */
  override async _generate(messages: BaseMessage[], options: this["ParsedCallOptions"]): Promise<ChatResult> {
    const request = samplingRequest(messages, { tools: options.tools, toolChoice: options.tool_choice });
    const reply = await this.#lender.reply(request, options.signal);
    if (reply === undefined) throw new ModelAwaited();
    if (reply.kind === "declined")
      throw new RunFailure("model_unavailable", fill(texts.notLent, oneLine(reply.message, 300)));
    const message = answeredMessage(reply);
    return { generations: [{ text: message.text, message }] };
  }
}

type SamplingBlock = Extract<SamplingMessage["content"], unknown[]>[number];
type PlainBlock = Extract<SamplingBlock, { type: "text" | "image" | "audio" }>;

/** A model call in the terms of MCP's `sampling/createMessage`, with the content of each message as a list. */
export type SamplingRequest = Pick<
  CreateMessageRequestParams,
  "systemPrompt" | "tools" | "toolChoice" | "maxTokens"
> & { messages: Array<SamplingMessage & { content: SamplingBlock[] }> };

/** The end of a model call: an answer, or why the client has not answered. */
export type SamplingReply =
  | { kind: "answer"; content: SamplingBlock[]; model: string; stopReason?: string }
  | { kind: "declined"; message: string };

/**
 * A model call as a sampling request. A user message with tool results has nothing else in it, and every
 * tool use is followed by its result, as the rules of sampling demand; equal calls make equal requests.
 */
export function samplingRequest(
  messages: readonly BaseMessage[],
  { tools = [], toolChoice }: { tools?: readonly BindToolsInput[] | undefined; toolChoice?: unknown },
): SamplingRequest {
  const system = messages.filter((message) => SystemMessage.isInstance(message)).map(({ text }) => text);
  const offered = tools.map((tool) => {
    const { name, description, parameters } = convertToOpenAITool(tool).function;
    const inputSchema = { type: "object" as const, ...(parameters as { type?: "object" } | undefined) };
    return { name, ...defined({ description }), inputSchema };
  });
  // Sampling can demand a call, but not of a certain tool: a demand for one becomes a demand for any.
  const modes = ["auto", "none"] as const;
  const mode = toolChoice === undefined ? "auto" : modes.find((one) => one === toolChoice);
  return {
    ...(system.length === 0 ? {} : { systemPrompt: system.join("\n\n") }),
    messages: conversation(messages),
    ...(tools.length === 0 ? {} : { tools: offered, toolChoice: { mode: mode ?? "required" } }),
    maxTokens: 16_384, // enough for a long file in one tool call
  };
}

function conversation(messages: readonly BaseMessage[]): SamplingRequest["messages"] {
  const said: SamplingRequest["messages"] = [];
  let results: (typeof said)[number] | undefined;
  for (const message of messages) {
    if (ToolMessage.isInstance(message)) {
      if (results === undefined) said.push((results = { role: "user", content: [] }));
      results.content.push({
        type: "tool_result",
        toolUseId: message.tool_call_id,
        content: samplingBlocks(message),
        ...(message.status === "error" ? { isError: true } : {}),
      });
      continue;
    }
    results = undefined;
    const isReply = AIMessage.isInstance(message);
    if (!isReply && !HumanMessage.isInstance(message)) continue;
    const calls = isReply ? (message.tool_calls ?? []) : [];
    const type = "tool_use";
    const uses = calls.map(({ id = "", name, args }): SamplingBlock => ({ type, id, name, input: args }));
    const content = [...samplingBlocks(message), ...uses];
    if (content.length > 0) said.push({ role: isReply ? "assistant" : "user", content });
  }
  return said;
}

function samplingBlocks({ content, contentBlocks }: BaseMessage): PlainBlock[] {
  if (typeof content === "string") return textBlock(content);
  const silent = ["tool_call", "reasoning", "invalid_tool_call"];
  return contentBlocks.flatMap((block): PlainBlock[] => {
    if (block.type === "text") return textBlock(block.text);
    if (block.type === "image" || block.type === "audio") {
      const { data, mimeType } = block;
      if (typeof data === "string" && mimeType) return [{ type: block.type, data, mimeType }];
    }
    return silent.includes(block.type) ? [] : textBlock(`[${block.type}: not shown to this model]`);
  });
}

const textBlock = (text: string): PlainBlock[] => (text.trim() === "" ? [] : [{ type: "text", text }]);

export function answeredMessage(reply: Extract<SamplingReply, { kind: "answer" }>): AIMessage {
  const texts = reply.content.filter((block) => block.type === "text").map(({ text }) => text);
  const uses = reply.content.filter((block) => block.type === "tool_use");
  return new AIMessage({
    content: texts.join("\n"),
    tool_calls: uses.map(({ id, name, input }) => ({ type: "tool_call", id, name, args: input })),
    response_metadata: { model_name: reply.model, ...defined({ stop_reason: reply.stopReason }) },
  });
}
