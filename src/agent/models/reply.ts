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
