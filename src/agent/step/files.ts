/** Files while a step works: calls of one reply see each other's changes, and reads and writes keep their order. */
import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { byIdentity } from "../../core/by-identity.ts";
import { Semaphore } from "../../core/concurrency.ts";
import type { FileData, FilesUpdate, ThreadFiles } from "../../backends/backend.ts";
import { isAtOrBelow } from "../../backends/paths.ts";
import type { ToolKind } from "../../tools/tool.ts";
import type { AgentTool } from "../contracts/middleware.ts";
import type { FilesState } from "../contracts/state.ts";

/** By path. `callId`: the tool call that made the change, where it is known. */
type Changes = Map<string, { data: FileData | null; callId: string | undefined }>;

/**
 * Changes that calls of one step made, by the value of the `files` channel that all of them read. At the end of the step
 * the channel gets a new value, with the changes, and they are dropped with the old one.
 */
const stepChanges = new WeakMap<FilesState, Changes>();

/** Thread files as one step sees them: state, then changes of this step's finished calls. */
export class StepFiles implements ThreadFiles {
  readonly #base: FilesState;
  readonly #changes: Changes;
  readonly #parent: ThreadFiles | undefined;
  readonly #callId: string | undefined;

  /** `parent`: files of the agent that delegated, below everything this agent changed. */
  constructor(base: FilesState, parent?: ThreadFiles, callId?: string, changes?: Changes) {
    this.#base = base;
    if (changes === undefined) {
      changes = stepChanges.get(base) ?? new Map();
      stepChanges.set(base, changes);
    }
    this.#changes = changes;
    this.#parent = parent;
    this.#callId = callId;
  }

  static knows(base: FilesState): boolean {
    return stepChanges.has(base);
  }

