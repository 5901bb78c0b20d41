import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { mapAtMost, untilAborted } from "../core/concurrency.ts";
import { defined } from "../core/unknown.ts";
import { MemoryTooLarge } from "../core/errors.ts";
import type * as port from "./backend.ts";
import type { Located, Operations } from "./checked-backend.ts";
import {
  CheckedBackend,
  FILES_ONLY,
  PARALLEL_TRANSFERS,
  fileLocks,
  loadedBy,
  storedBy,
} from "./checked-backend.ts";
import { type BackendFailure, errors } from "./errors.ts";
import { type FileFormat, editFileData, toFileInfo, toFileData, contentVersion } from "./file-data.ts";
import { parentPaths, validatePath } from "./paths.ts";
import type { SearchFile, SearchableContent } from "./search.ts";
import { compileSearch, globFlat, grepListed, listFlat, refusedWrite, searchable } from "./search.ts";

/** A stored file. `version` is the store's own mark of exactly this state; `put` compares it. */
export interface StoredFile {
  data: port.FileData;
  version: string;
}

/** The condition of a `put`: the version that was read is still there, there is no file, or none. */
export type Expected = { version: string } | "absent" | "any";

/** An entry of a listing. A store that reads contents anyway returns them, which saves requests in a search. */
export interface ListedFile extends port.FileInfo {
  data?: port.FileData;
}

export interface ListOptions extends port.CallOptions {
  /**
   * Asks for the entries directly in the folder: files, and folders with `is_dir` and a final slash. A store may
   * return all files below the folder instead.
   */
  shallow?: boolean;
  /** A text that the caller looks for. A store that searches by itself may leave out files that do not contain it. */
  containing?: string;
}

/**
 * The methods that a place for files must have; `FileStoreBackend` makes a whole backend of them.
 *
 * Paths are normalized and absolute. A method may throw. The model then sees that the file could not be accessed, with
 * the reason from `explain`; the exception goes to the log.
 */
export interface FileStore {
  /** Names the place, the same for all instances that reach it, so that writes to one file wait for each other. */
  readonly id: string;
  readonly lifetime: port.BackendCapabilities["lifetime"];
  /** `compare-and-set` when `put` compares and stores in one step, for all processes; else `last-writer-wins`. */
  readonly writes: port.BackendCapabilities["writes"];
  get(path: string, options?: port.CallOptions): port.MaybePromise<StoredFile | undefined>;
  /** Stores a file. Stores nothing and returns false if `expected` does not hold. */
  put(
    path: string,
    data: port.FileData,
    expected: Expected,
    options?: port.CallOptions,
  ): port.MaybePromise<boolean>;
  /** Removes one file. Succeeds if the file is missing. */
  remove(path: string, options?: port.CallOptions): port.MaybePromise<void>;
  /** Lists the file at a path and all files below the path, in any order. */
  list(under: string, options?: ListOptions): AsyncIterable<ListedFile> | Iterable<ListedFile>;
  /**
   * Reports if there is any file below a path. Without this method paths are plain keys: a path may be a file and a
   * folder.
   */
  hasBelow?(path: string, options?: port.CallOptions): port.MaybePromise<boolean>;
  /** Explains a failure to a person and the model, without secrets and paths of the host. */
  explain?(thrown: unknown): string | undefined;
}

/** Thrown by a store for a file over its limit. Searches skip such a file. */
export class FileTooLarge extends Error {
  readonly bytes: number;
  readonly limit: number;

  constructor(bytes: number, limit: number) {
    super(`${bytes} bytes, limit ${limit}`);
    this.bytes = bytes;
    this.limit = limit;
  }
}

export interface FileStoreBackendOptions {
  /** `v1` keeps lines, for old readers. Both are read. Default `v2`. */
  fileFormat?: FileFormat;
  clock?: Clock;
}

interface StorePath extends Located, FileStoreBackendOptions {
  store: FileStore;
}

