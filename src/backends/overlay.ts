import { type Clock, isoTime, systemClock } from "../core/clock.ts";
import { type OptionTable, readOptions } from "../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  BackendSource,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  FileData,
  FileDownloadResponse,
  FileInfo,
  FileRoot,
  FileUploadResponse,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  ReadRawResult,
  ReadResult,
  ThreadFiles,
  WriteOptions,
  WriteResult,
} from "./backend.ts";
import * as errors from "./errors.ts";
import {
  bytesOf,
  bytesToWrite,
  editFileData,
  infoOf,
  readFileData,
  toFileData,
  versionOf,
} from "./file-data.ts";
import { pageRequest } from "./pages.ts";
import { isAtOrBelow, parentsOf, validatePath, withoutSlash } from "./paths.ts";
import { checkBackend, obtainBackend } from "./resolve.ts";
import { bindRuntime } from "./runtime.ts";
import { DEFAULT_MAX_COUNT, globFlat, grepFlat, listFlat, sortByPath } from "./search.ts";

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

/** How an overlay puts what its base answers together with its own changes. */

export function* infosOf(changes: OverlayChanges): Generator<FileInfo> {
  for (const [path, data] of changes.entries()) yield infoOf(path, data);
}

const isShown = (path: string, changes: OverlayChanges): boolean =>
  changes.get(path) === undefined && !changes.hidesBase(path) && !isReserved(path);

/** What is not in the base may be in the changes and the other way round; other failures of the base count. */
export function mergeFiles<Result extends LsResult | GlobResult>(
  base: Result,
  own: Result,
  changes: OverlayChanges,
): Result {
  if (base.error !== undefined) return base.code === "not_found" && own.error === undefined ? own : base;
  const merged = new Map<string, FileInfo>((own.files ?? []).map((file) => [file.path, file]));
  for (const file of base.files ?? []) {
    // A directory of both is shown as the base has it, with its time.
    if (isShown(withoutSlash(file.path), changes)) merged.set(file.path, file);
  }
  return { ...base, files: sortByPath([...merged.values()]) };
}

/** How many times its cap a search may ask for to make up for matches that are not shown. */
const MAX_GROWTH = 256;

/** A search of the base without what was changed or deleted: more than `wanted` matches of it if there are. */
export async function grepBase(
  changes: OverlayChanges,
  wanted: number,
  ask: (cap: number) => GrepResult | Promise<GrepResult>,
): Promise<GrepResult> {
  for (let cap = wanted; ; cap *= 4) {
    const result = await ask(cap);
    if (result.matches === undefined) return result;
    const matches = result.matches.filter(({ path }) => isShown(path, changes));
    // Fewer than the cap: it is the time that was up.
    const isAll = result.truncated !== true || result.matches.length < cap || cap > wanted * MAX_GROWTH;
    if (isAll || matches.length > wanted) return { ...result, matches };
  }
}

/** What is said of a path at which the base is not asked; undefined when it is. */
export function hiddenFile(path: string, changes: OverlayChanges): errors.BackendFailure | undefined {
  if (!changes.hidesBase(path)) return undefined;
  return changes.hasBelow(path) ? errors.isDirectory(path) : errors.fileNotFound(path);
}

export const orDirectory = <Result extends ReadResult | ReadRawResult>(
  result: Result,
  path: string,
  changes: OverlayChanges,
): Result | errors.BackendFailure =>
  result.code === "not_found" && changes.hasBelow(path) ? errors.isDirectory(path) : result;

/** A file that is there all the same. */
const UNREADABLE_FILE = new Set(["binary", "encoding", "too_large", "out_of_range"]);

/** The file the base has at a path; undefined when one can be made there, or why not. */
export async function entryIn(
  base: Backend,
  path: string,
  options: CallOptions,
): Promise<{ version?: string | undefined } | errors.BackendFailure | undefined> {
  const found = await look(base, path, options);
  if (found !== undefined) return found;
  for (const parent of parentsOf(path).reverse()) {
    const above = await look(base, parent, options);
    if (above === undefined) continue;
    if (!("error" in above)) return errors.parentIsFile(path);
    return above.code === "is_directory" ? undefined : above;
  }
  return undefined;
}

async function look(
  base: Backend,
  path: string,
  options: CallOptions,
): Promise<{ version?: string | undefined } | errors.BackendFailure | undefined> {
  const { error, code, version } = await base.read(path, 0, 1, options);
  if (error === undefined || (code !== undefined && UNREADABLE_FILE.has(code))) return { version };
  return code === "not_found" ? undefined : { error, code: code ?? "io" };
}

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
