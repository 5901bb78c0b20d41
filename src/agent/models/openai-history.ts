import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { copyMessage } from "../copy-message.ts";

type Blocks = Exclude<BaseMessage["content"], string>;
type Block = Blocks[number];

/** What Anthropic's replies hold besides text; OpenAI's package passes some of it on, which is refused. */
const ANTHROPIC_ONLY: ReadonlySet<string> = new Set([
  "thinking",
  "redacted_thinking",
  "tool_use",
  "server_tool_use",
  "input_json_delta",
]);

export const isOpenAi = (model: BaseChatModel): boolean => model._llmType().includes("openai");

/**
 * Messages as OpenAI takes them, whoever made them: replies without another provider's blocks, and tool
 * results as text, each group of them followed by the media that were in it. A message that needs no change
 * stays the same object.
 */
export function openAiHistory(messages: BaseMessage[]): BaseMessage[] {
  const history: BaseMessage[] = [];
  let media: Blocks = [];
  for (const message of messages) {
    if (!ToolMessage.isInstance(message) && media.length > 0) {
      history.push(mediaMessage(media));
      media = [];
    }
    const { content } = message;
    if (typeof content === "string") history.push(message);
    else if (ToolMessage.isInstance(message)) {
      history.push(withoutMedia(message, content));
      media.push(...content.filter(isMedia).map(toOpenAi));
    } else history.push(AIMessage.isInstance(message) ? withoutForeign(message, content) : message);
  }
  if (media.length > 0) history.push(mediaMessage(media));
  return history;
}

const isMedia = ({ type }: Block): boolean => type !== "text";

const mediaMessage = (media: Blocks): HumanMessage =>
  new HumanMessage({ content: [{ type: "text", text: "[Media of the results above]" }, ...media] });

function withoutMedia(message: ToolMessage, content: Blocks): BaseMessage {
  if (!content.some(isMedia)) return message;
  return copyMessage(message, { content: message.text === "" ? "[See the media below.]" : message.text });
}

function withoutForeign(message: AIMessage, content: Blocks): BaseMessage {
  const own = content.filter(({ type }) => !ANTHROPIC_ONLY.has(type));
  return own.length === content.length
    ? message
    : copyMessage(message, { content: own.length > 0 ? own : "" });
}

/** A block of ours in the form that OpenAI's package turns into the provider's, for both of its APIs. */
function toOpenAi(block: Block): Block {
  const { type, mimeType, data, metadata } = block as Record<string, unknown>; // of whichever tool
  if (typeof mimeType !== "string" || typeof data !== "string") return block;
  if (/^image\/(png|jpeg|gif|webp)$/.test(mimeType))
    return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
  if (mimeType !== "application/pdf")
    return { type: "text", text: `[${String(type)} of type ${mimeType}, which this model cannot take]` };
  const named = { filename: "file.pdf", ...(metadata as object | undefined) };
  return { type: "file", source_type: "base64", mime_type: mimeType, data, metadata: named };
}
