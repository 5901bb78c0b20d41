import { isDeepStrictEqual } from "node:util";
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { type BaseChannel, DeltaChannel, DeltaValue, StateSchema } from "@langchain/langgraph";
import { foldMessages } from "./messages-reducer.ts";
import { z } from "zod";
import type { FileData, FilesUpdate } from "../backends/backend.ts";
import { isOlder } from "./thread-files.ts";
import { addSpent, type Carried, SPENT } from "./limits/meter.ts";
import type { Todo } from "../tools/tool.ts";

/**
 * Files of a thread by absolute virtual path. A subagent's state holds only what it changed, deletions
 * (`null`) included, over the files of the agent that delegated to it.
 */
export type FilesState = Readonly<Record<string, FileData | null>>;

/** Name of the graph node that runs tool calls, one task each. */
export const TOOLS = "tools";

/** Channel of what the report of a call is to say besides, by tool call id: told by calls that ended later. */
export const FILE_NOTES = "_fileNotes";

/**
 * Channel of tasks whose subagent lost its model, by subagent and description, with the namespace of its
 * checkpoints; empty once the task has been done.
 */
export const LEFT_OFF = "_leftOff";

/** Where a hook may send the agent instead of the usual next step. */
export type JumpTarget = "model" | "tools" | "end";

/** The state of an agent thread; middleware adds channels of its own. */
export interface AgentState {
  messages: BaseMessage[];
  files: FilesState;
  todos: Todo[];
  structuredResponse?: unknown;
  [channel: string]: unknown;
}

/**
 * Folds changes of files, in the order of the calls that made them, where numbered content says itself
 * which is newer; `null` deletes, or stays as a mark where deletions are kept.
 *
 * Folding batch by batch equals folding all at once, which delta channels rely on when they replay.
 */
export const filesReducer =
  (keepDeletions: boolean) =>
  (state: FilesState, writes: ReadonlyArray<FilesUpdate | null | undefined>): FilesState => {
    const next = new Map(Object.entries(state));
    for (const write of writes) {
      for (const [path, data] of Object.entries(write ?? {})) {
        if (isOlder(data, next.get(path))) continue;
        if (data === null && !keepDeletions) next.delete(path);
        else next.set(path, data);
      }
    }
    return Object.fromEntries(next);
  };

/**
 * A channel that holds the newest value (after `null`, the initial one again), and whose checkpoints hold it
 * only where it changed: a plain channel would be written whole at every step.
 */
export function latest<Value extends object>(initial: Value): DeltaValue<Value, Value> {
  const schema = z.custom<Value>(); // zod cannot type the default of a custom schema
  return new DeltaValue<Value, Value>(schema.default(initial as never), {
    inputSchema: schema,
    reducer: (current, writes) => {
      const newest: Value | null | undefined = writes.at(-1); // a caller may write null
      return newest === undefined ? current : (newest ?? initial);
    },
  });
}

export type TextsByName = Readonly<Record<string, string>>;

/** A channel of texts by name, the newest of each name. */
const textsByName = () =>
  new DeltaValue(
    z.custom<TextsByName>().default(() => ({})),
    {
      inputSchema: z.custom<TextsByName>(),
      reducer: (texts: TextsByName, writes: TextsByName[]) => Object.assign({}, texts, ...writes),
    },
  );

/** Reports that are to say more than they do so far, with it; each replaces the one with its id. */
export function annotatedReports(state: AgentState): ToolMessage[] {
  const notes = Object.entries((state[FILE_NOTES] as TextsByName | undefined) ?? {}); // our channel
  return notes.flatMap(([callId, note]) => {
    const report = state.messages.findLast(
      (message) => ToolMessage.isInstance(message) && message.tool_call_id === callId,
    );
    if (!ToolMessage.isInstance(report) || report.text.includes(note)) return [];
    const { id, name = "", status = "success" } = report;
    const content = `${report.text}\n\n${note}`;
    return [new ToolMessage({ ...(id ? { id } : {}), name, status, tool_call_id: callId, content })];
  });
}

/** Updates between two snapshots of the conversation: as many as LangGraph allows steps. */
const MESSAGES_PER_SNAPSHOT = 5000;

/**
 * The built-in channels of a main agent, or of a subagent (`nested`).
 *
 * `messages` and `files` are delta channels: a checkpoint stores what was added, not the whole value, so
 * that the cost of a step does not grow with the length of the thread.
 */
export function builtInChannels(nested: boolean): Record<string, BaseChannel> {
  const channels = new StateSchema({
    todos: latest<Todo[]>([]),
    [SPENT]: new DeltaValue(
      z.custom<Partial<Carried>>().default(() => ({})),
      { inputSchema: z.custom<Partial<Carried>>(), reducer: addSpent },
    ),
    [FILE_NOTES]: textsByName(),
    [LEFT_OFF]: textsByName(),
    structuredResponse: z.unknown().optional(),
  }).getChannels();
  // A schema's default is made once and shared by all threads; files are told apart by this very object.
  const files = new DeltaChannel<FilesState, FilesUpdate>(filesReducer(nested), {
    initialValueFactory: () => ({}),
  });
  // Messages are hardly ever taken back: a snapshot is as long as the history it stands for.
  const messages = new DeltaChannel(foldMessages, {
    snapshotFrequency: MESSAGES_PER_SNAPSHOT,
  });
  return { messages, ...channels, files };
}

/**
 * State keys that do not cross between an agent and its subagents; neither do keys starting with `_`. The last
 * ones are what LangChain's limits count by.
 */
const ISOLATED = new Set([
  "messages",
  "todos",
  "structuredResponse",
  "files",
  "skillsMetadata",
  "memoryContents",
  "threadModelCallCount",
  "runModelCallCount",
  "threadToolCallCount",
  "runToolCallCount",
]);

/** What decides how an agent sees its conversation; goes along with it to a fork. */
export function contextState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const keys = ["skillsMetadata", "memoryContents", "_summarization"].filter(
    (key) => state[key] !== undefined,
  );
  return Object.fromEntries(keys.map((key) => [key, state[key]]));
}

/** The part of `state` that a subagent starts from, and that its result brings back (files aside). */
export function sharedState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(state).filter(([key]) => !ISOLATED.has(key) && !key.startsWith("_")),
  );
}

/**
 * What a subagent that began with `before` brings back (files aside): values that it changed. Of a list in a
 * channel that folds (`folding`), what it added: the rest is there already.
 */
export function changedState(
  after: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
  folding: ReadonlySet<string>,
): Record<string, unknown> {
  const changed = Object.entries(sharedState(after)).filter(
    ([key, value]) => !isDeepStrictEqual(value, before[key]),
  );
  return Object.fromEntries(
    changed.map(([key, value]) => [key, folding.has(key) ? addedTo(before[key], value) : value]),
  );
}

function addedTo(before: unknown, after: unknown): unknown {
  if (!Array.isArray(before) || !Array.isArray(after)) return after;
  const isLonger = isDeepStrictEqual(after.slice(0, before.length), before);
  return isLonger ? (after.slice(before.length) as unknown[]) : after;
}
