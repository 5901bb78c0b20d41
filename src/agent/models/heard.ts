/** Passes on the text of a model call while it is written, without thoughts and calls that are written as text. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { RunnableConfig } from "@langchain/core/runnables";
import { VisibleText } from "./text-reply.ts";

/** The callbacks of one try of a call. `before`: the text that it continues. */
export function heard(
  say: ((text: string) => void) | undefined,
  before: string,
  { callbacks }: Pick<RunnableConfig, "callbacks">,
): Pick<RunnableConfig, "callbacks"> {
  if (say === undefined) return {};
  say(before);
  const visible = new VisibleText(before);
  let said = before;
  const methods = BaseCallbackHandler.fromMethods({
    handleLLMNewToken(token, _index, _run, _parent, _tags, fields) {
      const chunk = fields?.chunk;
      // Parts of thoughts and calls are tokens too, and no text.
      const piece = chunk !== undefined && "message" in chunk ? chunk.message.text : token;
      const text = piece === "" ? "" : visible.add(piece);
      if (text === "" || text.length === said.length) return;
      said = text;
      say(text);
    },
  });
  const listener = Object.assign(methods, {
    name: "deepagent_heard",
    lc_prefer_streaming: true,
    awaitHandlers: true,
  });
  if (callbacks === undefined) return { callbacks: [listener] };
  return {
    callbacks: Array.isArray(callbacks) ? [...callbacks, listener] : callbacks.copy([listener], false),
  };
}
