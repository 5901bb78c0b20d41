import type { FileData, ThreadFiles } from "../backend.ts";
import { isAtOrBelow, parentsOf } from "../paths.ts";

/** A file of this name says that what the base has under the rest of the name is deleted. */
const DELETED = ".wh.";

/** Whether a path has a name that is kept for the record of deletions. */
export const isReserved = (path: string): boolean => path.split("/").some((name) => name.startsWith(DELETED));

const markOf = (path: string): string => {
  const name = path.lastIndexOf("/") + 1;
  return path.slice(0, name) + DELETED + path.slice(name);
};

/** What an overlay keeps in the files of a thread: new content, and marks for what is deleted in the base. */
export class OverlayChanges {
  readonly #files: ThreadFiles;

  constructor(files: ThreadFiles) {
    this.#files = files;
  }

  get(path: string): FileData | undefined {
    return this.#files.get(path);
  }

  /** Whether what the base has there is deleted, itself or with a directory above it. */
  hidesBase(path: string): boolean {
    return [...parentsOf(path), path].some((at) => this.#files.get(markOf(at)) !== undefined);
  }

  *entries(): Generator<[string, FileData]> {
    for (const entry of this.#files.entries()) if (!isReserved(entry[0])) yield entry;
  }

  hasBelow(path: string): boolean {
    for (const [known] of this.entries()) if (known !== path && isAtOrBelow(known, path)) return true;
    return false;
  }

  put(path: string, data: FileData): Record<string, FileData> {
    const update = { [path]: data };
    this.#files.apply(update);
    return update;
  }

  /** Deletes what is kept at and below a path; with `mark`, what the base has there as well. */
  delete(
    path: string,
    mark: FileData | undefined,
  ): { filesUpdate: Record<string, null>; recorded?: Record<string, FileData> } {
    const own = [...this.#files.entries()].map(([known]) => known).filter((at) => isAtOrBelow(at, path));
    const filesUpdate = Object.fromEntries(own.map((at): [string, null] => [at, null]));
    this.#files.apply(filesUpdate);
    return mark === undefined ? { filesUpdate } : { filesUpdate, recorded: this.put(markOf(path), mark) };
  }
}