const STORE_OPERATIONS: Operations<StorePath> = {
  parallel: PARALLEL_TRANSFERS,
  attempt: async ({ path, store }, { options: { signal } }, run) => {
    const isAborted = (): boolean => signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(path);
    try {
      return await untilAborted(Promise.resolve(run()), signal);
    } catch (thrown) {
      if (isAborted()) return errors.operationAborted(path);
      if (thrown instanceof MemoryTooLarge) return errors.memoryTooLarge(thrown.message);
      if (thrown instanceof FileTooLarge) return errors.fileTooLarge(path, thrown.bytes, thrown.limit);
      return errors.backendFailed(path, store.explain?.(thrown) ?? "its storage failed; try again", thrown);
    }
  },
  ls: async ({ path, store }, options) => {
    const listed = await collect(store.list(path, { ...options, shallow: true }));
    const infos = listed.map(({ data, ...info }) =>
      data === undefined ? info : { ...toFileInfo(info.path, data), ...info },
    );
    return listFlat(path, infos);
  },
  ...loadedBy<StorePath>(async ({ path, store }, options) => {
    const found = await store.get(path, options);
    if (found !== undefined) return found.data;
    const isFolder = path === "/" || (await store.hasBelow?.(path)) === true;
    return isFolder ? errors.isDirectory(path) : errors.fileNotFound(path);
  }),
  grep: async ({ path, store }, search) => {
    const compiled = compileSearch(search.pattern, search.options);
    const containing = compiled.ok ? compiled.literal : undefined;
    const options = { ...search.options, ...(containing === undefined ? {} : { containing }) };
    const listed = await collect(store.list(path, options));
    // A folder whose files were all left out is not a missing one.
    const mayExist = listed.length === 0 && containing !== undefined && path !== "/";
    if (mayExist) listed.push(...(await collect(store.list(path, search.options), 1)));
    return grepListed(listed, search, (files) =>
      readAhead(files, async (file): Promise<SearchableContent> => {
        let { data } = file;
        try {
          data ??= (await store.get(file.path, search.options))?.data;
        } catch (thrown) {
          if (!(thrown instanceof FileTooLarge)) throw thrown;
        }
        return data === undefined ? { kind: "skipped" } : searchable(file.path, data);
      }),
    );
  },
  glob: async ({ path, store }, pattern, options) =>
    globFlat(pattern, path, await collect(store.list(path, options))),
  ...storedBy<StorePath>((at, bytes, options) =>
    change(at, options, (old) => refusedWrite(at.path, old, options) ?? { bytes }),
  ),
  upload: (at, bytes, options) => change(at, options, () => ({ bytes }), "any"),
  edit: async (at, edit) => {
    let occurrences = 0;
    const result = await change(at, edit, (old) => {
      if (old === undefined) return errors.fileNotFound(at.path);
      const edited = editFileData(at.path, old, edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      occurrences = edited.occurrences;
      return { bytes: edited.bytes };
    });
    return result.error === undefined ? { ...result, occurrences } : result;
  },
  refusal: async ({ path, store }, change, options) =>
    change === "write" ? findObstacle(path, store, options) : undefined,
  delete: async ({ path, store }, options) => {
    if (path === "/") return errors.refusedToDelete(path);
    const files = await collect(store.list(path, options));
    if (files.length === 0) return errors.fileNotFound(path);
    await mapAtMost(PARALLEL_TRANSFERS, files, (file) =>
      lockedFile(store, file.path, async () => store.remove(file.path, options)),
    );
    return { path, filesUpdate: null };
  },
};

/** Stores the result of `plan` for the current file. Plans again if the file was replaced in between. */
const change = (
  { path, store, clock = systemClock, fileFormat }: StorePath,
  options: port.CallOptions,
  plan: (old: port.FileData | undefined) => { bytes: Uint8Array } | BackendFailure,
  whatever?: "any",
): Promise<port.WriteResult> =>
  lockedFile(store, path, async (): Promise<port.WriteResult> => {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const found = await store.get(path, options);
      const obstacle = found === undefined ? await findObstacle(path, store, options) : undefined;
      if (obstacle !== undefined) return obstacle;
      const changed = plan(found?.data);
      if ("error" in changed) return changed;
      const times = { now: isoTime(clock()), createdAt: found?.data.created_at };
      const data = toFileData(path, changed.bytes, times, fileFormat);
      const expected = whatever ?? (found === undefined ? "absent" : { version: found.version });
      if (await store.put(path, data, expected, options))
        return { path, filesUpdate: null, version: contentVersion(data) };
    }
    return errors.changedSinceRead(path);
  });

/**
 * A backend over any `FileStore`.
 *
 * Writes to one file are serialized in this process. Against other processes they are as safe as the store's
 * `put`. Searches read the files below their path whose names the filter accepts, and no others.
 */
export class FileStoreBackend extends CheckedBackend {
  readonly capabilities: Partial<port.BackendCapabilities>;

  /** `store` may be a function, which is called for each operation and returns the store or a failure. */
  constructor(store: FileStore | (() => FileStore | BackendFailure), options: FileStoreBackendOptions = {}) {
    super(STORE_OPERATIONS, (given) => {
      const valid = validatePath(given);
      if (!valid.ok) return valid;
      const opened = typeof store === "function" ? store() : store;
      return "error" in opened ? opened : { ...options, path: valid.path, store: opened };
    });
    const { lifetime = "persistent", writes }: Partial<FileStore> = typeof store === "function" ? {} : store;
    this.capabilities = { ...FILES_ONLY, lifetime, ...defined({ writes }) };
  }
}

const lockedFile = <Result>(store: FileStore, path: string, run: () => Promise<Result>): Promise<Result> =>
  fileLocks.run(JSON.stringify([store.id, path]), run);

/** Why no new file can be made: the path is a folder, or one of its parents is a file. */
async function findObstacle(path: string, store: FileStore, options: port.CallOptions) {
  if (path === "/") return errors.isDirectory(path);
  if (store.hasBelow === undefined) return undefined;
  const [isFolder, parents] = await Promise.all([
    store.hasBelow(path, options),
    Promise.all(parentPaths(path).map(async (parent) => store.get(parent, options))),
  ]);
  if (isFolder) return errors.isDirectory(path);
  return parents.every((parent) => parent === undefined) ? undefined : errors.parentIsFile(path);
}

async function collect<Item>(
  items: AsyncIterable<Item> | Iterable<Item>,
  most: number = Number.POSITIVE_INFINITY,
): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) {
    found.push(item);
    if (found.length >= most) break;
  }
  return found;
}

/** Yields the files of a search in order, and loads the next few while one is searched. */
async function* readAhead<File extends { path: string }>(
  files: readonly File[],
  load: (file: File) => Promise<SearchableContent>,
): AsyncGenerator<SearchFile> {
  const begun: SearchFile[] = [];
  for (const file of files) {
    const loading = load(file);
    // Keeps a failure from being unhandled if the search ends before this file.
    loading.catch(() => {});
    begun.push({ path: file.path, load: () => loading });
    if (begun.length === PARALLEL_TRANSFERS) yield* begun.splice(0, 1);
  }
  yield* begun;
}
