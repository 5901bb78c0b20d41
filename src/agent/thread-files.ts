import type { FileData, FilesUpdate, ThreadFiles } from "../backends/backend.ts";
import type { FilesState } from "./state.ts";

type Changes = Map<string, FileData | null>;

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

  private constructor(base: FilesState, changes: Changes, parent: ThreadFiles | undefined) {
    this.#base = base;
    this.#changes = changes;
    this.#parent = parent;
  }

  /** `parent`: files of the agent that delegated, below everything this agent changed. */
  static of(base: FilesState, parent?: ThreadFiles): StepFiles {
    let changes = stepChanges.get(base);
    if (!changes) stepChanges.set(base, (changes = new Map()));
    return new StepFiles(base, changes, parent);
  }

  get(path: string): FileData | undefined {
    const changed = this.#changes.get(path);
    if (changed !== undefined) return changed ?? undefined;
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
    for (const [path, data] of this.#changes) if (data) yield [path, data];
  }

  apply(update: FilesUpdate): void {
    for (const [path, data] of Object.entries(update)) this.#changes.set(path, data);
  }

  /** The files as they are now; later changes of this step do not show in it. */
  snapshot(): ThreadFiles {
    return new StepFiles(this.#base, new Map(this.#changes), this.#parent);
  }
}
