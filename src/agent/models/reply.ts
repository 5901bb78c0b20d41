import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";
import { oneLine } from "../../core/text.ts";
import { textOf } from "../message-text.ts";
import { type AgentLimits, costOf, reportedModel } from "../limits/limits.ts";
import { type Scope, agentPath, emit } from "../step.ts";

/** What OpenAI's responses API repeats of the request in every answer. */
const REPEATED = ["instructions", "tools", "input"];

/**
 * `reply` without the parts of the request that came back with it. Kept in every message of a thread, the
 * system prompt and all tool schemas would be most of what is stored.
 */
export function withoutRequest(reply: AIMessage): AIMessage {
  for (const key of REPEATED) delete reply.response_metadata[key];
  return reply;
}

/** What a provider's package calls the model; its kind where it says nothing. */
export function modelName(model: BaseChatModel): string {
  const name: unknown = Reflect.get(model, "model") ?? Reflect.get(model, "modelName");
  return typeof name === "string" && name !== "" ? name : model._llmType();
}

/** The word by which a provider says why a reply ended; each names the field in its own way. */
export function finishReasonOf({
  response_metadata: told,
  additional_kwargs,
}: AIMessage): string | undefined {
  const { reason } = (told["incomplete_details"] ?? {}) as { reason?: unknown }; // OpenAI's responses API
  const { stop_reason, finish_reason, stopReason, finishReason, done_reason } = told;
  // Anthropic's package keeps the reason of a streamed reply elsewhere.
  const streamed = additional_kwargs["stop_reason"];
  const said: unknown[] = [
    stop_reason,
    finish_reason,
    streamed,
    reason,
    stopReason,
    finishReason,
    done_reason,
  ];
  return said.find((word) => typeof word === "string" && word !== "") as string | undefined; // as it was asked for
}

const CUT = /^(?:max_?tokens|max_output_tokens|length|model_length|model_context_window_exceeded)$/i;

/** Whether a reply ended because it was as long as the model may answer, and not because it was whole. */
export const isCut = (reply: AIMessage): boolean => CUT.test(finishReasonOf(reply) ?? "");

/** `reply` with the name of the model that gave it; streamed answers leave it out. */
export function answeredBy(reply: AIMessage, model: BaseChatModel): AIMessage {
  const { model_name: named, model: told } = reply.response_metadata;
  if (named === undefined && told === undefined) reply.response_metadata["model_name"] = modelName(model);
  return reply;
}

/** Tells who watches of a model call, with its tokens and, where it is known, its price. */
export function emitModelCalled(
  reply: AIMessage,
  scope: Scope,
  { prices, purpose }: { prices: AgentLimits["prices"]; purpose?: "summary" },
): void {
  const used = reply.usage_metadata;
  const costUsd = costOf(reply, prices);
  emit(scope, {
    kind: "model_called",
    agent: agentPath(scope),
    model: reportedModel(reply),
    usage: {
      inputTokens: used?.input_tokens ?? 0,
      outputTokens: used?.output_tokens ?? 0,
      cachedInputTokens: used?.input_token_details?.cache_read ?? 0,
    },
    text: purpose === undefined ? oneLine(textOf(reply), 300) : "",
    ...(costUsd === undefined ? {} : { costUsd }),
    ...(purpose === undefined ? {} : { purpose }),
  });
}
