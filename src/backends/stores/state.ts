import { type Clock, isoTime, systemClock } from "../../core/clock.ts";
import type { OptionTable } from "../../core/options.ts";
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
  ThreadFiles,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import * as errors from "../errors.ts";
import {
  type FileFormat,
  bytesToWrite,
  editFileData,
  infoOf,
  readFileData,
  toFileData,
  versionOf,
} from "../file-data.ts";
import { pageRequest } from "../pages.ts";
import { isAtOrBelow, parentsOf, validatePath } from "../paths.ts";
import { type StateAndStore, ambientRuntime, bindRuntime, splitArguments } from "../runtime.ts";
import { downloadOf, globFlat, grepFlat, listFlat, refusedWrite } from "../search.ts";

export interface StateBackendOptions {
  /** `v1` keeps lines, for old readers. Both are read. Default `v2`. */
  fileFormat?: FileFormat;
  clock?: Clock;
}

const OPTIONS: OptionTable<StateBackendOptions> = {
  fileFormat: "a text",
  clock: "a function",
};

/**
 * Files in the state of the running thread: checkpointed with it, gone with it, seen by no other thread.
 *
 * Made without a runtime it is tied to that of each tool call by the agent it is given to, and else works on
 * the LangGraph task that calls it, and puts changes into the state itself. With a runtime the caller does that:
 * a change is returned as `filesUpdate`. It is visible to later calls of the same step at once.
 * Every operation but `grep` finishes in one turn, so parallel calls cannot interleave.
 */
export class StateBackend implements Backend {
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
  readonly #runtime: BackendRuntime | undefined;
  readonly #options: StateBackendOptions;

  constructor(
    runtimeOrOptions?: BackendRuntime | StateAndStore | StateBackendOptions,
    options?: StateBackendOptions,
  ) {
    const split = splitArguments("StateBackend", OPTIONS, runtimeOrOptions, options);
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StateBackend(runtime, this.#options) : this;
  }

  ls(path: string, _options?: CallOptions): LsResult {
    return this.#at(path, (path, files) => listFlat(path, infosOf(files)));
  }

  read(filePath: string, offset?: number, limit?: number, _options?: CallOptions): ReadResult {
    return this.#at(filePath, (path, files) => {
      const data = files.get(path);
      return data === undefined ? missing(path, files) : readFileData(path, data, pageRequest(offset, limit));
    });
  }

  readRaw(filePath: string, _options?: CallOptions): ReadRawResult {
    return this.#at(filePath, (path, files) => {
      const data = files.get(path);
      return data === undefined ? missing(path, files) : { data, version: versionOf(data) };
    });
  }

  async grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", (path, files) =>
      grepFlat(files.entries(), { pattern, path, glob, maxCount, options }),
    );
  }

  glob(pattern: string, path = "/", _options?: CallOptions): GlobResult {
    return this.#at(path, (path, files) => globFlat(pattern, path, infosOf(files)));
  }

  write(filePath: string, content: string, options: WriteOptions = {}): WriteResult {
    return this.#at(filePath, (path, files) => {
      const bytes = bytesToWrite(path, content);
      if (!bytes.ok) return { error: bytes.error, code: bytes.code };
      const old = files.get(path);
      const obstacle = obstacleTo(path, files);
      if (obstacle !== undefined) return obstacle;
      return refusedWrite(path, old, options) ?? this.#put(files, path, bytes.bytes, old);
    });
  }

  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: EditOptions = {},
  ): EditResult {
    return this.#at(filePath, (path, files): EditResult => {
      const old = files.get(path);
      if (old === undefined) return missing(path, files);
      const edit = { oldString, newString, replaceAll, expectedVersion: options.expectedVersion };
      const edited = editFileData(path, old, edit);
      if (!edited.ok) return { error: edited.error, code: edited.code };
      return { ...this.#put(files, path, edited.bytes, old), occurrences: edited.occurrences };
    });
  }

  delete(filePath: string, _options?: CallOptions): DeleteResult {
    return this.#at(filePath, (path, files): DeleteResult => {
      if (path === "/") return errors.refusedToDelete(path);
      const below = [...files.entries()].map(([known]) => known).filter((known) => isAtOrBelow(known, path));
      if (below.length === 0) return errors.fileNotFound(path);
      const filesUpdate = Object.fromEntries(below.map((known): [string, null] => [known, null]));
      files.apply(filesUpdate);
      return this.#returned({ path, filesUpdate });
    });
  }

  uploadFiles(files: Array<[string, Uint8Array]>, _options?: CallOptions): FileUploadResponse[] {
    const answers = files.map(([filePath, bytes]): FileUploadResponse => {
      const result: WriteResult = this.#at(filePath, (path, files): WriteResult => {
        const obstacle = obstacleTo(path, files);
        return obstacle ?? this.#put(files, path, bytes, files.get(path));
      });
      const update = result.filesUpdate === undefined ? {} : { filesUpdate: result.filesUpdate };
      return { path: filePath, error: errors.operationError(result.code), ...update };
    });
    if (this.#runtime === undefined) return answers;
    // Programs for deepagents take the change of all files from the list.
    const filesUpdate: unknown = Object.assign({}, ...answers.map((answer) => answer.filesUpdate));
    return Object.defineProperty(answers, "filesUpdate", { value: filesUpdate });
  }

  downloadFiles(paths: string[], _options?: CallOptions): FileDownloadResponse[] {
    return paths.map((path) => downloadOf(path, this.readRaw(path)));
  }

  #at<Result extends object>(
    filePath: string,
    run: (path: string, files: ThreadFiles) => Result,
  ): Result | errors.BackendFailure {
    const valid = validatePath(filePath);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    const runtime = this.#runtime ?? ambientRuntime();
    return runtime === undefined ? errors.threadFilesMissing() : run(valid.path, runtime.files);
  }

  #put(files: ThreadFiles, path: string, bytes: Uint8Array, old: FileData | undefined): WriteResult {
    const now = isoTime((this.#options.clock ?? systemClock)());
    const data = toFileData(path, bytes, { now, createdAt: old?.created_at }, this.#options.fileFormat);
    const filesUpdate = { [path]: data };
    files.apply(filesUpdate);
    return this.#returned({ path, filesUpdate, version: versionOf(data) });
  }

  /** Leaves out the change when the task that calls has it already. */
  #returned<Result extends { filesUpdate?: unknown }>(result: Result): Result | Omit<Result, "filesUpdate"> {
    if (this.#runtime !== undefined) return result;
    const { filesUpdate: _, ...rest } = result;
    return rest;
  }
}

function* infosOf(files: ThreadFiles): Iterable<FileInfo> {
  for (const [path, data] of files.entries()) yield infoOf(path, data);
}

function hasFilesBelow(path: string, files: ThreadFiles): boolean {
  if (path === "/") return true;
  for (const [known] of files.entries()) if (known !== path && isAtOrBelow(known, path)) return true;
  return false;
}

const missing = (path: string, files: ThreadFiles): errors.BackendFailure =>
  hasFilesBelow(path, files) ? errors.isDirectory(path) : errors.fileNotFound(path);

/** Why no file can be at `path`, as in a real tree: a directory is there, or a file is where a parent would be. */
function obstacleTo(path: string, files: ThreadFiles): errors.BackendFailure | undefined {
  if (parentsOf(path).some((parent) => files.get(parent) !== undefined)) return errors.parentIsFile(path);
  return hasFilesBelow(path, files) ? errors.isDirectory(path) : undefined;
}
