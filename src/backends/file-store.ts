import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { Semaphore } from "../core/concurrency.ts";
import type {
  BackendCapabilities,
  CallOptions,
  FileData,
  FileInfo,
  MaybePromise,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import {
  COMPLETE,
  CheckedBackend,
  type Edit,
  type Located,
  type Operations,
  PARALLEL_TRANSFERS,
  PutOperations,
  type Search,
} from "./checked-backend.ts";
import * as errors from "./errors.ts";
import { type FileFormat, editFileData, infoOf, readFileData, toFileData, versionOf } from "./file-data.ts";
import { fileLocks } from "./keyed-lock.ts";
import type { PageRequest } from "./pages.ts";
import { parentsOf, validatePath } from "./paths.ts";
import {
  type SearchFile,
  type SearchableContent,
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

/** How often a change is made again on what another process has put there meanwhile. */
const MAX_ATTEMPTS = 5;

interface StorePath extends Located {
  store: FileStore;
}

/** The operations of the port over get, put, remove and list. */
class StoreOperations extends PutOperations implements Operations {
  readonly parallel = PARALLEL_TRANSFERS;
  readonly #open: () => FileStore | errors.BackendFailure;
  readonly #options: FileStoreBackendOptions;

  constructor(open: () => FileStore | errors.BackendFailure, options: FileStoreBackendOptions) {
    super();
    this.#open = open;
    this.#options = options;
  }

  locate(given: string): ({ ok: true } & StorePath) | ({ ok: false } & errors.BackendFailure) {
    const valid = validatePath(given);
    if (!valid.ok) return valid;
    const store = this.#open();
    return "error" in store ? { ok: false, ...store } : { ok: true, path: valid.path, store };
  }

  async attempt<Result>(
    { path, store }: StorePath,
    { options }: { options: CallOptions },
    run: () => MaybePromise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const isAborted = (): boolean => options.signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(path);
    try {
      return (await untilAborted(run, options.signal)) ?? errors.operationAborted(path);
    } catch (thrown) {
      if (isAborted()) return errors.operationAborted(path);
      if (thrown instanceof FileTooLarge) return errors.fileTooLarge(path, thrown.bytes, thrown.limit);
      const reason = store.explain?.(thrown) ?? "its storage failed; try again";
      return errors.backendFailed(path, reason, thrown);
    }
  }

  async ls({ path, store }: StorePath, options: CallOptions) {
    return listFlat(path, (await collect(store.list(path, { ...options, shallow: true }))).map(withSize));
  }

  async read({ path, store }: StorePath, page: PageRequest, options: CallOptions) {
    const found = await store.get(path, options);
    return found === undefined ? missing(path, store) : readFileData(path, found.data, page);
  }

  async readRaw({ path, store }: StorePath, options: CallOptions) {
    const found = await store.get(path, options);
    if (found === undefined) return missing(path, store);
    return { data: found.data, version: versionOf(found.data) };
  }

  async grep({ path, store }: StorePath, search: Search) {
    const listed = await collect(store.list(path, search.options));
    return grepListed(listed, { ...search, path }, (files) =>
      readAhead(files, async (file): Promise<SearchableContent> => {
        const data = file.data ?? (await getUnlessLarge(store, file.path, search.options));
        return data === undefined ? { kind: "skipped" } : searchable(file.path, data);
      }),
    );
  }

  async glob({ path, store }: StorePath, pattern: string, options: CallOptions) {
    return globFlat(pattern, path, await collect(store.list(path, options)));
  }

  put(at: StorePath, bytes: Uint8Array, options: WriteOptions) {
    return this.#change(at, options, (old) => refusedWrite(at.path, old, options) ?? { bytes });
  }

  override upload(at: StorePath, bytes: Uint8Array, options: CallOptions) {
    return this.#change(at, options, () => ({ bytes }), "any");
  }

  async edit(at: StorePath, edit: Edit) {
    let occurrences = 0;
    const result = await this.#change(at, edit, (old) => {
      if (old === undefined) return errors.fileNotFound(at.path);
      const edited = editFileData(at.path, old, edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      occurrences = edited.occurrences;
      return { bytes: edited.bytes };
    });
    return result.error === undefined ? { ...result, occurrences } : result;
  }

  async delete({ path, store }: StorePath, options: CallOptions) {
    if (path === "/") return errors.refusedToDelete(path);
    const files = await collect(store.list(path, options));
    if (files.length === 0) return errors.fileNotFound(path);
    const slots = new Semaphore(PARALLEL_TRANSFERS);
    await Promise.all(
      files.map((file) =>
        slots.run(() => lockedFile(store, file.path, async () => store.remove(file.path, options))),
      ),
    );
    return { path, filesUpdate: null };
  }

  /** Stores what `plan` makes of the file that is there; when that was replaced meanwhile, of the new one. */
  #change(
    { path, store }: StorePath,
    options: CallOptions,
    plan: (old: FileData | undefined) => { bytes: Uint8Array } | errors.BackendFailure,
    whatever?: "any",
  ): Promise<WriteResult> {
    return lockedFile(store, path, async (): Promise<WriteResult> => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const found = await store.get(path, options);
        const obstacle = found === undefined ? await obstacleTo(path, store, options) : undefined;
        if (obstacle !== undefined) return obstacle;
        const changed = plan(found?.data);
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
    });
  }
}

/**
 * A backend over any `FileStore`.
 *
 * Writes to one file are serialized in this process. Against other processes they are as safe as the store's
 * `put`. Searches read the files below their path whose names the filter accepts, and no others.
 */
export class FileStoreBackend extends CheckedBackend {
  readonly capabilities: Partial<BackendCapabilities>;

  /** `store` may be a function, called for each operation, that gives the store or why there is none. */
  constructor(
    store: FileStore | (() => FileStore | errors.BackendFailure),
    options: FileStoreBackendOptions = {},
  ) {
    super(new StoreOperations(typeof store === "function" ? store : () => store, options));
    const { lifetime = "persistent", writes }: Partial<FileStore> = typeof store === "function" ? {} : store;
    this.capabilities = {
      ...COMPLETE,
      paths: "virtual",
      isolation: "none",
      lifetime,
      ...(writes === undefined ? {} : { writes }),
    };
  }
}

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
    if (begun.length === PARALLEL_TRANSFERS) yield* begun.splice(0, 1);
  }
  yield* begun;
}
