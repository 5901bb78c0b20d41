import { type Clock, isoTime, systemClock } from "../../core/clock.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  FileDownloadResponse,
  FileRoot,
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
import { bytesOf, bytesToWrite, editFileData, readFileData, toFileData, versionOf } from "../file-data.ts";
import { globFlat, grepFlat, listFlat, sortByPath } from "../flat-files.ts";
import { isReserved, OverlayChanges } from "./changes.ts";
import { entryIn, grepBase, hiddenFile, infosOf, mergeFiles, orDirectory } from "./merge.ts";
import { pageRequest } from "../pages.ts";
import { parentsOf, validatePath } from "../paths.ts";
import { checkBackend, obtainBackend } from "../resolve.ts";
import { bindRuntime } from "../runtime.ts";
import { DEFAULT_MAX_COUNT } from "../search.ts";

const OPTIONS: OptionTable<{ clock?: Clock }> = { clock: "a function" };

/**
 * Any backend with virtual paths, never changed: writes, edits and deletions are kept in the files of the
 * thread and show on top of it, for this thread alone. So an agent can work on a folder and leave it as it
 * is. Names that start with `.wh.` are reserved for the record of deletions. It runs no commands.
 */
export class OverlayBackend implements Backend {
  readonly capabilities: Partial<BackendCapabilities> = {
    writeMode: true,
    regexGrep: true,
    versions: true,
    abort: true,
    rawRead: true,
    paths: "virtual",
    lifetime: "thread",
    isolation: "none",
  };
  readonly #source: BackendSource;
  readonly #runtime: BackendRuntime | undefined;
  readonly #clock: Clock;
  #made: Promise<Backend> | undefined;

  constructor(base: BackendSource, given: { clock?: Clock } = {}, runtime?: BackendRuntime) {
    checkBackend("The first argument of OverlayBackend", base);
    const options = readOptions("OverlayBackend", given, OPTIONS);
    this.#source = base;
    this.#clock = options.clock ?? systemClock;
    this.#runtime = runtime;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return new OverlayBackend(this.#source, { clock: this.#clock }, runtime);
  }

