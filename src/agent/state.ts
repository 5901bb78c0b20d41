import type { BaseMessage } from "@langchain/core/messages";
import {
  type BaseChannel,
  DeltaChannel,
  DeltaValue,
  MessagesDeltaValue,
  StateSchema,
} from "@langchain/langgraph";
import { z } from "zod";
import type { FileData, FilesUpdate } from "../backends/backend.ts";
import type { Todo } from "../tools/tool.ts";

/**
 * Files of a thread by absolute virtual path. A subagent's state holds only what it changed, deletions
 * (`null`) included, over the files of the agent that delegated to it.
 */
export type FilesState = Readonly<Record<string, FileData | null>>;

/** Name of the graph node that runs tool calls, one task each. */
export const TOOLS = "tools";

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
 * Folds changes of files, oldest first; `null` deletes, or stays as a mark where deletions are kept.
 *
 * Folding batch by batch equals folding all at once, which delta channels rely on when they replay.
 */
export const filesReducer =
  (keepDeletions: boolean) =>
  (state: FilesState, writes: ReadonlyArray<FilesUpdate | null | undefined>): FilesState => {
    const next = new Map(Object.entries(state));
    for (const write of writes) {
      for (const [path, data] of Object.entries(write ?? {})) {
        if (data === null && !keepDeletions) next.delete(path);
        else next.set(path, data);
      }
    }
    return Object.fromEntries(next);
  };

/**
 * A channel that holds the newest value, and whose checkpoints hold it only where it changed: a plain
 * channel would be written whole at every step.
 */
export function latest<Value extends object>(initial: Value): DeltaValue<Value, Value> {
  const schema = z.custom<Value>(); // zod cannot type the default of a custom schema
  return new DeltaValue<Value, Value>(schema.default(initial as never), {
    inputSchema: schema,
    reducer: (current, writes) => writes.at(-1) ?? current,
  });
}

/**
 * The built-in channels of a main agent, or of a subagent (`nested`).
 *
 * `messages` and `files` are delta channels: a checkpoint stores what was added, not the whole value, so
 * that the cost of a step does not grow with the length of the thread.
 */
export function builtInChannels(nested: boolean): Record<string, BaseChannel> {
  const channels = new StateSchema({
    messages: MessagesDeltaValue,
    todos: latest<Todo[]>([]),
    structuredResponse: z.unknown().optional(),
  }).getChannels();
  // A schema's default is made once and shared by all threads; files are told apart by this very object.
  const files = new DeltaChannel<FilesState, FilesUpdate>(filesReducer(nested), {
    initialValueFactory: () => ({}),
  });
  return { ...channels, files };
}

/** State keys that do not cross between an agent and its subagents; neither do keys starting with `_`. */
const ISOLATED = new Set([
  "messages",
  "todos",
  "structuredResponse",
  "files",
  "skillsMetadata",
  "memoryContents",
]);

/** The part of `state` that a subagent starts from, and that its result brings back (files aside). */
export function sharedState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(state).filter(([key]) => !ISOLATED.has(key) && !key.startsWith("_")),
  );
}
