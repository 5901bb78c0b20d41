import type { FileData, FilesUpdate, ThreadFiles } from "../backends/backend.ts";
import type { FilesState } from "./state.ts";

interface Change {
  data: FileData | null;
  /** The tool call that made it, where it is known. */
  callId: string | undefined;
}

type Changes = Map<string, Change>;

/**
 * Changes that calls of one step made, by the state value the step started from.
 *
 * All tasks of a step read the same value of the `files` channel, so it identifies the step; when the
 * step ends the channel gets a new value and the changes, by then part of it, are forgotten with the old.
 */
const stepChanges = new WeakMap<FilesState, Changes>();

/** Thread files as one step sees them: state, then what finished calls of this step changed. */
export class StepFiles implements ThreadFiles {
  readonly #base: FilesState;
  readonly #changes: Changes;
  readonly #parent: ThreadFiles | undefined;
  readonly #callId: string | undefined;

  private constructor(
    base: FilesState,
    changes: Changes,
    parent: ThreadFiles | undefined,
    callId: string | undefined,
  ) {
    this.#base = base;
    this.#changes = changes;
    this.#parent = parent;
    this.#callId = callId;
  }

  /** `parent`: files of the agent that delegated, below everything this agent changed. */
  static of(base: FilesState, parent?: ThreadFiles, callId?: string): StepFiles {
    let changes = stepChanges.get(base);
    if (!changes) stepChanges.set(base, (changes = new Map()));
    return new StepFiles(base, changes, parent, callId);
  }

  /** Whether this process knows the step that started from `base`. */
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

  /**
   * Numbers each new content in place: the state takes the changes of a step in the order of its calls,
   * which is not the order they were made in.
   */
  apply(update: FilesUpdate): void {
    for (const [path, data] of Object.entries(update)) {
      if (data) data.revision = (this.get(path)?.revision ?? 0) + 1;
      this.#changes.set(path, { data, callId: this.#callId });
    }
  }

  /** Takes over what a call of this step changed before the process ended. */
  restore(update: FilesUpdate): void {
    for (const [path, data] of Object.entries(update)) {
      const known = this.#changes.get(path)?.data;
      if (isOlder(data, known)) continue;
      this.#changes.set(path, { data, callId: this.#callId });
    }
  }

  /** The call of this step that changed `path` last. */
  changedBy(path: string): string | undefined {
    return this.#changes.get(path)?.callId;
  }

  /** The files as they were when the step started: the same at every restart of one of its calls. */
  atStart(): ThreadFiles {
    return new StepFiles(this.#base, new Map(), this.#parent, undefined);
  }
}

/** Whether `data` was made before `known`; content without a number is taken as the newest. */
export function isOlder(data: FileData | null, known: FileData | null | undefined): boolean {
  return data?.revision !== undefined && known?.revision !== undefined && data.revision < known.revision;
}
