import type { BaseStore } from "@langchain/langgraph-checkpoint";
import type { OptionTable } from "../../core/options.ts";
import { type Clock, isoTime, systemClock } from "../../core/clock.ts";
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
} from "../backend.ts";
import * as errors from "../errors.ts";
import {
  bytesOf,
  bytesToWrite,
  editFileData,
  type FileFormat,
  infoOf,
  readFileData,
  toFileData,
  versionOf,
} from "../file-data.ts";
import { globFlat, grepFlat, listFlat } from "../flat-files.ts";
import { fileLocks } from "../keyed-lock.ts";
import { pageRequest } from "../pages.ts";
import { validatePath } from "../paths.ts";
import { bindRuntime, splitArguments } from "../runtime.ts";
import { openCell } from "./cell.ts";
import { fromItem, toItem, unbatched } from "./items.ts";
import { filesBelow, filesToList } from "./listing.ts";
import { badNamespace, namespaceOf, type StoreNamespace } from "./namespace.ts";

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

const OPTIONS: OptionTable<StoreBackendOptions> = {
  store: "anything",
  namespace: "anything",
  fileFormat: "a text",
  clock: "a function",
};

/**
 * Files in a LangGraph `BaseStore`, shared by all threads: one item per file, the path is its key.
 *
 * An operation on one file touches one item, so a path that is also the directory of others is not
 * noticed. Writes to one path are serialized in this process; against other processes they are
 * compare-and-set where the store offers it, else the item is looked at again just before it is put.
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
    const split = splitArguments("StoreBackend", OPTIONS, runtimeOrOptions, options);
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StoreBackend(runtime, this.#options) : this;
  }

  async ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, options, async (path, place) => {
      const one = path === "/" ? undefined : await get(place, path);
      if (one !== undefined) return { files: [infoOf(path, one)] };
      return listFlat(path, (await collect(filesToList({ ...place, path }))).map(toInfo));
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
      const files: [string, FileData][] =
        one === undefined ? await collect(filesBelow({ ...place, path })) : [[path, one]];
      return grepFlat(files, { pattern, path, glob, maxCount, options });
    });
  }

  async glob(pattern: string, path = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(path, options, async (path, place) =>
      globFlat(pattern, path, (await collect(filesBelow({ ...place, path }))).map(toInfo)),
    );
  }

  async write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    return this.#exclusively(filePath, options, async (path, place) => {
      const given = bytesToWrite(path, content);
      return this.#change(path, place, (old) => {
        if (path === "/") return errors.isDirectory(path);
        if (!given.ok) return { error: given.error, code: given.code };
        if (old !== undefined && options.mode !== "overwrite") return errors.alreadyExists(path);
        if (options.expectedVersion !== undefined && options.expectedVersion !== (old && versionOf(old))) {
          return errors.changedSinceRead(path);
        }
        return { bytes: given.bytes };
      });
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
      let occurrences = 0;
      const edit = { oldString, newString, replaceAll, expectedVersion: options.expectedVersion };
      const result = await this.#change(path, place, (old) => {
        if (old === undefined) return missing(path);
        const edited = editFileData(path, old, edit);
        if (!edited.ok) return { error: edited.error, code: edited.code };
        occurrences = edited.occurrences;
        return { bytes: edited.bytes };
      });
      return result.error === undefined ? { ...result, occurrences } : result;
    });
  }

  async delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#exclusively(filePath, options, async (path, place): Promise<DeleteResult> => {
      if (path === "/") return errors.refusedToDelete(path);
      const one = await get(place, path);
      const keys =
        one === undefined ? (await collect(filesBelow({ ...place, path }))).map(([key]) => key) : [path];
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
          this.#change(path, place, () => (path === "/" ? errors.isDirectory(path) : { bytes })),
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
    const store = this.#options.store ?? this.#runtime?.store;
    return store === undefined
      ? undefined
      : { store: unbatched(store), namespace: namespaceOf(this.#options.namespace, this.#runtime) };
  }

  /** Puts what `change` makes of the stored file; when that was replaced meanwhile, of the new one. */
  async #change(
    path: string,
    { store, namespace }: Place,
    change: (old: FileData | undefined) => { bytes: Uint8Array } | errors.BackendFailure,
  ): Promise<WriteResult> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const cell = await openCell(store, namespace, path);
      const changed = change(cell.data);
      if ("error" in changed) return changed;
      const now = isoTime((this.#options.clock ?? systemClock)());
      const times = { now, createdAt: cell.data?.created_at };
      const data = toFileData(path, changed.bytes, times, this.#options.fileFormat);
      if (await cell.put(toItem(data))) return { path, filesUpdate: null, version: versionOf(data) };
    }
    return errors.changedSinceRead(path);
  }
}

/** How often a change is made again on what another process has put there meanwhile. */
const MAX_ATTEMPTS = 5;

const missing = (path: string): errors.BackendFailure =>
  path === "/" ? errors.isDirectory(path) : errors.fileNotFound(path);

const toInfo = ([path, data]: [string, FileData]): FileInfo => infoOf(path, data);

async function get({ store, namespace }: Place, path: string): Promise<FileData | undefined> {
  const item = await store.get(namespace, path);
  return item === null ? undefined : fromItem(item.value);
}

async function collect(files: AsyncIterable<[string, FileData]>): Promise<[string, FileData][]> {
  const found: [string, FileData][] = [];
  for await (const file of files) found.push(file);
  return found;
}
