import { ConfigurationError, DeepAgentError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import type {
  BackendCapabilities,
  CallOptions,
  FileData,
  FileInfo,
  MaybePromise,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import {
  COMPLETE,
  CheckedBackend,
  type Edit,
  type Located,
  type Method,
  type Operations,
  PutOperations,
  fileLocks,
  type Search,
} from "../checked-backend.ts";
import * as errors from "../errors.ts";
import type { ExecuteOptions, ExecuteResponse, SandboxBackend } from "../executor.ts";
import { editFileData, readFileData, toFileData, versionOf, versionOfBytes } from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import type { PageRequest } from "../pages.ts";
import { baseName, relativeTo, validatePath } from "../paths.ts";
import { type SearchableContent, compileSearch, searchFiles, searchable, sortByPath } from "../search.ts";
import {
  type Found,
  type RunCommand,
  SandboxFiles,
  type SandboxFilesOptions,
  type Written,
} from "./sandbox-files.ts";

const READ_FAILURES: Record<
  Exclude<Found["result"], "file" | "large">,
  (path: string) => errors.BackendFailure
> = {
  missing: errors.fileNotFound,
  directory: errors.isDirectory,
  other: errors.notRegularFile,
  denied: errors.permissionDenied,
};

const WRITE_FAILURES: Record<Exclude<Written, "written">, (path: string) => errors.BackendFailure> = {
  exists: errors.alreadyExists,
  directory: errors.isDirectory,
  parent: errors.parentIsFile,
  denied: errors.permissionDenied,
  symlink: errors.writeToSymlink,
  changed: errors.changedSinceRead,
  failed: (path) => errors.ioFailure(path, "the file could not be put in its place"),
};

/** Why a file was not read. `limit` is the size of the largest file that is read. */
const readFailure = (
  path: string,
  found: Exclude<Found, { result: "file" }>,
  limit: number,
): errors.BackendFailure =>
  found.result === "large"
    ? errors.tooLargeToLoad(path, found.size, limit)
    : READ_FAILURES[found.result](path);

export interface BaseSandboxOptions extends Partial<SandboxFilesOptions> {
  /** Larger files are not read, searched or edited. Default 10. */
  maxFileSizeMb?: number;
}

const OPTIONS: OptionTable<BaseSandboxOptions> = {
  root: "a text",
  readChunk: "a number",
  transfer: "anything",
  maxFileSizeMb: "a number",
};

const BYTES_PER_MB = 1024 * 1024;
const READ_CHUNK = 48 * 1024;

const CHANGES: ReadonlySet<Method> = new Set<Method>(["write", "edit", "upload", "delete"]);

class SandboxOperations extends PutOperations implements Operations {
  readonly #files: SandboxFiles;
  readonly #id: () => string;
  readonly #maxFileSize: number;

  constructor(files: SandboxFiles, id: () => string, maxFileSize: number) {
    super();
    this.#files = files;
    this.#id = id;
    this.#maxFileSize = maxFileSize;
  }

  locate(path: string) {
    return validatePath(path);
  }

  async attempt<Result>(
    { path }: Located,
    { method, options }: { method: Method; options: CallOptions },
    run: () => MaybePromise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const isAborted = (): boolean => options.signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(path);
    try {
      if (!CHANGES.has(method)) return await run();
      return await fileLocks.run(JSON.stringify(["sandbox", this.#id(), path]), async () => run());
    } catch {
      if (isAborted()) return errors.operationAborted(path);
      // Exceptions of a sandbox may name hosts and accounts.
      return errors.ioFailure(path, "the sandbox did not answer; try again");
    }
  }

  async ls({ path }: Located, options: CallOptions) {
    const listed = await this.#files.list(path, { deep: false }, options);
    if (listed.result === "missing") return errors.directoryNotFound(path);
    if (listed.result === "denied") return errors.permissionDenied(path);
    return listed.result === "file" ? { files: [listed.info] } : filesOf(listed.entries, listed.skipped);
  }

  async read({ path }: Located, page: PageRequest, options: CallOptions) {
    const got = await this.#get(path, options);
    return "error" in got ? got : readFileData(path, got.data, page);
  }

  async readRaw({ path }: Located, options: CallOptions) {
    const got = await this.#get(path, options);
    return "error" in got ? got : { data: got.data, version: versionOf(got.data) };
  }

  async glob({ path }: Located, pattern: string, options: CallOptions) {
    const compiled = compileGlob(pattern);
    if (!compiled.ok) return { error: compiled.error, code: compiled.code };
    const listed = await this.#files.list(path, { deep: true }, options);
    if (listed.result === "missing") return errors.directoryNotFound(path);
    if (listed.result === "denied") return errors.permissionDenied(path);
    if (listed.result === "file") return errors.notDirectory(path);
    const found = listed.entries.filter(
      (entry) => entry.is_dir !== true && compiled.glob.matches(relativeTo(path, entry.path)),
    );
    return filesOf(found, listed.skipped);
  }

  async grep({ path }: Located, { pattern, glob, maxCount, options }: Search) {
    const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
    if (!filter.ok) return { error: filter.error, code: filter.code };
    const search = compileSearch(pattern, options);
    if (!search.ok) return { error: search.error, code: search.code };
    const listed = await this.#files.list(path, { deep: true }, options);
    if (listed.result === "missing") return errors.pathNotFound(path);
    if (listed.result === "denied") return errors.permissionDenied(path);
    const isCandidate =
      search.literal === undefined ? () => true : await this.#files.containing(path, search.literal, options);
    const files = listed.result === "file" ? [listed.info] : listed.entries;
    const accepts = (file: string): boolean =>
      filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file)) && isCandidate(file);
    const chosen = files.filter((file) => file.is_dir !== true && accepts(file.path));
    const load = async (file: string): Promise<SearchableContent> => {
      const got = await this.#get(file, options);
      return "error" in got ? { kind: "skipped" } : searchable(file, got.data);
    };
    const found = await searchFiles(
      sortByPath(chosen).map((file) => ({ path: file.path, load: () => load(file.path) })),
      { pattern, maxCount, options, path },
    );
    const unread = listed.result === "directory" ? listed.skipped : 0;
    return found.skipped === undefined ? found : { ...found, skipped: found.skipped + unread };
  }

  async put({ path }: Located, bytes: Uint8Array, options: WriteOptions) {
    if (options.expectedVersion === undefined) return this.#put(path, bytes, options);
    const got = await this.#get(path, options);
    return "error" in got || versionOf(got.data) !== options.expectedVersion
      ? errors.changedSinceRead(path)
      : this.#put(path, bytes, options, got.facts);
  }

  async edit({ path }: Located, edit: Edit) {
    const got = await this.#get(path, edit);
    if ("error" in got) return got;
    const edited = editFileData(path, got.data, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    const options: WriteOptions = { signal: edit.signal, mode: "overwrite" };
    const written = await this.#put(path, edited.bytes, options, got.facts);
    return written.error === undefined ? { ...written, occurrences: edited.occurrences } : written;
  }

  async delete({ path }: Located, options: CallOptions) {
    if (path === "/") return errors.refusedToDelete(path);
    const result = await this.#files.remove(path, options);
    if (result === "missing") return errors.fileNotFound(path);
    return result === "denied" ? errors.permissionDenied(path) : { path, filesUpdate: null };
  }

  async #get(
    path: string,
    options: CallOptions,
  ): Promise<{ data: FileData; facts: string } | errors.BackendFailure> {
    const found = await this.#files.read(path, this.#maxFileSize, options);
    if (found.result !== "file") return readFailure(path, found, this.#maxFileSize);
    return { data: toFileData(path, found.bytes, { now: found.modifiedAt }), facts: found.facts };
  }

  /** Writes a file. With `expected`, only replaces the file with these facts. */
  async #put(
    path: string,
    bytes: Uint8Array,
    options: WriteOptions,
    expected?: string,
  ): Promise<WriteResult> {
    if (path === "/") return errors.isDirectory(path);
    const create = options.mode !== "overwrite";
    const result = await this.#files.write(path, bytes, { create, expected }, options);
    if (result !== "written") return WRITE_FAILURES[result](path);
    return { path, filesUpdate: null, version: versionOfBytes(bytes) };
  }
}

const filesOf = (entries: FileInfo[], skipped: number): { files: FileInfo[]; skipped?: number } => ({
  files: sortByPath(entries),
  ...(skipped > 0 ? { skipped } : {}),
});

/**
 * The files of any sandbox that can run a command. Every file operation is a command; pages, searches and edits are
 * made here, so they are the same as in every other backend. Follows links, which cannot leave the sandbox.
 */
export abstract class BaseSandbox extends CheckedBackend implements SandboxBackend {
  readonly capabilities: Partial<BackendCapabilities>;

  /**
   * @param isolation what keeps commands from this machine.
   * @throws ConfigurationError when it is made itself: a sandbox extends it with `id` and `execute`.
   */
  constructor(given: BaseSandboxOptions = {}, isolation: BackendCapabilities["isolation"] = "remote") {
    if (new.target === BaseSandbox) {
      throw new ConfigurationError(
        "ABSTRACT_SANDBOX",
        "BaseSandbox is an abstract base class; extend it with `id` and `execute`, or use createSandbox.",
      );
    }
    const options = readOptions("BaseSandbox", given, OPTIONS);
    const { root = "/", readChunk = READ_CHUNK, maxFileSizeMb = 10, transfer } = options;
    const run: RunCommand = (command, call) => this.runFileCommand(command, call);
    const files = new SandboxFiles(run, { root, readChunk, transfer });
    super(new SandboxOperations(files, () => this.id, maxFileSizeMb * BYTES_PER_MB));
    this.capabilities = {
      ...COMPLETE,
      executeOptions: true,
      paths: "virtual",
      lifetime: "persistent",
      isolation,
    };
  }

  abstract readonly id: string;
  abstract execute(command: string, options?: ExecuteOptions): MaybePromise<ExecuteResponse>;

  /** Runs the command of a file operation. Override it if a sandbox can give more output than `execute` does. */
  protected runFileCommand(command: string, options: CallOptions): MaybePromise<ExecuteResponse> {
    return this.execute(command, options);
  }
}

/** A sandbox could not be opened (`NOT_INITIALIZED`), or its preparation failed (`COMMAND_FAILED`). */
export class SandboxError extends DeepAgentError {}
