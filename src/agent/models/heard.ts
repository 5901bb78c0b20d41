/** Passes on the text of a model call while it is written. */
import { BaseCallbackHandler, type HandleLLMNewTokenCallbackFields } from "@langchain/core/callbacks/base";
import type { RunnableConfig } from "@langchain/core/runnables";

class Listener extends BaseCallbackHandler {
  override readonly name: string = "deepagent_heard";
  readonly lc_prefer_streaming: boolean = true;
  override awaitHandlers = true;
  readonly #say: (text: string) => void;
  #text: string;

  constructor(say: (text: string) => void, before: string) {
    super();
    this.#say = say;
    this.#text = before;
  }

  override handleLLMNewToken(
    token: string,
    ...[, , , , fields]: [unknown?, unknown?, unknown?, unknown?, HandleLLMNewTokenCallbackFields?]
  ): void {
    const chunk = fields?.chunk;
    // Parts of thoughts and calls are tokens too, and no text.
    const piece = chunk !== undefined && "message" in chunk ? chunk.message.text : token;
    if (piece === "") return;
    this.#text += piece;
    this.#say(this.#text);
  }
}

/** The callbacks of one try of a call. `before`: the text that it continues. */
export function heard(
  say: ((text: string) => void) | undefined,
  before: string,
  { callbacks }: Pick<RunnableConfig, "callbacks">,
): Pick<RunnableConfig, "callbacks"> {
  if (say === undefined) return {};
  say(before);
  const listener = new Listener(say, before);
  if (callbacks === undefined) return { callbacks: [listener] };
  return {
    callbacks: Array.isArray(callbacks) ? [...callbacks, listener] : callbacks.copy([listener], false),
  };
}
