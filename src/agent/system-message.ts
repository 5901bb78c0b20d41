import { SystemMessage } from "@langchain/core/messages";
import { ConfigurationError } from "../core/errors.ts";
import { joinSystem } from "./middleware/middleware.ts";

/**
 * The system prompt of an agent without what its layers add: the caller's, and `builtIn` behind it.
 *
 * @throws ConfigurationError `INVALID_SYSTEM_PROMPT`.
 */
export function systemMessage(prompt: string | SystemMessage | undefined, builtIn: string): SystemMessage {
  const own = messageOf(prompt ?? "");
  return own.content === "" ? new SystemMessage(builtIn) : joinSystem(own, builtIn);
}

function messageOf(prompt: string | SystemMessage): SystemMessage {
  if (typeof prompt === "string") return new SystemMessage(prompt);
  if (SystemMessage.isInstance(prompt)) return prompt;
  throw new ConfigurationError("INVALID_SYSTEM_PROMPT", "`systemPrompt` is a text or a SystemMessage.");
}
