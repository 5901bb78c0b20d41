import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { Semaphore } from "../core/concurrency.ts";
import type {
  Backend,
  BackendCapabilities,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  FileData,
  FileDownloadResponse,
  FileInfo,
  FileUploadResponse,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import * as errors from "./errors.ts";
import {
  type FileFormat,
  bytesToWrite,
  editFileData,
  infoOf,
  readFileData,
  toFileData,
  versionOf,
} from "./file-data.ts";
import { fileLocks } from "./keyed-lock.ts";
import { pageRequest } from "./pages.ts";
import { parentsOf, validatePath } from "./paths.ts";
import {
  type SearchFile,
  type SearchableContent,
  downloadOf,
  globFlat,
  grepListed,
  listFlat,
  refusedWrite,
  searchable,
} from "./search.ts";

/** The result, or undefined when the signal came first; then nobody waits for the call any more. */
export async function untilAborted<Result>(
  call: () => Result | Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result | undefined> {
  if (signal === undefined) return call();
  let stop = (): void => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([call(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A file as it is stored. `version` is the store's own mark of exactly this state, compared by `put`. */
export interface StoredFile {
  data: FileData;
  version: string;
}

/** What must be at a path for a `put` to happen: the state that was read, nothing, or whatever there is. */
export type Expected = { version: string } | "absent" | "any";

/** An entry of a listing. A store that reads contents anyway gives them, so that a search asks only once. */
export interface ListedFile extends FileInfo {
  data?: FileData;
}

export interface ListOptions extends CallOptions {
  /**
   * The entries directly in the folder are enough: files, and folders with `is_dir` and a final slash. A store
   * may give all files below it instead.
   */
  shallow?: boolean;
}

/**
 * What a place for files must bring; `FileStoreBackend` makes a whole backend of it.
 *
 * Paths are normalized and absolute. A method may throw: the model is told that the file could not be
 * accessed, with the reason from `explain`, and the log gets what was thrown.
 */
export interface FileStore {
  /** Names the place, the same in every instance that reaches it: writes to one of its files wait for each other. */
  readonly id: string;
  readonly lifetime: BackendCapabilities["lifetime"];
  /** `compare-and-set` when `put` compares and stores in one step, for all processes; else `last-writer-wins`. */
  readonly writes: BackendCapabilities["writes"];
  get(path: string, options?: CallOptions): MaybePromise<StoredFile | undefined>;
  /** Stores a file. False, and nothing stored, when something else than `expected` is there. */
  put(path: string, data: FileData, expected: Expected, options?: CallOptions): MaybePromise<boolean>;
  /** Removes one file; one that is gone already is no failure. */
  remove(path: string, options?: CallOptions): MaybePromise<void>;
  /** The file at a path and all files below it, in any order; of `/` all files. */
  list(under: string, options?: ListOptions): AsyncIterable<ListedFile> | Iterable<ListedFile>;
  /**
   * Whether there is any file below a path. Without this method paths are plain keys: a file may lie where
   * others have a folder.
   */
  hasBelow?(path: string, options?: CallOptions): MaybePromise<boolean>;
  /** The reason for a failure, as a person and the model may read it: no secret, no path of the host. */
  explain?(thrown: unknown): string | undefined;
}

/** Thrown by a store for a file over its limit, which is then passed over by searches. */
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

/** Requests of one operation that are under way at the same time. */
const PARALLEL = 8;
/** How often a change is made again on what another process has put there meanwhile. */
const MAX_ATTEMPTS = 5;

type Change = (old: FileData | undefined) => { bytes: Uint8Array } | errors.BackendFailure;

/**
 * A backend over any `FileStore`: every method of the port, once.
 *
 * Writes to one file are serialized in this process. Against other processes they are as safe as the store's
 * `put`. Searches read the files below their path whose names the filter accepts, and no others.
 */
export class FileStoreBackend implements Backend {
  readonly capabilities: Partial<BackendCapabilities>;
  readonly #open: () => FileStore | errors.BackendFailure;
  readonly #options: FileStoreBackendOptions;

  /** `store` may be a function, called for each operation, that gives the store or why there is none. */
  constructor(
    store: FileStore | (() => FileStore | errors.BackendFailure),
    options: FileStoreBackendOptions = {},
  ) {
    this.#open = typeof store === "function" ? store : () => store;
    this.#options = options;
    const { lifetime, writes }: Partial<FileStore> = typeof store === "function" ? {} : store;
    this.capabilities = {
      writeMode: true,
      regexGrep: true,
      versions: true,
      abort: true,
      rawRead: true,
      paths: "virtual",
      isolation: "none",
      lifetime: lifetime ?? "persistent",
      ...(writes === undefined ? {} : { writes }),
    };
  }

  ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, options, async (path, store) =>
      listFlat(path, (await collect(store.list(path, { ...options, shallow: true }))).map(withSize)),
    );
  }

  read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#at(filePath, options, async (path, store) => {
      const found = await store.get(path, options);
      if (found === undefined) return missing(path, store);
      return readFileData(path, found.data, pageRequest(offset, limit));
    });
  }

  readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#at(filePath, options, async (path, store): Promise<ReadRawResult> => {
      const found = await store.get(path, options);
      if (found === undefined) return missing(path, store);
      return { data: found.data, version: versionOf(found.data) };
    });
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", options, async (path, store) => {
      const listed = await collect(store.list(path, options));
      return grepListed(listed, { pattern, path, glob, maxCount, options }, (files) =>
        readAhead(files, async (file): Promise<SearchableContent> => {
          const data = file.data ?? (await getUnlessLarge(store, file.path, options));
          return data === undefined ? { kind: "skipped" } : searchable(file.path, data);
        }),
      );
    });
  }

  glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(path, options, async (path, store) =>
      globFlat(pattern, path, await collect(store.list(path, options))),
    );
  }

  write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    return this.#change(filePath, options, (path) => {
      const given = bytesToWrite(path, content);
      return (old) => {
        if (!given.ok) return { error: given.error, code: given.code };
        return refusedWrite(path, old, options) ?? { bytes: given.bytes };
      };
    });
  }

  async edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: EditOptions = {},
  ): Promise<EditResult> {
    let occurrences = 0;
    const edit = { oldString, newString, replaceAll, expectedVersion: options.expectedVersion };
    const result = await this.#change(filePath, options, (path) => (old) => {
      if (old === undefined) return errors.fileNotFound(path);
      const edited = editFileData(path, old, edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      occurrences = edited.occurrences;
      return { bytes: edited.bytes };
    });
    return result.error === undefined ? { ...result, occurrences } : result;
  }

  delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#at(filePath, options, async (path, store): Promise<DeleteResult> => {
      if (path === "/") return errors.refusedToDelete(path);
      const files = await collect(store.list(path, options));
      if (files.length === 0) return errors.fileNotFound(path);
      await inParallel(files, (file) =>
        lockedFile(store, file.path, async () => store.remove(file.path, options)),
      );
      return { path, filesUpdate: null };
    });
  }

  uploadFiles(files: Array<[string, Uint8Array]>, options?: CallOptions): Promise<FileUploadResponse[]> {
    return inParallel(files, async ([filePath, bytes]) => {
      const result = await this.#change(filePath, options, () => () => ({ bytes }), "any");
      return { path: filePath, error: errors.operationError(result.code) };
    });
  }

  downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return inParallel(paths, async (path) => downloadOf(path, await this.readRaw(path, options)));
  }

  async #at<Result extends object>(
    filePath: string,
    options: CallOptions | undefined,
    run: (path: string, store: FileStore) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const valid = validatePath(filePath);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    const { path } = valid;
    if (isAborted(options)) return errors.operationAborted(path);
    const store = this.#open();
    if ("error" in store) return store;
    try {
      const result = await untilAborted(() => run(path, store), options?.signal);
      return result ?? errors.operationAborted(path);
    } catch (thrown) {
      if (isAborted(options)) return errors.operationAborted(path);
      if (thrown instanceof FileTooLarge) return errors.fileTooLarge(path, thrown.bytes, thrown.limit);
      const reason = store.explain?.(thrown) ?? "its storage failed; try again";
      return errors.backendFailed(path, reason, thrown);
    }
  }

  /** Stores what `plan` makes of the file that is there; when that was replaced meanwhile, of the new one. */
  #change(
    filePath: string,
    options: CallOptions | undefined,
    plan: (path: string) => Change,
    whatever?: "any",
  ): Promise<WriteResult> {
    return this.#at(filePath, options, (path, store) =>
      lockedFile(store, path, async (): Promise<WriteResult> => {
        const change = plan(path);
        for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
          const found = await store.get(path, options);
          const obstacle = found === undefined ? await obstacleTo(path, store, options) : undefined;
          if (obstacle !== undefined) return obstacle;
          const changed = change(found?.data);
          if ("error" in changed) return changed;
          const now = isoTime((this.#options.clock ?? systemClock)());
          const times = { now, createdAt: found?.data.created_at };
          const data = toFileData(path, changed.bytes, times, this.#options.fileFormat);
          const expected = whatever ?? (found === undefined ? "absent" : { version: found.version });
          if (await store.put(path, data, expected, options)) {
            return { path, filesUpdate: null, version: versionOf(data) };
          }
        }
        return errors.changedSinceRead(path);
      }),
    );
  }
}

