import { type Clock, isoTime, systemClock } from "../../core/clock.ts";
import type { OptionTable } from "../../core/options.ts";
import type {
  Backend,
  BackendCapabilities,
  BackendRuntime,
  CallOptions,
  FileData,
  FileInfo,
  FileUploadResponse,
  ThreadFiles,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import {
  COMPLETE,
  CheckedBackend,
  type Edit,
  type Located,
  type Operations,
  PutOperations,
  type Search,
} from "../checked-backend.ts";
import * as errors from "../errors.ts";
import { type FileFormat, editFileData, infoOf, readFileData, toFileData, versionOf } from "../file-data.ts";
import type { PageRequest } from "../pages.ts";
import { isAtOrBelow, parentsOf, validatePath } from "../paths.ts";
import { type StateAndStore, ambientRuntime, bindRuntime, splitArguments } from "../runtime.ts";
import { globFlat, grepFlat, listFlat, refusedWrite } from "../search.ts";

export interface StateBackendOptions {
  /** `v1` keeps lines, for old readers. Both are read. Default `v2`. */
  fileFormat?: FileFormat;
  clock?: Clock;
}

const OPTIONS: OptionTable<StateBackendOptions> = {
  fileFormat: "a text",
  clock: "a function",
};

interface StatePath extends Located {
  files: ThreadFiles;
}

class StateOperations extends PutOperations implements Operations {
  readonly atOnce = true;
  readonly #runtime: BackendRuntime | undefined;
  readonly #options: StateBackendOptions;

  constructor(runtime: BackendRuntime | undefined, options: StateBackendOptions) {
    super();
    this.#runtime = runtime;
    this.#options = options;
  }

  locate(given: string): ({ ok: true } & StatePath) | ({ ok: false } & errors.BackendFailure) {
    const valid = validatePath(given);
    if (!valid.ok) return valid;
    const runtime = this.#runtime ?? ambientRuntime();
    return runtime === undefined
      ? { ok: false, ...errors.threadFilesMissing() }
      : { ok: true, path: valid.path, files: runtime.files };
  }

  ls({ path, files }: StatePath) {
    return listFlat(path, infosOf(files));
  }

  read({ path, files }: StatePath, page: PageRequest) {
    const data = files.get(path);
    return data === undefined ? missing(path, files) : readFileData(path, data, page);
  }

  readRaw({ path, files }: StatePath) {
    const data = files.get(path);
    return data === undefined ? missing(path, files) : { data, version: versionOf(data) };
  }

  grep({ path, files }: StatePath, search: Search) {
    return grepFlat(files.entries(), { ...search, path });
  }

  glob({ path, files }: StatePath, pattern: string) {
    return globFlat(pattern, path, infosOf(files));
  }

  put({ path, files }: StatePath, bytes: Uint8Array, options: WriteOptions) {
    const old = files.get(path);
    return (
      obstacleTo(path, files) ?? refusedWrite(path, old, options) ?? this.#store(files, path, bytes, old)
    );
  }

  edit({ path, files }: StatePath, edit: Edit) {
    const old = files.get(path);
    if (old === undefined) return missing(path, files);
    const edited = editFileData(path, old, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    return { ...this.#store(files, path, edited.bytes, old), occurrences: edited.occurrences };
  }

  delete({ path, files }: StatePath) {
    if (path === "/") return errors.refusedToDelete(path);
    const below = [...files.entries()].map(([known]) => known).filter((known) => isAtOrBelow(known, path));
    if (below.length === 0) return errors.fileNotFound(path);
    const filesUpdate = Object.fromEntries(below.map((known): [string, null] => [known, null]));
    files.apply(filesUpdate);
    return { path, ...this.#returned(filesUpdate) };
  }

  #store(files: ThreadFiles, path: string, bytes: Uint8Array, old: FileData | undefined): WriteResult {
    const now = isoTime((this.#options.clock ?? systemClock)());
    const data = toFileData(path, bytes, { now, createdAt: old?.created_at }, this.#options.fileFormat);
    const filesUpdate = { [path]: data };
    files.apply(filesUpdate);
    return { path, ...this.#returned(filesUpdate), version: versionOf(data) };
  }

  /** The change, unless the calling task has stored it already. */
  #returned<Update>(filesUpdate: Update): { filesUpdate?: Update } {
    return this.#runtime === undefined ? {} : { filesUpdate };
  }
}

/**
 * Files in the state of the running thread: checkpointed with it, gone with it, seen by no other thread.
 *
 * Without a runtime, an agent ties the backend to the runtime of each tool call. Elsewhere it works on the LangGraph
 * task that calls it and puts changes into the state itself. With a runtime, the caller does that: a change is
 * returned as `filesUpdate`. Later calls of the same step see it at once. Every operation but `grep` gives its
 * result at once, so parallel calls cannot interleave.
 */
export class StateBackend extends CheckedBackend<true> {
  readonly capabilities: Partial<BackendCapabilities> = {
    ...COMPLETE,
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
    super(new StateOperations(split.runtime, split.options));
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: BackendRuntime): Backend {
    return this.#runtime === undefined ? new StateBackend(runtime, this.#options) : this;
  }

  override uploadFiles(files: Array<[string, Uint8Array]>, options?: CallOptions): FileUploadResponse[] {
    const answers = super.uploadFiles(files, options);
    if (this.#runtime === undefined) return answers;
    // Programs for deepagents read the change of all files from the list.
    const filesUpdate: unknown = Object.assign({}, ...answers.map((answer) => answer.filesUpdate));
    return Object.defineProperty(answers, "filesUpdate", { value: filesUpdate });
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

/** Why no file can be at `path`: the path is a directory, or one of its parents is a file. */
function obstacleTo(path: string, files: ThreadFiles): errors.BackendFailure | undefined {
  if (parentsOf(path).some((parent) => files.get(parent) !== undefined)) return errors.parentIsFile(path);
  return hasFilesBelow(path, files) ? errors.isDirectory(path) : undefined;
}
