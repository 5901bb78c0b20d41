import { ConfigurationError, DeepAgentError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import type {
  BackendCapabilities,
  CallOptions,
  DeleteResult,
  EditOptions,
  EditResult,
  ExecuteOptions,
  ExecuteResponse,
  FileData,
  FileDownloadResponse,
  FileUploadResponse,
  GlobResult,
  GrepOptions,
  GrepResult,
  LsResult,
  MaybePromise,
  ReadRawResult,
  ReadResult,
  SandboxBackend,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import * as errors from "../errors.ts";
import {
  bytesOf,
  bytesToWrite,
  editFileData,
  readFileData,
  toFileData,
  versionOf,
  versionOfBytes,
} from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import { fileLocks } from "../keyed-lock.ts";
import { pageRequest } from "../pages.ts";
import { baseName, relativeTo, validatePath } from "../paths.ts";
import { type SearchableContent, compileSearch, searchFiles, searchable, sortByPath } from "../search.ts";
import { type Found, SandboxFiles, type SandboxFilesOptions, type Written } from "./sandbox-files.ts";

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

/** Why a file was not read; `limit`: bytes of the largest that is. */
export const readFailure = (
  path: string,
  found: Exclude<Found, { result: "file" }>,
  limit: number,
): errors.BackendFailure =>
  found.result === "large"
    ? errors.tooLargeToLoad(path, found.size, limit)
    : READ_FAILURES[found.result](path);

export const writeFailure = (path: string, result: Exclude<Written, "written">): errors.BackendFailure =>
  WRITE_FAILURES[result](path);

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

/**
 * Files of a sandbox of which nothing is known but how to run a command in it. Every file operation is a
 * command; what is found there is paged, searched and edited here, so that it is done as everywhere else.
 * Links are followed inside the sandbox, which is what holds them.
 */
export abstract class BaseSandbox implements SandboxBackend {
  readonly capabilities: Partial<BackendCapabilities>;
  readonly #files: SandboxFiles;
  readonly #maxFileSize: number;

  /**
   * @param isolation what keeps commands from this machine.
   * @throws ConfigurationError when it is made itself: a sandbox extends it with `id` and `execute`.
   */
  constructor(given: BaseSandboxOptions = {}, isolation: BackendCapabilities["isolation"] = "remote") {
    if (new.target === BaseSandbox) {
      throw new ConfigurationError(
        "ABSTRACT_SANDBOX",
        "BaseSandbox is what sandboxes have in common; extend it by a class with `id` and `execute`, or use createSandbox.",
      );
    }
    const options = readOptions("BaseSandbox", given, OPTIONS);
    const { root = "/", readChunk = READ_CHUNK, maxFileSizeMb = 10, transfer } = options;
    this.#files = new SandboxFiles((command, call) => this.runFileCommand(command, call), {
      root,
      readChunk,
      ...(transfer === undefined ? {} : { transfer }),
    });
    this.#maxFileSize = maxFileSizeMb * BYTES_PER_MB;
    this.capabilities = {
      writeMode: true,
      regexGrep: true,
      versions: true,
      abort: true,
      rawRead: true,
      executeOptions: true,
      paths: "virtual",
      lifetime: "persistent",
      isolation,
    };
  }

  abstract readonly id: string;
  abstract execute(command: string, options?: ExecuteOptions): MaybePromise<ExecuteResponse>;

  /** How the commands of file operations run; to be replaced where more output is to be had than by `execute`. */
  protected runFileCommand(command: string, options: CallOptions): MaybePromise<ExecuteResponse> {
    return this.execute(command, options);
  }

  ls(path: string, options: CallOptions = {}): Promise<LsResult> {
    return this.#at(path, options, async (path): Promise<LsResult> => {
      const listed = await this.#files.list(path, { deep: false }, options);
      if (listed.result === "missing") return errors.directoryNotFound(path);
      if (listed.result === "denied") return errors.permissionDenied(path);
      if (listed.result === "file") return { files: [listed.info] };
      return {
        files: sortByPath(listed.entries),
        ...(listed.skipped > 0 ? { skipped: listed.skipped } : {}),
      };
    });
  }

  read(filePath: string, offset?: number, limit?: number, options: CallOptions = {}): Promise<ReadResult> {
    return this.#at(filePath, options, async (path): Promise<ReadResult> => {
      const got = await this.#get(path, options);
      return "error" in got ? got : readFileData(path, got.data, pageRequest(offset, limit));
    });
  }

  readRaw(filePath: string, options: CallOptions = {}): Promise<ReadRawResult> {
    return this.#at(filePath, options, async (path): Promise<ReadRawResult> => {
      const got = await this.#get(path, options);
      return "error" in got ? got : { data: got.data, version: versionOf(got.data) };
    });
  }

  glob(pattern: string, path = "/", options: CallOptions = {}): Promise<GlobResult> {
    return this.#at(path, options, async (path): Promise<GlobResult> => {
      const compiled = compileGlob(pattern);
      if (!compiled.ok) return { error: compiled.error, code: compiled.code };
      const listed = await this.#files.list(path, { deep: true }, options);
      if (listed.result === "missing") return errors.directoryNotFound(path);
      if (listed.result === "denied") return errors.permissionDenied(path);
      if (listed.result === "file") return errors.notDirectory(path);
      const isFound = ({ path: found, is_dir: isDirectory }: { path: string; is_dir?: boolean }): boolean =>
        isDirectory !== true && compiled.glob.matches(relativeTo(path, found));
      return {
        files: sortByPath(listed.entries.filter(isFound)),
        ...(listed.skipped > 0 ? { skipped: listed.skipped } : {}),
      };
    });
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options: GrepOptions = {},
  ): Promise<GrepResult> {
    return this.#at(path ?? "/", options, async (path): Promise<GrepResult> => {
      const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
      if (!filter.ok) return { error: filter.error, code: filter.code };
      const search = compileSearch(pattern, options);
      if (!search.ok) return { error: search.error, code: search.code };
      const listed = await this.#files.list(path, { deep: true }, options);
      if (listed.result === "missing") return errors.pathNotFound(path);
      if (listed.result === "denied") return errors.permissionDenied(path);
      const isCandidate =
        search.literal === undefined
          ? () => true
          : await this.#files.containing(path, search.literal, options);
      const files = listed.result === "file" ? [listed.info] : listed.entries;
      const accepts = (file: string): boolean =>
        filter.glob.matches(file === path ? baseName(file) : relativeTo(path, file)) && isCandidate(file);
      const chosen = files.filter((file) => file.is_dir !== true && accepts(file.path));
      const found = await searchFiles(
        sortByPath(chosen).map((file) => ({
          path: file.path,
          load: () => this.#searchable(file.path, options),
        })),
        { pattern, maxCount, options, path },
      );
      const unread = listed.result === "directory" ? listed.skipped : 0;
      return found.skipped === undefined ? found : { ...found, skipped: found.skipped + unread };
    });
  }

  async write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    return this.#exclusively(filePath, options, async (path): Promise<WriteResult> => {
      const given = bytesToWrite(path, content);
      if (!given.ok) return { error: given.error, code: given.code };
      if (options.expectedVersion === undefined) return this.#put(path, given.bytes, options);
      const got = await this.#get(path, options);
      if ("error" in got || versionOf(got.data) !== options.expectedVersion)
        return errors.changedSinceRead(path);
      return this.#put(path, given.bytes, options, got.facts);
    });
  }

  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    options: EditOptions = {},
  ): Promise<EditResult> {
    return this.#exclusively(filePath, options, async (path): Promise<EditResult> => {
      const got = await this.#get(path, options);
      if ("error" in got) return got;
      const { expectedVersion } = options;
      const edited = editFileData(path, got.data, { oldString, newString, replaceAll, expectedVersion });
      if (!edited.ok) return { error: edited.error, code: edited.code };
      const written = await this.#put(path, edited.bytes, { ...options, mode: "overwrite" }, got.facts);
      return written.error === undefined ? { ...written, occurrences: edited.occurrences } : written;
    });
  }

  delete(filePath: string, options: CallOptions = {}): Promise<DeleteResult> {
    return this.#exclusively(filePath, options, async (path): Promise<DeleteResult> => {
      if (path === "/") return errors.refusedToDelete(path);
      const result = await this.#files.remove(path, options);
      if (result === "missing") return errors.fileNotFound(path);
      return result === "denied" ? errors.permissionDenied(path) : { path, filesUpdate: null };
    });
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options: CallOptions = {},
  ): Promise<FileUploadResponse[]> {
    const answers: FileUploadResponse[] = [];
    for (const [filePath, bytes] of files) {
      const result: WriteResult = await this.#exclusively(filePath, options, (path) =>
        this.#put(path, bytes, { ...options, mode: "overwrite" }),
      );
      answers.push({ path: filePath, error: errors.operationError(result.code) });
    }
    return answers;
  }

  async downloadFiles(paths: string[], options: CallOptions = {}): Promise<FileDownloadResponse[]> {
    const answers: FileDownloadResponse[] = [];
    for (const path of paths) {
      const { data, code } = await this.readRaw(path, options);
      if (data === undefined) answers.push({ path, content: null, error: errors.operationError(code) });
      else answers.push({ path, content: bytesOf(data), error: null });
    }
    return answers;
  }

  async #get(
    path: string,
    options: CallOptions,
  ): Promise<{ data: FileData; facts: string } | errors.BackendFailure> {
    const found = await this.#files.read(path, this.#maxFileSize, options);
    if (found.result !== "file") return readFailure(path, found, this.#maxFileSize);
    return { data: toFileData(path, found.bytes, { now: found.modifiedAt }), facts: found.facts };
  }

  /** `expected`: the facts of the file that is to be replaced, and no other. */
  async #put(
    path: string,
    bytes: Uint8Array,
    options: WriteOptions,
    expected?: string,
  ): Promise<WriteResult> {
    if (path === "/") return errors.isDirectory(path);
    const create = options.mode !== "overwrite";
    const how = { create, ...(expected === undefined ? {} : { expected }) };
    const result = await this.#files.write(path, bytes, how, options);
    if (result !== "written") return writeFailure(path, result);
    return { path, filesUpdate: null, version: versionOfBytes(bytes) };
  }

  async #searchable(path: string, options: CallOptions): Promise<SearchableContent> {
    const got = await this.#get(path, options);
    return "error" in got ? { kind: "skipped" } : searchable(path, got.data);
  }

  async #at<Result extends object>(
    filePath: string,
    { signal }: CallOptions,
    run: (path: string) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    const valid = validatePath(filePath);
    if (!valid.ok) return { error: valid.error, code: valid.code };
    const isAborted = (): boolean => signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(valid.path);
    try {
      return await run(valid.path);
    } catch {
      if (isAborted()) return errors.operationAborted(valid.path);
      // What a sandbox throws may name hosts and accounts.
      return errors.ioFailure(valid.path, "the sandbox did not answer; try again");
    }
  }

  #exclusively<Result extends object>(
    filePath: string,
    options: CallOptions,
    run: (path: string) => Promise<Result>,
  ): Promise<Result | errors.BackendFailure> {
    return this.#at(filePath, options, (path) =>
      fileLocks.run(JSON.stringify(["sandbox", this.id, path]), () => run(path)),
    );
  }
}

/** A sandbox could not be had (`NOT_INITIALIZED`), or what prepares it failed (`COMMAND_FAILED`). */
export class SandboxError extends DeepAgentError {}
