/** System prompts, put together from the parts of an agent and its layers. */
import { SystemMessage } from "@langchain/core/messages";
import type { ModelRequest } from "../contracts/middleware.ts";
import { textOf, toBlocks } from "./messages.ts";

/** Adds text to the end of the system prompt, after a blank line. */
export function appendSystemPrompt(request: ModelRequest, text: string): ModelRequest {
  const systemMessage = joinSystem(request.systemMessage, text);
  return { ...request, systemMessage, systemPrompt: textOf(systemMessage) };
}

/** The last text joined to a message, and the result: the prompts of an agent are the same on every call. */
const lastJoined = new WeakMap<SystemMessage, { text: string | SystemMessage; result: SystemMessage }>();

/** `message` followed by `text`: after a blank line where both are texts, else as further blocks. */
export function joinSystem(message: SystemMessage, text: string | SystemMessage): SystemMessage {
  const known = lastJoined.get(message);
  if (known?.text === text) return known.result;
  const { content } = message;
  const added = typeof text === "string" ? text : text.content;
  const result =
    typeof content === "string" && typeof added === "string"
      ? new SystemMessage(content === "" ? added : `${content}\n\n${added}`)
      : new SystemMessage({ content: [...toBlocks(content), ...toBlocks(added)] });
  lastJoined.set(message, { text, result });
  return result;
}
