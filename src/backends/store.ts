import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { ConfigurationError } from "../core/errors.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
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
  ReadRawResult,
  ReadResult,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import * as errors from "./errors.ts";
import {
  bytesOf,
  bytesToWrite,
  editFileData,
  type FileFormat,
  infoOf,
  readFileData,
  toFileData,
  versionOf,
} from "./file-data.ts";
import { globFlat, grepFlat, listFlat } from "./flat-files.ts";
import { fileLocks } from "./keyed-lock.ts";
import { pageRequest } from "./pages.ts";
import { isAtOrBelow, validatePath } from "./paths.ts";
import { bindRuntime, currentRuntime, splitArguments } from "./runtime.ts";
import { filesOf, fromItem, toItem } from "./store-items.ts";

export type StoreNamespace = readonly string[] | ((runtime: BackendRuntime | undefined) => readonly string[]);

export interface StoreBackendOptions {
  /** Default: the store of the runtime. */
  store?: BaseStore;
  /** Default `[assistantId, "filesystem"]`, without an assistant `["filesystem"]`. */
  namespace?: StoreNamespace;
  /** `v1` keeps lines, for old readers. Both are read. Default `v2`. */
  fileFormat?: FileFormat;
  clock?: Clock;
}

/** An open place in a store: where one call works. */
interface Place {
  store: BaseStore;
  namespace: string[];
}

/**
 * Files in a LangGraph `BaseStore`, shared by all threads: one item per file, the path is its key.
 *
 * An operation on one file touches one item, so a path that is also the directory of others is not
 * noticed. Writes to one path are serialized in this process; against other processes the version is
 * checked just before the item is put, because a `BaseStore` offers nothing stronger.
 */
export class StoreBackend implements Backend {
  readonly capabilities: Partial<BackendCapabilities> = {
    writeMode: true,
    regexGrep: true,
    versions: true,
    abort: true,
    rawRead: true,
    paths: "virtual",
    lifetime: "persistent",
    isolation: "none",
  };
  readonly #runtime: BackendRuntime | undefined;
  readonly #options: StoreBackendOptions;

