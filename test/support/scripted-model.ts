import { setTimeout as delay } from "node:timers/promises";
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
import { copyMessage } from "../../src/agent/messages/messages.ts";
import { START_NOTE } from "../../src/core/clock.ts";

export interface ScriptedToolCall {
  /** Default: `call_{number of the reply}_{position}`. */
  id?: string;
  name: string;
  args: Record<string, unknown>;
}

export interface ScriptedReply {
  text?: string;
  toolCalls?: ScriptedToolCall[];
  /** Default: 10 tokens in, 5 out. */
  usage?: { inputTokens: number; outputTokens: number; cachedInputTokens?: number };
  /** The model that the provider names. Default: scripted. */
  model?: string;
  /** Waits before it answers; an aborted signal ends the wait. */
  delayMs?: number;
  /** Waits for this after its first word. */
  pause?: Promise<unknown>;
}

export interface ScriptedRequest {
  messages: BaseMessage[];
  /** Names of the bound tools, in the order they were bound. */
  tools: string[];
  /** How the model is told to use them. */
  toolChoice?: unknown;
  /** Counts all calls of this model from 0, whoever makes them. */
  call: number;
  signal?: AbortSignal;
}

export type ScriptedReplyFunction = (request: ScriptedRequest) => ScriptedReply | Promise<ScriptedReply>;

interface ScriptedCallOptions extends BaseChatModelCallOptions {
  tools?: BindToolsInput[];
}

/** A chat model that answers what `reply` says; what `reply` throws is what the provider throws. */
export class ScriptedModel extends BaseChatModel<ScriptedCallOptions> {
  /** Every request so far. Tasks of runs come without the note that says when they started. */
  readonly requests: ScriptedRequest[] = [];
  private readonly reply: ScriptedReplyFunction;

  constructor(reply: ScriptedReplyFunction) {
    super({ maxRetries: 0 });
    this.reply = reply;
  }

  override _llmType(): string {
    return "scripted";
  }

  override bindTools(
    tools: BindToolsInput[],
    options?: Partial<ScriptedCallOptions>,
  ): Runnable<BaseLanguageModelInput, AIMessageChunk, ScriptedCallOptions> {
    return this.withConfig({ ...options, tools });
  }

  override async _generate(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    const { text, toolCalls, usage, model } = await this.next(messages, options);
    await runManager?.handleLLMNewToken(text);
    const message = new AIMessage({
      content: text,
      tool_calls: toolCalls.map((call) => ({ ...call, type: "tool_call" as const })),
      usage_metadata: usage,
      response_metadata: { model_name: model },
    });
    return { generations: [{ text, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, toolCalls, usage, model, pause } = await this.next(messages, options);
    for (const piece of text.match(/\s*\S+\s*/g) ?? []) {
      const chunk = new ChatGenerationChunk({ text: piece, message: new AIMessageChunk({ content: piece }) });
      yield chunk;
      await runManager?.handleLLMNewToken(piece, undefined, undefined, undefined, undefined, { chunk });
      await pause;
    }
    for (const [index, call] of toolCalls.entries()) {
      for (const part of toolCallParts(call, index)) {
        const chunk = new ChatGenerationChunk({
          text: "",
          message: new AIMessageChunk({ content: "", tool_call_chunks: [part] }),
        });
        yield chunk;
        await runManager?.handleLLMNewToken("", undefined, undefined, undefined, undefined, { chunk });
      }
    }
    yield new ChatGenerationChunk({
      text: "",
      message: new AIMessageChunk({
        content: "",
        usage_metadata: usage,
        response_metadata: { model_name: model },
      }),
    });
  }

  private async next(
    messages: BaseMessage[],
    options: this["ParsedCallOptions"],
  ): Promise<{
    text: string;
    toolCalls: Required<ScriptedToolCall>[];
    usage: UsageMetadata;
    model: string;
    pause: Promise<unknown> | undefined;
  }> {
    const signal = options.signal;
    signal?.throwIfAborted();
    const request: ScriptedRequest = {
      messages: messages.map(withoutStartNote),
      tools: (options.tools ?? []).map(toolName),
      toolChoice: options.tool_choice,
      call: this.requests.length,
      ...(signal === undefined ? {} : { signal }),
    };
    this.requests.push(request);
    const reply = await this.reply(request);
    if (reply.delayMs !== undefined) await delay(reply.delayMs, undefined, { signal });
    signal?.throwIfAborted();
    return {
      text: reply.text ?? "",
      toolCalls: (reply.toolCalls ?? []).map((call, index) => ({
        id: call.id ?? `call_${request.call}_${index}`,
        name: call.name,
        args: call.args,
      })),
      usage: usageMetadata(reply.usage ?? { inputTokens: 10, outputTokens: 5 }),
      model: reply.model ?? "scripted",
      pause: reply.pause,
    };
  }
}

export function scriptedModel(reply: ScriptedReplyFunction): ScriptedModel {
  return new ScriptedModel(reply);
}

/** Makes these calls in its first reply, and ends with the next one. */
export const callingOnce = (...toolCalls: ScriptedToolCall[]): ScriptedModel =>
  scriptedModel(({ call }) => (call === 0 ? { toolCalls } : { text: "end" }));

/** Answers one step per call, whoever calls; a call after the last step throws. */
export function scriptedSteps(steps: readonly (ScriptedReply | ScriptedReplyFunction)[]): ScriptedModel {
  return new ScriptedModel((request) => {
    const step = steps[request.call];
    if (step === undefined)
      throw new Error(`the script has ${steps.length} steps, call ${request.call} came`);
    return typeof step === "function" ? step(request) : step;
  });
}

/** Scripts compare and parse tasks as they were given. */
function withoutStartNote(message: BaseMessage): BaseMessage {
  const { content } = message;
  if (!HumanMessage.isInstance(message) || typeof content !== "string" || !START_NOTE.test(content))
    return message;
  return copyMessage(message, { content: content.replace(START_NOTE, "") });
}

function toolName(tool: BindToolsInput): string {
  if ("name" in tool && typeof tool.name === "string") return tool.name;
  if ("function" in tool) {
    const { function: definition } = tool;
    if (typeof definition === "object" && definition !== null && "name" in definition) {
      return String(definition.name);
    }
  }
  return "(unnamed)";
}

/** The call as providers stream it: id and name first, then the arguments in pieces. */
function toolCallParts(call: Required<ScriptedToolCall>, index: number): ToolCallPart[] {
  const json = JSON.stringify(call.args);
  const half = Math.ceil(json.length / 2);
  return [
    { type: "tool_call_chunk", index, id: call.id, name: call.name, args: "" },
    { type: "tool_call_chunk", index, args: json.slice(0, half) },
    { type: "tool_call_chunk", index, args: json.slice(half) },
  ];
}

interface ToolCallPart {
  type: "tool_call_chunk";
  index: number;
  id?: string;
  name?: string;
  args: string;
}

function usageMetadata(usage: NonNullable<ScriptedReply["usage"]>): UsageMetadata {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    ...(usage.cachedInputTokens === undefined
      ? {}
      : { input_token_details: { cache_read: usage.cachedInputTokens } }),
  };
}