const isAborted = (options: CallOptions | undefined): boolean => options?.signal?.aborted === true;

const lockedFile = <Result>(store: FileStore, path: string, run: () => Promise<Result>): Promise<Result> =>
  fileLocks.run(JSON.stringify([store.id, path]), run);

/** Why nothing can be read at a path. */
async function missing(path: string, store: FileStore): Promise<errors.BackendFailure> {
  const isFolder = path === "/" ? true : await store.hasBelow?.(path);
  return isFolder ? errors.isDirectory(path) : errors.fileNotFound(path);
}

/** Why no new file can be at a path: a folder is there, or a file is where a folder would have to be. */
async function obstacleTo(
  path: string,
  store: FileStore,
  options: CallOptions | undefined,
): Promise<errors.BackendFailure | undefined> {
  if (path === "/") return errors.isDirectory(path);
  if (store.hasBelow === undefined) return undefined;
  const [isFolder, parents] = await Promise.all([
    store.hasBelow(path, options),
    Promise.all(parentsOf(path).map(async (parent) => store.get(parent, options))),
  ]);
  if (isFolder) return errors.isDirectory(path);
  return parents.every((parent) => parent === undefined) ? undefined : errors.parentIsFile(path);
}

async function getUnlessLarge(
  store: FileStore,
  path: string,
  options: CallOptions | undefined,
): Promise<FileData | undefined> {
  try {
    return (await store.get(path, options))?.data;
  } catch (thrown) {
    if (thrown instanceof FileTooLarge) return undefined;
    throw thrown;
  }
}

/** A store that gives contents need not give sizes. */
function withSize({ data, ...info }: ListedFile): FileInfo {
  return data === undefined ? info : { ...infoOf(info.path, data), ...info };
}

async function collect<Item>(items: AsyncIterable<Item> | Iterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function inParallel<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const slots = new Semaphore(PARALLEL);
  return Promise.all(items.map((item) => slots.run(() => run(item))));
}

/** Files of a search in their order; the contents of the next few are on their way while one is searched. */
async function* readAhead<File extends { path: string }>(
  files: readonly File[],
  load: (file: File) => Promise<SearchableContent>,
): AsyncGenerator<SearchFile> {
  const begun: SearchFile[] = [];
  for (const file of files) {
    const loading = load(file);
    // The search may end before it gets there.
    loading.catch(() => {});
    begun.push({ path: file.path, load: () => loading });
    if (begun.length === PARALLEL) yield* begun.splice(0, 1);
  }
  yield* begun;
}
