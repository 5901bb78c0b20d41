import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { BackendSource } from "../../backends/backend.ts";
import { sanitizeToolCallId } from "../../backends/paths.ts";
import { resolveBackend } from "../../backends/resolve.ts";
import type { Logger } from "../../core/logger.ts";
import { appendParts, HISTORY_FOLDER, keepText, type KeepingPlace, RESULTS_FOLDER } from "../kept-files.ts";
import { textOf } from "../message-text.ts";
import type { ModelRequest } from "../middleware/middleware.ts";
import { agentPath, backendRuntime, threadFiles } from "../step.ts";
import { largestTexts } from "./plan.ts";
import { isMedia, type TokenCounter } from "./tokens.ts";
import { markedTranscript } from "./transcript.ts";
import { type Compaction, compactedView, keyOf, movedText, sinceId } from "./view.ts";

/** Where and how what leaves the conversation is kept. */
export interface KeepOptions {
  backend: BackendSource;
  counter: TokenCounter;
  log: Logger;
  historyPathPrefix?: string;
  truncateArgs?: boolean;
}

/** Moves as many of the largest texts into files as it takes, and shortens all arguments but the newest. */
export async function moveTexts(
  request: ModelRequest,
  known: Compaction,
  excess: number,
  options: KeepOptions,
): Promise<Compaction> {
  const messages = sinceId(request.messages, known.keptFrom);
  const newest = messages.findLast((message) => AIMessage.isInstance(message))?.id;
  const short: Compaction =
    newest === undefined || options.truncateArgs === false ? known : { ...known, fullFrom: newest };
  const shown = (compaction: Compaction) =>
    options.counter.ofAll(compactedView(request.messages, compaction));
  const left = excess - (shown(known) - shown(short));
  const isMoved = (message: BaseMessage) => Object.hasOwn(known.moved ?? {}, keyOf(message) ?? "");
  // The preview names the file; any path is as good for measuring it.
  const leaves = (message: BaseMessage) =>
    keyOf(message) === undefined || isMoved(message)
      ? 0
      : (textOf(message).length - movedText(message, RESULTS_FOLDER).length) / 4;
  const place = await placeOf(request, options);
  const moved = new Map(Object.entries(known.moved ?? {}));
  for (const message of largestTexts(messages, { excess: left, leaves })) {
    const kept = await keepText(pathFor(message, options), textOf(message), place);
    if (!kept) continue;
    request.updateState({ files: kept.update });
    moved.set(keyOf(message) ?? "", kept.path);
  }
  return moved.size === 0 ? short : { ...short, moved: Object.fromEntries(moved) };
}

/** Nobody can tell how many tokens a document or an image is: the thread has them, the model goes on without. */
export function leaveOutMedia(request: ModelRequest, known: Compaction): Compaction {
  const keys = sinceId(request.messages, known.keptFrom)
    .filter(({ content }) => typeof content !== "string" && content.some(isMedia))
    .flatMap((message) => keyOf(message) ?? []);
  return keys.length === 0 ? known : { ...known, withoutMedia: keys };
}

function pathFor(message: BaseMessage, options: KeepOptions): string {
  const name = sanitizeToolCallId(keyOf(message) ?? "");
  return ToolMessage.isInstance(message)
    ? `${RESULTS_FOLDER}/${name}`
    : `${folderOf(options)}/message-${name}.md`;
}

const folderOf = ({ historyPathPrefix = HISTORY_FOLDER }: KeepOptions): string => historyPathPrefix;

async function placeOf(
  { runtime, state }: ModelRequest,
  { backend, log }: KeepOptions,
): Promise<KeepingPlace> {
  const files = threadFiles(runtime);
  return { backend: await resolveBackend(backend, backendRuntime(runtime, files, state, log)), files };
}

/** Where what leaves an agent's conversation is kept, subagents each in a file of their own. */
export function historyPath({ runtime }: ModelRequest, options: KeepOptions): string {
  const owner = [runtime.threadId ?? "thread", ...agentPath(runtime).map(({ callId }) => callId)].join("-");
  return `${folderOf(options)}/${sanitizeToolCallId(owner)}.md`;
}

/**
 * Adds what is not there yet to the thread's history file; gives its path, or `undefined` when it could not be
 * written.
 */
export async function saveHistory(
  request: ModelRequest,
  messages: readonly BaseMessage[],
  options: KeepOptions,
): Promise<string | undefined> {
  const path = historyPath(request, options);
  const parts = markedTranscript(request.messages, messages);
  const kept = await appendParts(path, parts, await placeOf(request, options));
  if (!kept) {
    options.log.warn("history_not_saved", { path });
    return undefined;
  }
  request.updateState({ files: kept.update });
  return path;
}
