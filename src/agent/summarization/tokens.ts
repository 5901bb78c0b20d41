import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { isInteropZodSchema } from "@langchain/core/utils/types";
import { toJsonSchema } from "@langchain/core/utils/json_schema";

const CHARS_PER_TOKEN = 4;

/** About what providers count for an image; media are not counted by the length of their data. */
const MEDIA_TOKENS = 1600;
const MEDIA: ReadonlySet<string> = new Set(["image", "image_url", "audio", "video", "file", "document"]);
type Block = Exclude<BaseMessage["content"], string>[number];

export const isMedia = ({ type }: Block): boolean => MEDIA.has(type);

/** What a block of media is called where it cannot be shown: its MIME type, or its kind. */
export function mediaName(block: Block): string {
  const type: unknown = block["mimeType"] ?? block["mime_type"];
  return typeof type === "string" ? type : block.type;
}

/** Calls in a provider's own form, which the message has in ours too. */
const CALLS: ReadonlySet<string> = new Set(["tool_use", "tool_call", "function_call", "input_json_delta"]);

/** Counts each message, each tool and each system prompt once, however often it is sent. */
export class TokenCounter {
  readonly #count: (text: string) => number;
  readonly #known = new WeakMap<object, number>();
  #prompt = { text: "", tokens: 0 };

  /** Default: about four characters a token. */
  constructor(count: (text: string) => number = (text) => Math.ceil(text.length / CHARS_PER_TOKEN)) {
    this.#count = count;
  }

  of(message: BaseMessage): number {
    return this.#once(message, () => this.#ofMessage(message));
  }

  ofAll(messages: readonly BaseMessage[]): number {
    return messages.reduce((sum, message) => sum + this.of(message), 0);
  }

  ofTools(tools: readonly StructuredToolInterface[]): number {
    return tools.reduce((sum, tool) => sum + this.#once(tool, () => this.#count(toolText(tool))), 0);
  }

  ofPrompt(text: string): number {
    if (this.#prompt.text !== text) this.#prompt = { text, tokens: this.#count(text) };
    return this.#prompt.tokens;
  }

  #once(item: object, count: () => number): number {
    let tokens = this.#known.get(item);
    if (tokens === undefined) this.#known.set(item, (tokens = count()));
    return tokens;
  }

  #ofMessage(message: BaseMessage): number {
    const { content } = message;
    const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
    const said =
      typeof content === "string"
        ? this.#count(content)
        : content.reduce((sum, block) => sum + this.#ofBlock(block), 0);
    return said + (calls.length === 0 ? 0 : this.#count(JSON.stringify(calls)));
  }

  #ofBlock(block: Block): number {
    if (CALLS.has(block.type)) return 0;
    if (isMedia(block)) return MEDIA_TOKENS;
    return this.#count(typeof block["text"] === "string" ? block["text"] : JSON.stringify(block));
  }
}

/** What a model is told of a tool, about as providers write it. */
export function toolText({ name, description, schema }: StructuredToolInterface): string {
  return `${name}\n${description}\n${JSON.stringify(parametersOf(schema))}`;
}

function parametersOf(schema: StructuredToolInterface["schema"]): unknown {
  if (!isInteropZodSchema(schema)) return schema;
  try {
    return toJsonSchema(schema);
  } catch {
    return {}; // a schema that has no such form is for whoever binds the tool to refuse
  }
}

/** What is counted with where no tokenizer is given. */
export const ESTIMATE = new TokenCounter();

export const tokensOf = (message: BaseMessage): number => ESTIMATE.of(message);
