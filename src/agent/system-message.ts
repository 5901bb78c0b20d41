import { SystemMessage } from "@langchain/core/messages";
import { ConfigurationError } from "../core/errors.ts";
import { joinSystem } from "./middleware/middleware.ts";
import { BASE_PROMPT } from "./prompts.ts";

/**
 * The system prompt of an agent without what its layers add; that of a main agent has the built-in one behind
 * the caller's.
 *
 * @throws ConfigurationError `INVALID_SYSTEM_PROMPT`.
 */
export function systemMessage(prompt: string | SystemMessage | undefined, nested: boolean): SystemMessage {
  const own = messageOf(prompt ?? "");
  if (nested) return own;
  return own.content === "" ? new SystemMessage(BASE_PROMPT) : joinSystem(own, BASE_PROMPT);
}

function messageOf(prompt: string | SystemMessage): SystemMessage {
  if (typeof prompt === "string") return new SystemMessage(prompt);
  if (SystemMessage.isInstance(prompt)) return prompt;
  throw new ConfigurationError("INVALID_SYSTEM_PROMPT", "`systemPrompt` is a text or a SystemMessage.");
}
