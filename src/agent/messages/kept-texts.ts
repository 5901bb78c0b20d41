/** Moves texts that are too large for the conversation into files, and shows how they begin. */
import { createHash } from "node:crypto";
import { BaseMessage, type HumanMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import type { Backend, Failure, FileInfo, FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { parseContent } from "../../backends/file-data.ts";
import { isAtOrBelow, sanitizeToolCallId, validatePath } from "../../backends/paths.ts";
import { sortByPath } from "../../backends/search.ts";
import { wrapBackend } from "../../backends/checked-backend.ts";
import { StateBackend } from "../../backends/stores/state.ts";
import { headOf, tailOf, wellFormed } from "../../core/text.ts";
import type { CallResult } from "../contracts/middleware.ts";
import { copyMessage, isHuman, textIn, textOf, callsOf, isResult } from "./messages.ts";
import { defined } from "../../core/unknown.ts";

/** Folder for results that are too large for the conversation. */
export const RESULTS_FOLDER = "/large_tool_results";
/** Folder for messages of persons that are too large, and for summarized messages. */
export const HISTORY_FOLDER = "/conversation_history";

/** Places for the texts of one call: the agent's files, and those of its thread. */
export interface KeepingPlace {
  readonly backend: Backend;
  readonly files: ThreadFiles;
}

/** The path of a text, and the change of the thread's files, if it is one of them. */
export interface Kept {
  path: string;
  update: FilesUpdate;
}

/**
 * Writes a text that leaves the conversation; another one never takes its place. If the agent's backend rejects it, it
 * stays with the thread under the same path, where `withKeptFiles` shows it. Returns undefined if it was not written.
 */
export async function keepText(
  wanted: string,
  given: string,
  place: KeepingPlace,
): Promise<Kept | undefined> {
  const text = wellFormed(given);
  for (const backend of placesFor(wanted, place)) {
    const before = await readKeptText(wanted, backend);
    // Two calls or messages may go by one id; each content has a file of its own.
    const mark = () => createHash("sha256").update(text).digest("hex").slice(0, 12);
    const isFree = before === undefined || before === text;
    const path = isFree ? wanted : wanted.replace(/(?:\.md)?$/, (end) => `-${mark()}${end}`);
    const written = await backend.write(path, text, { mode: "overwrite" });
    if (written.error === undefined) return { path, update: written.filesUpdate ?? {} };
  }
  return undefined;
}

/** Part of a file that grows, with a line that ends it and no other. */
export interface MarkedPart {
  text: string;
  mark: string;
}

/** Like `keepText`, but appends missing parts to a file, which may exist though a crash lost its record. */
export async function appendParts(
  path: string,
  parts: readonly MarkedPart[],
  place: KeepingPlace,
): Promise<Kept | undefined> {
  for (const backend of placesFor(path, place)) {
    const before = await readKeptText(path, backend);
    const known = new Set(before?.split("\n"));
    const missing = parts.filter(({ mark }) => !known.has(mark));
    if (missing.length === 0 && before !== undefined) return { path, update: {} };
    const texts = missing.map(({ text, mark }) => `${wellFormed(text)}\n${mark}\n`);
    const whole = [...(before === undefined ? [] : [before]), ...texts].join("\n");
    const written = await backend.write(path, whole, { mode: "overwrite" });
    if (written.error === undefined) return { path, update: written.filesUpdate ?? {} };
  }
  return undefined;
}

/** Texts that the thread stores stay there, even if the backend takes files again. */
const placesFor = (path: string, { backend, files }: KeepingPlace): Backend[] =>
  files.get(path) ? [ownFiles(files)] : [backend, ownFiles(files)];

const ownFiles = (files: ThreadFiles): Backend => new StateBackend({ files });

async function readKeptText(path: string, backend: Backend): Promise<string | undefined> {
  const { data } = await backend.readRaw(path);
  if (!data) return undefined;
  const known = parseContent(path, data);
  // A file that cannot be read as text has another content in any case.
  return known.ok && known.content.kind === "text" ? known.content.text : "";
}

/** `backend` with texts that its thread had to keep in `folders`, under their paths; itself if there are none. */
export function withKeptFiles(backend: Backend, files: ThreadFiles, folders: readonly string[]): Backend {
  const isIn = (path: string): boolean => folders.some((folder) => isAtOrBelow(path, folder));
  const kept = [...files.entries()].map(([path]) => path).filter(isIn);
  if (kept.length === 0) return backend;
  const own = ownFiles(files);
  const keeps = (path: string): boolean => kept.includes(normal(path));
  const isInside = (path: string): boolean =>
    isIn(normal(path)) && kept.some((known) => isAtOrBelow(known, normal(path)));
  const shown: Partial<Backend> = {
    read: (path, ...rest) => (keeps(path) ? own : backend).read(path, ...rest),
    readRaw: (path, ...rest) => (keeps(path) ? own : backend).readRaw(path, ...rest),
    edit: (path, ...rest) => (keeps(path) ? own : backend).edit(path, ...rest),
    write: (path, ...rest) => (keeps(path) ? own : backend).write(path, ...rest),
    ls: async (path, ...rest) => {
      const lower = await backend.ls(path, ...rest);
      return isInside(path) ? mergedFiles(lower, await own.ls(path)) : lower;
    },
    glob: async (pattern, path = "/", ...rest) => {
      const lower = await backend.glob(pattern, path, ...rest);
      return isInside(path) ? mergedFiles(lower, await own.glob(pattern, path)) : lower;
    },
    grep: async (pattern, path, ...rest) => {
      if (typeof path !== "string" || !isInside(path)) return backend.grep(pattern, path, ...rest);
      const found = await own.grep(pattern, path, ...rest);
      const lower = keeps(path) ? undefined : await backend.grep(pattern, path, ...rest);
      if (lower === undefined || lower.error !== undefined) return found;
      const { matches = [] } = found;
      const paths = new Set(matches.map((match) => match.path));
      const others = (lower.matches ?? []).filter((match) => !paths.has(match.path));
      return { ...lower, matches: sortByPath([...others, ...matches]) };
    },
  };
  return wrapBackend(backend, shown);
}

function normal(path: string): string {
  const valid = validatePath(path);
  return valid.ok ? valid.path : path;
}

/** A folder that the backend does not have, or may not show, may hold kept files all the same. */
function mergedFiles<Result extends Failure & { files?: FileInfo[] }>(lower: Result, own: Result): Result {
  if (lower.error !== undefined) return own;
  const known = new Map((lower.files ?? []).map((file) => [file.path, file]));
  for (const file of own.files ?? []) known.set(file.path, file);
  return { ...lower, files: sortByPath([...known.values()]) };
}

const PREVIEW_LINES = 10;
const PREVIEW_LINE_CHARS = 1000;
const CHARS_PER_TOKEN = 4;

/**
 * Moves the text of a result that exceeds `tokens`, or the longer text that it stands for, into a file, and leaves a
 * preview with its path. Other blocks stay. If the text cannot be kept, as much of it stays as fits.
 */
export async function evictLargeResult(
  { id = "", name }: ToolCall,
  { whole, ...result }: CallResult,
  place: KeepingPlace,
  tokens: number,
): Promise<{ short: CallResult; kept: Kept | undefined }> {
  const own = textIn(result.content);
  const given: Partial<NonNullable<CallResult["whole"]>> = whole ?? {};
  const { text = own, start = "", end = "", shown: part } = given;
  const kept = await keepText(`${RESULTS_FOLDER}/${sanitizeToolCallId(id)}`, text, place);
  const shown = kept
    ? start + (part ? partPreview(name, text, kept.path, part) : resultPreview(name, text, kept.path))
    : `${headOf(own, tokens * CHARS_PER_TOKEN)}\n[result cut: could not be saved]`;
  const content = withText(result.content, end === "" ? shown : `${shown}\n\n${end}`);
  return { short: { ...result, content }, kept };
}

/** True if the text of a result belongs in a file. */
export const isTooLarge = ({ whole, content }: CallResult, tokens: number): boolean =>
  whole !== undefined || textIn(content).length > tokens * CHARS_PER_TOKEN;

/** The placeholder of a result that is in a file: how it begins, and how to read the rest. */
export function resultPreview(
  tool: string,
  text: string,
  path: string,
  lineChars: number = PREVIEW_LINE_CHARS,
): string {
  const lines = text.split("\n", PREVIEW_LINES).map((line) => headOf(line, lineChars));
  return `${placeholderText(tool, text, path)}

${lines.join("\n")}

Read more of it with read_file and its offset and limit, or search it with grep.`;
}

const placeholderText = (tool: string, text: string, path: string): string =>
  `The result of ${tool} is too large to show (${text.length} characters). It is saved in ${path}. It begins:`;

/** Shows a larger part of the text, up to the end of a line if it has lines, and the line after it. */
function partPreview(
  tool: string,
  text: string,
  path: string,
  { characters, close }: { characters: number; close: string },
): string {
  const head = headOf(text, characters);
  const lineEnd = head.lastIndexOf("\n");
  const part = lineEnd < characters / 2 ? head : head.slice(0, lineEnd + 1);
  const next = part.split("\n").length - 1;
  return `${placeholderText(tool, text, path)}

${part.trimEnd()}
${close}

Read on with read_file at offset ${next}, or search the file with grep.`;
}

/** The path of the text behind a placeholder of a result; undefined if the text is not a placeholder. */
function parsePlaceholder(placeholder: string): string | undefined {
  const form =
    /^The result of \S+ is too large to show \(\d+ characters\)\. It is saved in ([^\n]+)\. It begins:\n/;
  const [, path = ""] = form.exec(headOf(placeholder, 1000)) ?? [];
  return isAtOrBelow(normal(path), RESULTS_FOLDER) ? path : undefined;
}

/** The placeholder of a person's message that is in a file: its beginning and end, where the request often is. */
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

/** True if a message replaces one whose text is in a file. */
export const isEvicted = ({ additional_kwargs: marks }: BaseMessage): boolean => EVICTED_TO in marks;

/** Messages of persons that exceed `tokens` (about four characters each) and were not moved yet. */
export function largeMessages(messages: readonly BaseMessage[], tokens: number): HumanMessage[] {
  const isLarge = (message: BaseMessage): boolean => textOf(message).length > tokens * CHARS_PER_TOKEN;
  return messages.filter(isHuman).filter((one) => one.id !== undefined && isLarge(one) && !isEvicted(one));
}

/**
 * Moves the text of a person's message into a file below `folder`. The short message has the same id, stands for it from
 * now on, and always has the same bytes. Returns undefined if it could not be kept, or is no longer than its placeholder.
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

export function withText<Block extends { type: string }>(
  content: string | Block[],
  text: string,
): string | Array<Block | { type: "text"; text: string }> {
  if (typeof content === "string") return text;
  return [{ type: "text", text }, ...content.filter((block) => block.type !== "text")];
}

/** Writes of one task of a thread to the channel `messages`. */
export interface WrittenMessages {
  /** The graph it belongs to, by LangGraph's name of it inside the thread; empty: the thread's own. */
  namespace: string;
  /** When the step before it was stored, in milliseconds since the epoch. */
  time: number;
  messages: unknown;
}

/**
 * The call as its agent made it, with its result. Ids of calls come from models and may occur again: the newest one
 * before the call began counts. `ambiguous`: several agents made one with this id. `keptIn`: the file that has the whole
 * text, of which the message has the beginning. `time`: when the call began, `since`: when its run began.
 */
export function findCall(
  written: readonly WrittenMessages[],
  wanted: Record<"callId" | "tool", string> & Record<"time" | "since" | "depth", number>,
):
  | { args: Record<string, unknown>; result?: { text: string; isError: boolean; keptIn?: string } }
  | "ambiguous"
  | undefined {
  const { callId, tool, time, since, depth } = wanted;
  const messages = written
    .filter(({ namespace }) => namespace.split("|").filter(Boolean).length === depth)
    .flatMap(({ messages: given, ...place }) => {
      const own = [given].flat().filter((message) => BaseMessage.isInstance(message));
      return own.map((message) => ({ ...place, message }));
    });
  const made = messages.flatMap(({ message, ...place }) => {
    const own = callsOf(message).find(({ id, name }) => id === callId && name === tool);
    return own === undefined ? [] : [{ ...place, args: own.args }];
  });
  // Subagents of earlier runs in the thread may have used the id too.
  const calls = countGraphs(made) > 1 ? made.filter((one) => one.time >= since) : made;
  if (countGraphs(calls) > 1) return "ambiguous";
  const call = calls.findLast((one) => one.time <= time) ?? calls[0];
  if (call === undefined) return undefined;
  const results = messages
    .filter((one) => one.namespace === call.namespace && one.time >= call.time)
    .flatMap(({ message }) => (isResult(message) && message.tool_call_id === callId ? [message] : []));
  // A later message with the same id is more complete than the first.
  const last = results.findLast(({ id }) => id === results[0]?.id);
  if (!last) return { args: call.args };
  const text = textOf(last);
  const result = { text, isError: last.status === "error", ...defined({ keptIn: parsePlaceholder(text) }) };
  return { args: call.args, result };
}

const countGraphs = (calls: readonly { namespace: string }[]): number =>
  new Set(calls.map(({ namespace }) => namespace)).size;
