import { SystemMessage } from "@langchain/core/messages";
import { ConfigurationError } from "../core/errors.ts";
import { joinSystem } from "./middleware/middleware.ts";

/** Where the parts of a system prompt stand around the built-in one. */
export interface SystemPromptParts {
  prefix?: string | SystemMessage | null;
  /** In the place of the built-in prompt; `null`: nothing. */
  base?: string | SystemMessage | null;
  suffix?: string | SystemMessage | null;
}

export type SystemPrompt = string | SystemMessage | SystemPromptParts;

/**
 * The system prompt of an agent without what its layers add: the caller's, and `builtIn` behind it.
 *
 * @throws ConfigurationError `INVALID_SYSTEM_PROMPT`.
 */
export function systemMessage(prompt: SystemPrompt | undefined, builtIn: string): SystemMessage {
  const { prefix, base = builtIn, suffix } = partsOf(prompt ?? "");
  return [base, suffix].reduce<SystemMessage>(
    (message, part) => (isEmpty(part) ? message : joinSystem(message, messageOf(part))),
    messageOf(prefix ?? ""),
  );
}

const isEmpty = (part: unknown): part is null | undefined | "" => (part ?? "") === "";

function partsOf(prompt: SystemPrompt): SystemPromptParts {
  if (typeof prompt !== "object" || SystemMessage.isInstance(prompt)) return { prefix: prompt };
  const unknown = Object.keys(prompt).find((name) => !PARTS.includes(name));
  if (unknown === undefined) return prompt;
  throw new ConfigurationError(
    "INVALID_SYSTEM_PROMPT",
    `\`systemPrompt\` has no part '${unknown}'; its parts are ${PARTS.join(", ")}.`,
  );
}

const PARTS: readonly string[] = ["prefix", "base", "suffix"];

/** `prompt` may be anything that callers without types pass. */
function messageOf(prompt: unknown): SystemMessage {
  if (typeof prompt === "string") return new SystemMessage(prompt);
  if (SystemMessage.isInstance(prompt)) return prompt;
  throw new ConfigurationError("INVALID_SYSTEM_PROMPT", "`systemPrompt` is a text or a SystemMessage.");
}
