/** Passes on the text of a model call while it is written, without thoughts and calls that are written as text. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { RunnableConfig } from "@langchain/core/runnables";
import { VisibleText } from "./text-reply.ts";

/** A handler that makes models stream each answer, also one that is asked for in one piece. */
export const streamingHandler = (
  name: string,
  methods: Parameters<typeof BaseCallbackHandler.fromMethods>[0],
): BaseCallbackHandler =>
  Object.assign(BaseCallbackHandler.fromMethods(methods), {
    name,
    lc_prefer_streaming: true,
    awaitHandlers: true,
  });

/** The callbacks of one try of a call. `before`: the text that it continues. */
export function heard(
  say: ((text: string) => void) | undefined,
  before: string,
  { callbacks = [] }: Pick<RunnableConfig, "callbacks">,
): Pick<RunnableConfig, "callbacks"> {
  if (say === undefined) return {};
  say(before);
  const visible = new VisibleText(before);
  let said = before;
  const listener = streamingHandler("deepagent_heard", {
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
  return {
    callbacks: Array.isArray(callbacks) ? [...callbacks, listener] : callbacks.copy([listener], false),
  };
}
