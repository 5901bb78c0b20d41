/** Passes on the text of a model call while it is written, without thoughts and calls that are written as text. */
import { BaseCallbackHandler, type HandleLLMNewTokenCallbackFields } from "@langchain/core/callbacks/base";
import type { RunnableConfig } from "@langchain/core/runnables";
import { VisibleText } from "./text-reply.ts";

class Listener extends BaseCallbackHandler {
  override readonly name: string = "deepagent_heard";
  readonly lc_prefer_streaming: boolean = true;
  override awaitHandlers = true;
  readonly #say: (text: string) => void;
  readonly #visible: VisibleText;
  #text: string;

  constructor(say: (text: string) => void, before: string) {
    super();
    this.#say = say;
    this.#visible = new VisibleText(before);
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
    const text = this.#visible.add(piece);
    if (text === "" || text.length === this.#text.length) return;
    this.#text = text;
    this.#say(text);
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
