import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import type { AIMessage } from "@langchain/core/messages";

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

/** `reply` with the name of the model that gave it; streamed answers leave it out. */
export function answeredBy(reply: AIMessage, model: BaseChatModel): AIMessage {
  const { model_name: named, model: told } = reply.response_metadata;
  if (named === undefined && told === undefined) reply.response_metadata["model_name"] = modelName(model);
  return reply;
}