  get(path: string): FileData | undefined {
    const changed = this.#changes.get(path);
    if (changed !== undefined) return changed.data ?? undefined;
    if (Object.hasOwn(this.#base, path)) return this.#base[path] ?? undefined;
    return this.#parent?.get(path);
  }

  *entries(): Generator<[string, FileData]> {
    for (const [path, data] of this.#parent?.entries() ?? []) {
      if (!this.#changes.has(path) && !Object.hasOwn(this.#base, path)) yield [path, data];
    }
    for (const [path, data] of Object.entries(this.#base)) {
      if (data && !this.#changes.has(path)) yield [path, data];
    }
    for (const [path, { data }] of this.#changes) if (data) yield [path, data];
  }

  /** Numbers new content: the state takes changes in the order of calls, not in that of the changes. */
  apply(update: FilesUpdate): void {
    for (const [path, data] of Object.entries(update)) {
      if (data) data.revision = (this.get(path)?.revision ?? 0) + 1;
      this.#changes.set(path, { data, callId: this.#callId });
    }
  }

  /** Takes over changes that a call of this step made before the process ended. */
  restore(update: FilesUpdate): void {
    for (const [path, data] of Object.entries(update)) {
      if (!isOlder(data, this.#changes.get(path)?.data))
        this.#changes.set(path, { data, callId: this.#callId });
    }
  }

  /** The call of this step that changed `path` last. */
  changedBy(path: string): string | undefined {
    return this.#changes.get(path)?.callId;
  }

  /** The files as they were when the step started: the same at every restart of one of its calls. */
  atStart(): ThreadFiles {
    return new StepFiles(this.#base, this.#parent, undefined, new Map());
  }
}

/** True if `data` was made before `known`; content without a number counts as the newest. */
export const isOlder = (data: FileData | null, known: FileData | null | undefined): boolean =>
  data?.revision !== undefined && known?.revision !== undefined && data.revision < known.revision;

/** `open`: the task ended without an answer, because a person is asked or the run was stopped. */
type End = "answered" | "open";

type Siblings = { ends: Map<string, Promise<End>>; turns: Promise<unknown>; slots?: Semaphore };

/** The calls at work and the open ones, by the state value that their step started from; see `StepFiles`. */
const siblingsIn = byIdentity((_step: FilesState): Siblings => ({
  ends: new Map(),
  turns: Promise.resolve(),
}));

/**
 * Does the work of a call; others of its step can wait for its end. It begins when fewer than `parallel` are at work. The
 * work asks a person in its `turn`, and ends that where it asks nobody, so that questions have the order of the calls.
 */
export function asSibling<Result>(
  step: FilesState,
  { callId, parallel, signal }: { callId: string; parallel: number; signal: AbortSignal | undefined },
  work: (turn: { begun: Promise<unknown>; end: () => void }) => Promise<Result>,
): Promise<Result> {
  const siblings = siblingsIn(step);
  siblings.slots ??= new Semaphore(parallel);
  const { turns: begun } = siblings;
  let endTurn = (): void => undefined;
  const over = new Promise<void>((resolve) => (endTurn = resolve));
  const done = siblings.slots.run(() => work({ begun, end: endTurn }), signal);
  const end = done.then<End, End>(
    () => {
      // Steps that change no file share a value, and a promise keeps the state of its step.
      siblings.ends.delete(callId);
      return "answered";
    },
    () => "open",
  );
  siblings.ends.set(callId, end);
  siblings.turns = begun.then(() => Promise.race([end, over]));
  return done;
}

export interface Reply {
  readonly calls: readonly ToolCall[];
  readonly tools: ReadonlyMap<string, AgentTool>;
}

/**
 * Waits for calls before `callId` in its reply that do the opposite, reading or writing, at, above or below its `path`: a
 * read shows earlier writes. Returns writes that were not made yet, because a person is asked about them.
 */
export async function earlierCalls(
  step: FilesState,
  { callId, toolCall, tool }: { callId: string; toolCall: ToolCall; tool: AgentTool | undefined },
  { calls, tools }: Reply,
): Promise<ToolCall[]> {
  const path = tool?.pathOf(toolCall.args);
  if (path === undefined) return [];
  const opposite = OPPOSITES[tool?.kind ?? "plan"];
  const own = calls.findIndex(({ id }) => id === callId);
  const earlier = calls.slice(0, own).filter((call) => {
    const other = tools.get(call.name);
    if (!opposite || other?.kind !== opposite) return false;
    const touched = pathTouched(other, call);
    return touched !== undefined && isNear(touched, path);
  });
  const open: ToolCall[] = [];
  const { ends } = siblingsIn(step);
  for (const call of earlier) if ((await ends.get(call.id ?? "")) === "open") open.push(call);
  return opposite === "write" ? open : [];
}

const OPPOSITES: Partial<Record<ToolKind, ToolKind>> = { read: "write", write: "read" };

/** The path of a call; undefined if its tool takes none, or its arguments are not valid. */
export function pathTouched(tool: AgentTool, { args }: ToolCall): string | undefined {
  const checked = tool.validate(args);
  return checked.ok ? tool.pathOf(checked.args) : undefined;
}

/** True if one path is that of the other, or above it. */
export const isNear = (one: string, other: string): boolean =>
  isAtOrBelow(one, other) || isAtOrBelow(other, one);

/** Version of the file at `path` that a conversation read, wrote or edited last; undefined if it never did. */
export function versionSeen(messages: readonly BaseMessage[], path: string): string | undefined {
  for (let i = messages.length - 1; i >= 0; i -= 1) {
    const message = messages[i];
    if (!ToolMessage.isInstance(message)) continue;
    // The answers of these tools name a file and the version of it that the model then knows.
    if (!["read_file", "write_file", "edit_file"].includes(message.name ?? "")) continue;
    const facts = message.artifact as { path?: unknown; version?: unknown } | undefined; // ours, or anything
    if (facts?.path === path && typeof facts.version === "string") return facts.version;
  }
  return undefined;
}
