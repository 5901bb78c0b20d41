import type { BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { sanitizeToolCallId } from "../backends/paths.ts";
import { headOf, tailOf } from "../core/text.ts";
import { wholeTextOf } from "./agent-tool.ts";
import { copyMessage } from "./copy-message.ts";
import { type KeepingPlace, keepText, type Kept, RESULTS_FOLDER } from "./kept-files.ts";
import { isPerson } from "./message-kind.ts";
import { textOf } from "./message-text.ts";

const PREVIEW_LINES = 10;
const PREVIEW_LINE_CHARS = 1000;
const CHARS_PER_TOKEN = 4;

/**
 * Moves the text of a tool message that exceeds `tokens` (about four characters each), or the longer text that it
 * stands for, into a file, and leaves a preview and the file's path in its place. Blocks other than text stay in the
 * message. Where the text cannot be kept, as much of it stays as fits.
 *
 * @returns where it was moved; `undefined` when nothing was.
 */
export async function evictLargeResult(
  message: ToolMessage,
  place: KeepingPlace,
  tokens: number,
): Promise<Kept | undefined> {
  const own = textOf(message);
  const { text, end } = wholeTextOf(message) ?? { text: own, end: "" };
  const kept = await keepText(`${RESULTS_FOLDER}/${sanitizeToolCallId(message.tool_call_id)}`, text, place);
  const below = end === "" ? "" : `\n\n${end}`;
  message.content = withText(
    message.content,
    kept
      ? resultPreview(message.name ?? "tool", text, kept.path) + below
      : `${headOf(own, tokens * CHARS_PER_TOKEN)}\n[result cut: could not be saved]${below}`,
  );
  return kept;
}

/** Whether the text of a result belongs into a file. */
export const isTooLarge = (message: ToolMessage, tokens: number): boolean =>
  wholeTextOf(message) !== undefined || isLarge(message, tokens);

/** Whether a message exceeds `tokens`, of about four characters each. */
const isLarge = (message: BaseMessage, tokens: number): boolean =>
  textOf(message).length > tokens * CHARS_PER_TOKEN;

/** What stands for a result that is in a file: how it begins, and how to read the rest. */
export function resultPreview(
  tool: string,
  text: string,
  path: string,
  lineChars: number = PREVIEW_LINE_CHARS,
): string {
  const lines = text.split("\n", PREVIEW_LINES).map((line) => headOf(line, lineChars));
  return `The result of ${tool} is too large to show (${text.length} characters). It is saved in ${path}. It begins:

${lines.join("\n")}

Read more of it with read_file and its offset and limit, or search it with grep.`;
}

/** What stands for a person's message that is in a file: how it begins and ends, where the request often is. */
export function messagePreview(text: string, path: string, lineChars: number = PREVIEW_LINE_CHARS): string {
  const lines = text.split("\n");
  const shown = Math.min(PREVIEW_LINES, Math.max(Math.floor(lines.length / 2), 1));
  const head = lines.slice(0, shown).map((line) => headOf(line, lineChars));
  const tail = lines.slice(-shown).map((line) => tailOf(line, lineChars));
  return `${head.join("\n")}

[The middle of this message is left out here. All of it (${text.length} characters) is saved in ${path}: read what you need with read_file and its offset and limit, or search it with grep, before you act on it. The message ends:]

${tail.join("\n")}`;
}

/** Key in `additional_kwargs` of a message whose text is in a file; deepagents marks them by it too. */
const EVICTED_TO = "lc_evicted_to";

/** Whether a message stands for one whose text is in a file. */
export const isEvicted = ({ additional_kwargs: marks }: BaseMessage): boolean => EVICTED_TO in marks;

/** Messages of persons that exceed `tokens` (about four characters each) and were not moved yet. */
export function largeMessages(messages: readonly BaseMessage[], tokens: number): HumanMessage[] {
  return messages.filter(
    (message): message is HumanMessage =>
      isPerson(message) && message.id !== undefined && isLarge(message, tokens) && !isEvicted(message),
  );
}

/**
 * Moves the text of a person's message into a file below `folder`: what it gives back has the same id, stands
 * for the message from now on, and always has the same bytes. Blocks other than text stay in it.
 *
 * @returns `undefined` when the text could not be kept, or is no longer than what would stand for it.
 */
export async function evictLargeMessage(
  message: HumanMessage,
  place: KeepingPlace,
  folder: string,
): Promise<{ message: BaseMessage; kept: Kept } | undefined> {
  const text = textOf(message);
  const wanted = `${folder}/message-${sanitizeToolCallId(message.id ?? "")}.md`;
  if (messagePreview(text, wanted).length >= text.length) return undefined;
  const kept = await keepText(wanted, text, place);
  if (!kept) return undefined;
  const content = withText(message.content, messagePreview(text, kept.path));
  const additional_kwargs = { ...message.additional_kwargs, [EVICTED_TO]: kept.path };
  return { message: copyMessage(message, { content, additional_kwargs }), kept };
}

/** Content with `text` in the place of all its text. */
export function withText(content: BaseMessage["content"], text: string): BaseMessage["content"] {
  if (typeof content === "string") return text;
  return [{ type: "text", text }, ...content.filter((block) => block.type !== "text")];
}
