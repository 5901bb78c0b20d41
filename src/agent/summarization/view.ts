import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { headOf } from "../../core/text.ts";
import { copyMessage } from "../copy-message.ts";
import { messagePreview, resultPreview, withText } from "../eviction.ts";
import { textOf } from "../message-text.ts";
import { isMedia, mediaName } from "./tokens.ts";

/** What was compacted in a thread; the messages themselves stay in its state. */
export interface Compaction {
  /** Id of the first message that the model still sees as it is. */
  keptFrom?: string;
  /** What stands for everything before it. */
  summary?: string;
  /** Id of the first message whose long arguments are shown in full. */
  fullFrom?: string;
  /** Files with the texts of single messages that alone were too long, by `keyOf` the message. */
  moved?: Readonly<Record<string, string>>;
  /** Messages whose images and documents are not shown, by `keyOf` the message. */
  withoutMedia?: readonly string[];
  /** Id of the first message that the history file does not have. */
  savedUpTo?: string;
  /** Tokens from which on it is tried again, after an attempt that did not help enough. */
  waitUntil?: number;
}

const LONG_ARGUMENT = 2000;
const SHORTENED = ["content", "old_string", "new_string"] as const;
/** Longest line of what is left of a moved text: there is hardly any room then. */
const MOVED_LINE_CHARS = 200;

/** The messages as the model sees them after what was compacted so far. */
export function compactedView(messages: BaseMessage[], compaction: Compaction): BaseMessage[] {
  const kept = sinceId(messages, compaction.keptFrom);
  const full = kept.findIndex(({ id }) => id !== undefined && id === compaction.fullFrom);
  const shortened =
    full <= 0 ? kept : kept.map((message, i) => (i < full ? shortenArguments(message) : message));
  const { moved, withoutMedia } = compaction;
  const texts = moved ? shortened.map((message) => withMovedText(message, moved)) : shortened;
  const bare = new Set(withoutMedia);
  const shown = withoutMedia
    ? texts.map((message) => (bare.has(keyOf(message) ?? "") ? mediaLeftOut(message) : message))
    : texts;
  if (compaction.summary === undefined || kept === messages) return shown;
  return [summaryMessage(compaction.summary), ...shown];
}

/** `messages` from the one with this id on; all of them when it is not there. */
export function sinceId(messages: BaseMessage[], id: string | undefined): BaseMessage[] {
  const index = id === undefined ? -1 : messages.findIndex((message) => message.id === id);
  return index <= 0 ? messages : messages.slice(index);
}

/** What a message whose text can be moved is known by: results have no id of their own. */
export function keyOf(message: BaseMessage): string | undefined {
  if (ToolMessage.isInstance(message)) return message.tool_call_id;
  return HumanMessage.isInstance(message) ? message.id : undefined;
}

/** A message as it is shown when its text is in a file. */
export function movedText(message: BaseMessage, path: string): string {
  const text = textOf(message);
  return ToolMessage.isInstance(message)
    ? resultPreview(message.name ?? "tool", text, path, MOVED_LINE_CHARS)
    : messagePreview(text, path, MOVED_LINE_CHARS);
}

const movedOf = new WeakMap<BaseMessage, { path: string; short: BaseMessage }>();

function withMovedText(message: BaseMessage, moved: Readonly<Record<string, string>>): BaseMessage {
  const key = keyOf(message);
  const path = key === undefined || !Object.hasOwn(moved, key) ? undefined : moved[key];
  if (path === undefined) return message;
  const known = movedOf.get(message);
  if (known?.path === path) return known.short;
  const short = copyMessage(message, { content: withText(message.content, movedText(message, path)) });
  movedOf.set(message, { path, short });
  return short;
}

const bareOf = new WeakMap<BaseMessage, BaseMessage>();

function mediaLeftOut(message: BaseMessage): BaseMessage {
  let bare = bareOf.get(message);
  if (!bare) bareOf.set(message, (bare = copyMessage(message, { content: bareContent(message.content) })));
  return bare;
}

function bareContent(content: BaseMessage["content"]): BaseMessage["content"] {
  if (typeof content === "string") return content;
  return content.map((block) =>
    isMedia(block)
      ? { type: "text", text: `[${mediaName(block)} left out: with it the conversation is too long to read]` }
      : block,
  );
}

const shortenedOf = new WeakMap<BaseMessage, BaseMessage>();

/** A reply whose long file contents in tool arguments are cut; ids and everything else stay. */
function shortenArguments(message: BaseMessage): BaseMessage {
  if (!AIMessage.isInstance(message)) return message;
  const known = shortenedOf.get(message);
  if (known) return known;
  const calls = message.tool_calls ?? [];
  const shorter = calls.map((call) => ({ ...call, args: shortArgs(call.args) }));
  const changed = shorter.some((call, i) => call.args !== calls[i]?.args);
  const result = changed ? replaceCalls(message, shorter) : message;
  shortenedOf.set(message, result);
  return result;
}

function shortArgs(args: Record<string, unknown>): Record<string, unknown> {
  const long = SHORTENED.filter((key) => {
    const value = args[key];
    return typeof value === "string" && value.length > LONG_ARGUMENT;
  });
  if (long.length === 0) return args;
  const cut = long.map((key) => {
    const value = String(args[key]);
    return [key, `${headOf(value, 200)}\n[… shortened here; ${value.length} characters were passed]`];
  });
  return { ...args, ...Object.fromEntries(cut) };
}

/** Providers may repeat a call as a content block: the block is cut the same way. */
function replaceCalls(message: AIMessage, calls: NonNullable<AIMessage["tool_calls"]>): BaseMessage {
  const argsById = new Map(calls.map(({ id, args }) => [id, args]));
  const content =
    typeof message.content === "string"
      ? message.content
      : message.content.map((block) =>
          block.type === "tool_use" && typeof block["id"] === "string" && argsById.has(block["id"])
            ? { ...block, input: argsById.get(block["id"]) }
            : block,
        );
  return copyMessage(message, { content, tool_calls: calls });
}

function summaryMessage(summary: string): HumanMessage {
  return new HumanMessage({ content: summary, additional_kwargs: { lc_source: "summarization" } });
}
