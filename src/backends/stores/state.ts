import { isoTime, systemClock } from "../../core/clock.ts";
import type * as port from "../backend.ts";
import type { Located, Operations } from "../checked-backend.ts";
import { CheckedBackend, FILES_ONLY, loadedBy, storedBy } from "../checked-backend.ts";
import { type BackendFailure, errors } from "../errors.ts";
import { editFileData, toFileData, contentVersion } from "../file-data.ts";
import type { FileStoreBackendOptions } from "../file-store.ts";
import { parentPaths, validatePath } from "../paths.ts";
import { type StateAndStore, ambientRuntime, bindRuntime, splitArguments } from "../runtime.ts";
import {
  globFlat,
  grepFlat,
  hasBelow,
  toFileInfos,
  listFlat,
  pathsAtOrBelow,
  refusedWrite,
} from "../search.ts";

export type StateBackendOptions = FileStoreBackendOptions;

interface StatePath extends Located, StateBackendOptions {
  files: port.ThreadFiles;
  /** True if the caller puts the change into the state; else the calling task has stored it already. */
  returnsChange: boolean;
}

const STATE_OPERATIONS: Operations<StatePath> = {
  atOnce: true,
  ls: ({ path, files }) => listFlat(path, toFileInfos(files.entries())),
  ...loadedBy<StatePath>(({ path, files }) => files.get(path) ?? missingFile(path, files)),
  grep: ({ files }, search) => grepFlat(files.entries(), search),
  glob: ({ path, files }, pattern) => globFlat(pattern, path, toFileInfos(files.entries())),
  ...storedBy<StatePath>((at, bytes, options) => {
    const { path, files } = at;
    if (parentPaths(path).some((parent) => files.get(parent) !== undefined)) return errors.parentIsFile(path);
    if (hasBelow(path, files.entries())) return errors.isDirectory(path);
    const old = files.get(path);
    return refusedWrite(path, old, options) ?? putChange(at, bytes, old);
  }),
  edit: (at, edit) => {
    const old = at.files.get(at.path);
    if (old === undefined) return missingFile(at.path, at.files);
    const edited = editFileData(at.path, old, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    return { ...putChange(at, edited.bytes, old), occurrences: edited.occurrences };
  },
  refusal: ({ path, files }, change) =>
    change === "write" && parentPaths(path).some((parent) => files.get(parent) !== undefined)
      ? errors.parentIsFile(path)
      : undefined,
  delete: ({ path, files, returnsChange }) => {
    if (path === "/") return errors.refusedToDelete(path);
    const deleted = pathsAtOrBelow(path, files.entries());
    if (deleted.length === 0) return errors.fileNotFound(path);
    const filesUpdate = Object.fromEntries(deleted.map((known): [string, null] => [known, null]));
    files.apply(filesUpdate);
    return { path, ...(returnsChange ? { filesUpdate } : {}) };
  },
};

function putChange(at: StatePath, bytes: Uint8Array, old: port.FileData | undefined): port.WriteResult {
  const { path, files, fileFormat, clock = systemClock, returnsChange } = at;
  const times = { now: isoTime(clock()), createdAt: old?.created_at };
  const data = toFileData(path, bytes, times, fileFormat);
  const filesUpdate = { [path]: data };
  files.apply(filesUpdate);
  return { path, ...(returnsChange ? { filesUpdate } : {}), version: contentVersion(data) };
}

/**
 * Files in the state of the running thread: checkpointed with it, gone with it, seen by no other thread.
 *
 * Without a runtime, an agent ties the backend to the runtime of each tool call. Elsewhere it works on the LangGraph
 * task that calls it and puts changes into the state itself. With a runtime, the caller does that: a change is
 * returned as `filesUpdate`. Later calls of the same step see it at once. Every operation but `grep` returns its
 * result at once, so parallel calls cannot interleave.
 */
export class StateBackend extends CheckedBackend<true> {
  readonly capabilities: Partial<port.BackendCapabilities> = { ...FILES_ONLY, lifetime: "thread" };
  readonly #runtime: port.BackendRuntime | undefined;
  readonly #options: StateBackendOptions;

  constructor(
    runtimeOrOptions?: port.BackendRuntime | StateAndStore | StateBackendOptions,
    options?: StateBackendOptions,
  ) {
    const table = { fileFormat: "a text", clock: "a function" } as const;
    const split = splitArguments("StateBackend", table, runtimeOrOptions, options);
    super(STATE_OPERATIONS, (path) => {
      const valid = validatePath(path);
      if (!valid.ok) return valid;
      const files = (this.#runtime ?? ambientRuntime())?.files;
      if (files === undefined) return errors.threadFilesMissing();
      return { ...this.#options, path: valid.path, files, returnsChange: this.#runtime !== undefined };
    });
    this.#runtime = split.runtime;
    this.#options = split.options;
  }

  [bindRuntime](runtime: port.BackendRuntime): port.Backend {
    return this.#runtime === undefined ? new StateBackend(runtime, this.#options) : this;
  }

  override uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: port.CallOptions,
  ): port.FileUploadResponse[] {
    const answers = super.uploadFiles(files, options);
    if (this.#runtime === undefined) return answers;
    // Programs for deepagents read the change of all files from the list.
    const filesUpdate: unknown = Object.assign({}, ...answers.map((answer) => answer.filesUpdate));
    return Object.defineProperty(answers, "filesUpdate", { value: filesUpdate });
  }
}

const missingFile = (path: string, files: port.ThreadFiles): BackendFailure =>
  hasBelow(path, files.entries()) ? errors.isDirectory(path) : errors.fileNotFound(path);