  constructor(runtimeOrOptions?: BackendRuntime | StoreBackendOptions, options?: StoreBackendOptions) {
    const split = splitArguments(runtimeOrOptions, options);
    this.#runtime = split.runtime;
    this.#options = split.options ?? {};
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StoreBackend(runtime, this.#options) : this;
  }

  async ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, options, async (path, place) => {
      const one = path === "/" ? undefined : await get(place, path);
      if (one !== undefined) return { files: [infoOf(path, one)] };
      return listFlat(path, (await filesBelow(place, path)).map(toInfo));
    });
  }

  async read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#at(filePath, options, async (path, place) => {
      const data = await get(place, path);
      return data === undefined ? missing(path) : readFileData(path, data, pageRequest(offset, limit));
    });
  }

  async readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#at(filePath, options, async (path, place): Promise<ReadRawResult> => {
      const data = await get(place, path);
      return data === undefined ? missing(path) : { data, version: versionOf(data) };
    });
  }

  async grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", options, async (path, place) => {
      const one = path === "/" ? undefined : await get(place, path);
      const files: [string, FileData][] = one === undefined ? await filesBelow(place, path) : [[path, one]];
      return grepFlat(files, { pattern, path, glob, maxCount, options });
    });
  }

  async glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(path, options, async (path, place) =>
      globFlat(pattern, path, (await filesBelow(place, path)).map(toInfo)),
    );
  }

  async write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    return this.#exclusively(filePath, options, async (path, place) => {
      if (path === "/") return errors.isDirectory(path);
      const bytes = bytesToWrite(path, content);
      if (!bytes.ok) return { error: bytes.error, code: bytes.code };
      const old = await get(place, path);
      if (old !== undefined && options.mode !== "overwrite") return errors.alreadyExists(path);
      if (options.expectedVersion !== undefined && options.expectedVersion !== (old && versionOf(old))) {
        return errors.changedSinceRead(path);
      }
      return this.#put(place, path, bytes.bytes, old);
    });
  }

  async edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: EditOptions = {},
  ): Promise<EditResult> {
    return this.#exclusively(filePath, options, async (path, place): Promise<EditResult> => {
      const old = await get(place, path);
      if (old === undefined) return missing(path);
      const edit = { oldString, newString, replaceAll, expectedVersion: options.expectedVersion };
      const edited = editFileData(path, old, edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      const latest = await get(place, path);
      if (latest === undefined || versionOf(latest) !== versionOf(old)) return errors.changedSinceRead(path);
      return { ...(await this.#put(place, path, edited.bytes, old)), occurrences: edited.occurrences };
    });
  }

  async delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#exclusively(filePath, options, async (path, place): Promise<DeleteResult> => {
      if (path === "/") return errors.refusedToDelete(path);
      const one = await get(place, path);
      const keys = one === undefined ? (await filesBelow(place, path)).map(([key]) => key) : [path];
      if (keys.length === 0) return errors.fileNotFound(path);
      for (const key of keys) await place.store.delete(place.namespace, key);
      return { path, filesUpdate: null };
    });
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: CallOptions,
  ): Promise<FileUploadResponse[]> {
    return Promise.all(
      files.map(async ([filePath, bytes]) => {
        const result: WriteResult = await this.#exclusively(filePath, options, async (path, place) =>
          path === "/" ? errors.isDirectory(path) : this.#put(place, path, bytes, await get(place, path)),
        );
        return { path: filePath, error: errors.operationError(result.code) };
      }),
    );
  }

  async downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return Promise.all(
      paths.map(async (filePath) => {
        const raw = await this.readRaw(filePath, options);
        return raw.data === undefined
          ? { path: filePath, content: null, error: errors.operationError(raw.code) }
          : { path: filePath, content: bytesOf(raw.data), error: null };
      }),
    );
  }

  async #at<Result extends object>(
    filePath: string,
    options: CallOptions | undefined,
    run: (path: string, place: Place) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const valid = validatePath(filePath);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    if (options?.signal?.aborted === true) return errors.operationAborted(valid.path);
    const place = this.#place();
    if (place === undefined) return errors.storeMissing();
    try {
      return await run(valid.path, place);
    } catch (thrown) {
      if (thrown instanceof Error && thrown.name === "InvalidNamespaceError")
        throw badNamespace(place.namespace);
      // What a store throws may name hosts, files or connection strings.
      return errors.ioFailure(valid.path, "the store failed; try again");
    }
  }

  async #exclusively<Result extends object>(
    filePath: string,
    options: CallOptions | undefined,
    run: (path: string, place: Place) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    return this.#at(filePath, options, async (path, place) =>
      fileLocks.run(JSON.stringify(["store", ...place.namespace, path]), () => run(path, place)),
    );
  }

  #place(): Place | undefined {
    const runtime = this.#runtime ?? currentRuntime();
    const store = this.#options.store ?? runtime?.store;
    return store === undefined ? undefined : { store, namespace: namespaceOf(this.#options, runtime) };
  }

  async #put(
    { store, namespace }: Place,
    path: string,
    bytes: Uint8Array,
    old: FileData | undefined,
  ): Promise<WriteResult> {
    const now = isoTime((this.#options.clock ?? systemClock)());
    const data = toFileData(path, bytes, { now, createdAt: old?.created_at }, this.#options.fileFormat);
    await store.put(namespace, path, toItem(data));
    return { path, filesUpdate: null, version: versionOf(data) };
  }
}

const COMPONENT = /^[A-Za-z0-9_.@+:~-]+$/;

function namespaceOf(options: StoreBackendOptions, runtime: BackendRuntime | undefined): string[] {
  const assistant = runtime?.assistantId;
  const fallback = assistant === undefined ? ["filesystem"] : [assistant, "filesystem"];
  const chosen = typeof options.namespace === "function" ? options.namespace(runtime) : options.namespace;
  const namespace = [...(chosen ?? fallback)];
  const bad = namespace.find((component) => !COMPONENT.test(component));
  if (bad === undefined && namespace.length > 0) return namespace;
  throw badNamespace(namespace);
}

/** Many stores refuse periods as well, which only they can tell. */
const badNamespace = (namespace: readonly string[]): ConfigurationError =>
  new ConfigurationError(
    "STORE_NAMESPACE",
    `The store namespace ${JSON.stringify(namespace)} is not usable: give at least one part, each made of letters, digits and _ @ + : ~ - (and periods, where the store takes them)`,
  );

const missing = (path: string): errors.BackendFailure =>
  path === "/" ? errors.isDirectory(path) : errors.fileNotFound(path);

const toInfo = ([path, data]: [string, FileData]): FileInfo => infoOf(path, data);

async function get({ store, namespace }: Place, path: string): Promise<FileData | undefined> {
  const item = await store.get(namespace, path);
  return item === null ? undefined : fromItem(item.value);
}

async function filesBelow({ store, namespace }: Place, path: string): Promise<[string, FileData][]> {
  const found: [string, FileData][] = [];
  for await (const file of filesOf(store, namespace)) if (isAtOrBelow(file[0], path)) found.push(file);
  return found;
}