  /** Files of others can be read, and what is written stays in the conversation. */
  roots(): FileRoot[] {
    return [{ path: "/", holds: "thread" }];
  }

  ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#at(path, async (at, changes, base) => {
      const own = listFlat(at, infosOf(changes));
      if (changes.get(at) !== undefined) return own;
      const lower = changes.hidesBase(at) ? errors.directoryNotFound(at) : await base.ls(at, options);
      return mergeFiles<LsResult>(lower, own, changes);
    });
  }

  read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#at(filePath, async (path, changes, base): Promise<ReadResult> => {
      const own = changes.get(path);
      if (own !== undefined) return readFileData(path, own, pageRequest(offset, limit));
      return (
        hiddenFile(path, changes) ?? orDirectory(await base.read(path, offset, limit, options), path, changes)
      );
    });
  }

  readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#at(filePath, async (path, changes, base): Promise<ReadRawResult> => {
      const own = changes.get(path);
      if (own !== undefined) return { data: own, version: versionOf(own) };
      return hiddenFile(path, changes) ?? orDirectory(await base.readRaw(path, options), path, changes);
    });
  }

  glob(pattern: string, directory = "/", options?: CallOptions): Promise<GlobResult> {
    return this.#at(directory, async (at, changes, base) => {
      const own = globFlat(pattern, at, infosOf(changes));
      if (own.error !== undefined && own.code !== "not_found") return own;
      const lower = changes.hidesBase(at)
        ? errors.directoryNotFound(at)
        : await base.glob(pattern, at, options);
      return mergeFiles(lower, own, changes);
    });
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", async (at, changes, base): Promise<GrepResult> => {
      const wanted = maxCount ?? DEFAULT_MAX_COUNT;
      const own = await grepFlat(changes.entries(), { pattern, path: at, glob, maxCount: wanted, options });
      if (changes.get(at) !== undefined || (own.error !== undefined && own.code !== "not_found")) return own;
      const lower: GrepResult = changes.hidesBase(at)
        ? errors.pathNotFound(at)
        : await grepBase(changes, wanted, (cap) => base.grep(pattern, at, glob, cap, options));
      if (lower.error !== undefined)
        return lower.code === "not_found" && own.error === undefined ? own : lower;
      const matches = sortByPath([...(lower.matches ?? []), ...(own.matches ?? [])]);
      const truncated = lower.truncated === true || own.truncated === true || matches.length > wanted;
      return { ...lower, matches: matches.slice(0, wanted), truncated };
    });
  }

  async write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    const given = bytesToWrite(filePath, content);
    return given.ok ? this.#put(filePath, given.bytes, options) : { error: given.error, code: given.code };
  }

  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    { expectedVersion, signal }: EditOptions = {},
  ): Promise<EditResult> {
    return this.#at(filePath, async (path, changes): Promise<EditResult> => {
      const found = await this.readRaw(path, signal === undefined ? {} : { signal });
      // Another call may have changed or deleted it while the base was read.
      const own = changes.get(path);
      const data = own ?? (changes.hidesBase(path) ? undefined : found.data);
      if (data === undefined) {
        return found.error === undefined
          ? errors.fileNotFound(path)
          : { error: found.error, code: found.code };
      }
      const version = own === undefined ? found.version : versionOf(own);
      if (expectedVersion !== undefined && expectedVersion !== version) return errors.changedSinceRead(path);
      const edited = editFileData(path, data, { oldString, newString, replaceAll });
      if (!edited.ok) return { error: edited.error, code: edited.code };
      const stored = this.#store(changes, path, edited.bytes, data.created_at);
      return { ...stored, occurrences: edited.occurrences };
    });
  }

  delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#at(filePath, async (path, changes, base): Promise<DeleteResult> => {
      if (path === "/") return errors.refusedToDelete(path);
      const lower = changes.hidesBase(path) ? errors.fileNotFound(path) : await base.ls(path, options);
      const isInBase = lower.error === undefined;
      if (!isInBase && lower.code !== "not_found") return lower;
      const isOwn = changes.get(path) !== undefined || changes.hasBelow(path);
      if (!isInBase && !isOwn) return errors.fileNotFound(path);
      const now = isoTime(this.#clock());
      const mark = isInBase ? toFileData(path, new Uint8Array(), { now }) : undefined;
      return { path, ...changes.delete(path, mark) };
    });
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: CallOptions,
  ): Promise<FileUploadResponse[]> {
    const answers: FileUploadResponse[] = [];
    for (const [path, bytes] of files) {
      const { code, filesUpdate } = await this.#put(path, bytes, { ...options, mode: "overwrite" });
      const update = filesUpdate === undefined ? {} : { filesUpdate };
      answers.push({ path, error: errors.operationError(code), ...update });
    }
    return answers;
  }

  downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    return Promise.all(
      paths.map(async (path): Promise<FileDownloadResponse> => {
        const { data, code } = await this.readRaw(path, options);
        return data === undefined
          ? { path, content: null, error: errors.operationError(code) ?? "file_not_found" }
          : { path, content: bytesOf(data), error: null };
      }),
    );
  }

  #put(filePath: string, bytes: Uint8Array, options: WriteOptions): Promise<WriteResult> {
    return this.#at(filePath, async (path, changes, base): Promise<WriteResult> => {
      const isOwn = changes.get(path) !== undefined || changes.hidesBase(path);
      const found = isOwn ? undefined : await entryIn(base, path, options);
      if (options.signal?.aborted === true) return errors.operationAborted(path);
      if (found !== undefined && "error" in found) return found;
      // Another call may have deleted it while the base was asked.
      const below = changes.hidesBase(path) ? undefined : found;
      if (path === "/" || changes.hasBelow(path)) return errors.isDirectory(path);
      if (parentsOf(path).some((at) => changes.get(at) !== undefined)) return errors.parentIsFile(path);
      const own = changes.get(path);
      const version = own === undefined ? below?.version : versionOf(own);
      if ((own ?? below) !== undefined && options.mode !== "overwrite") return errors.alreadyExists(path);
      if (options.expectedVersion !== undefined && options.expectedVersion !== version)
        return errors.changedSinceRead(path);
      return this.#store(changes, path, bytes, own?.created_at);
    });
  }

  #store(
    changes: OverlayChanges,
    path: string,
    bytes: Uint8Array,
    createdAt: string | undefined,
  ): WriteResult {
    const times = { now: isoTime(this.#clock()), ...(createdAt === undefined ? {} : { createdAt }) };
    const data = toFileData(path, bytes, times);
    return { path, filesUpdate: changes.put(path, data), version: versionOf(data) };
  }

  async #at<Result extends object>(
    filePath: string,
    run: (path: string, changes: OverlayChanges, base: Backend) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const valid = validatePath(filePath);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    if (isReserved(valid.path)) return errors.reservedName(valid.path);
    if (this.#runtime === undefined) return errors.threadFilesMissing();
    this.#made ??= obtainBackend(this.#source, this.#runtime);
    return run(valid.path, new OverlayChanges(this.#runtime.files), await this.#made);
  }
}
