import { ConfigurationError, DeepAgentError } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import type * as port from "../backend.ts";
import type { Located, Operations } from "../checked-backend.ts";
import {
  CHANGING_METHODS,
  COMPLETE,
  CheckedBackend,
  fileLocks,
  loadedBy,
  storedBy,
} from "../checked-backend.ts";
import { errors } from "../errors.ts";
import type { CommandFacts, ExecuteOptions, ExecuteResponse, SandboxBackend } from "../executor.ts";
import { editFileData, toFileData, contentVersion, versionOfBytes } from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import { addPrefix, relativeTo, validatePath } from "../paths.ts";
import type { SearchableContent } from "../search.ts";
import { compileSearch, fileFilter, searchFiles, searchable, sortByPath } from "../search.ts";
import { type RunCommand, SandboxFiles, type SandboxFilesOptions } from "./sandbox-files.ts";
import { SandboxJobs } from "./sandbox-jobs.ts";
import type { ShellLimits } from "./shell-backend.ts";
import { DEFAULT_OUTPUT_BYTES, DEFAULT_TIMEOUT, commandProblem } from "./shell-backend.ts";
import texts from "../texts.json" with { type: "json" };

export interface BaseSandboxOptions extends Partial<SandboxFilesOptions> {
  /** Larger files are not read, searched or edited. Default 10. */
  maxFileSizeMb?: number;
}

interface SandboxPath extends Located {
  /** The id of the sandbox. */
  id: string;
  files: SandboxFiles;
  maxFileSize: number;
}

const SANDBOX_OPERATIONS: Operations<SandboxPath> = {
  attempt: async ({ path, id }, { method, options: { signal } }, run) => {
    const isAborted = (): boolean => signal?.aborted === true;
    if (isAborted()) return errors.operationAborted(path);
    try {
      if (!CHANGING_METHODS.has(method)) return await run();
      return await fileLocks.run(JSON.stringify(["sandbox", id, path]), async () => run());
    } catch {
      if (isAborted()) return errors.operationAborted(path);
      // Exceptions of a sandbox may name hosts and accounts.
      return errors.ioFailure(path, "the sandbox did not answer; try again");
    }
  },
  ls: async ({ path, files }, options) => {
    const listed = await files.list(path, { deep: false }, options);
    return "error" in listed ? listed : toListing(listed.files, listed.skipped);
  },
  ...loadedBy<SandboxPath>(async (at, options) => {
    const got = await getFile(at, options);
    return "error" in got ? got : got.data;
  }),
  glob: async ({ path, files }, pattern, options) => {
    const compiled = compileGlob(pattern);
    if (!compiled.ok) return { error: compiled.error, code: compiled.code };
    const listed = await files.list(path, { deep: true }, options);
    if ("error" in listed) return listed;
    if (listed.isFile) return errors.notDirectory(path);
    const found = listed.files.filter(
      (entry) => entry.is_dir !== true && compiled.glob.matches(relativeTo(path, entry.path)),
    );
    return toListing(found, listed.skipped);
  },
  grep: async (at, search) => {
    const { path, options } = search;
    const { files } = at;
    const accepts = fileFilter(search);
    if (typeof accepts !== "function") return accepts;
    const compiled = compileSearch(search.pattern, options);
    if (!compiled.ok) return { error: compiled.error, code: compiled.code };
    const listed = await files.list(path, { deep: true, notFound: errors.pathNotFound }, options);
    if ("error" in listed) return listed;
    const isCandidate =
      compiled.literal === undefined ? () => true : await files.containing(path, compiled.literal, options);
    const chosen = listed.files.filter(
      (file) => file.is_dir !== true && accepts(file.path) && isCandidate(file.path),
    );
    const load = async (file: string): Promise<SearchableContent> => {
      const got = await getFile({ ...at, path: file }, options);
      return "error" in got ? { kind: "skipped" } : searchable(file, got.data);
    };
    const found = await searchFiles(
      sortByPath(chosen).map((file) => ({ path: file.path, load: () => load(file.path) })),
      search,
    );
    return found.skipped === undefined ? found : { ...found, skipped: found.skipped + listed.skipped };
  },
  ...storedBy<SandboxPath>(async (at, bytes, options) => {
    if (options.expectedVersion === undefined) return putFile(at, bytes, options);
    const got = await getFile(at, options);
    return "error" in got || contentVersion(got.data) !== options.expectedVersion
      ? errors.changedSinceRead(at.path)
      : putFile(at, bytes, options, got.facts);
  }),
  edit: async (at, edit) => {
    const got = await getFile(at, edit);
    if ("error" in got) return got;
    const edited = editFileData(at.path, got.data, edit);
    if (!edited.ok) return { error: edited.error, code: edited.code };
    const written = await putFile(at, edited.bytes, { signal: edit.signal, mode: "overwrite" }, got.facts);
    return written.error === undefined ? { ...written, occurrences: edited.occurrences } : written;
  },
  delete: async ({ path, files }, options) => {
    if (path === "/") return errors.refusedToDelete(path);
    return (await files.remove(path, options)) ?? { path, filesUpdate: null };
  },
};

async function getFile({ path, files, maxFileSize }: SandboxPath, options: port.CallOptions) {
  const found = await files.read(path, maxFileSize, options);
  if ("error" in found) return found;
  return { data: toFileData(path, found.bytes, { now: found.modifiedAt }), facts: found.facts };
}

/** Writes a file. With `expected`, only replaces the file with these facts. */
async function putFile(
  { path, files }: SandboxPath,
  bytes: Uint8Array,
  options: port.WriteOptions,
  expected?: string,
): Promise<port.WriteResult> {
  if (path === "/") return errors.isDirectory(path);
  const refused = await files.write(path, bytes, { create: options.mode !== "overwrite", expected }, options);
  return refused ?? { path, filesUpdate: null, version: versionOfBytes(bytes) };
}

const toListing = (
  entries: port.FileInfo[],
  skipped: number,
): { files: port.FileInfo[]; skipped?: number } => ({
  files: sortByPath(entries),
  ...(skipped > 0 ? { skipped } : {}),
});

/**
 * The files and background jobs of any sandbox that can run a command. Every operation is a command; pages, searches and edits are
 * made here, so they are the same as in every other backend. Follows links, which cannot leave the sandbox.
 */
export abstract class BaseSandbox extends CheckedBackend implements SandboxBackend {
  readonly capabilities: Partial<port.BackendCapabilities>;
  /** A sandbox that stays when it is closed closes them. */
  readonly jobs: SandboxJobs;

  /**
   * @param isolation the barrier between commands and this machine.
   * @throws ConfigurationError when it is made itself: a sandbox extends it with `id` and `execute`.
   */
  constructor(given: BaseSandboxOptions = {}, isolation: port.BackendCapabilities["isolation"] = "remote") {
    if (new.target === BaseSandbox) throw new ConfigurationError("ABSTRACT_SANDBOX", texts.abstractSandbox);
    const options = readOptions("BaseSandbox", given, tables.BaseSandbox);
    const { root = "/", readChunk = 48 * 1024, maxFileSizeMb = 10, transfer } = options;
    const run: RunCommand = (command, call) => this.runFileCommand(command, call);
    const files = new SandboxFiles(run, { root, readChunk, transfer });
    super(SANDBOX_OPERATIONS, (path) => {
      const valid = validatePath(path);
      if (!valid.ok) return valid;
      return { path: valid.path, id: this.id, files, maxFileSize: maxFileSizeMb * 1024 * 1024 };
    });
    this.jobs = new SandboxJobs((command, call) => this.execute(command, call), run, readChunk);
    this.capabilities = {
      ...COMPLETE,
      executeOptions: true,
      paths: "virtual",
      lifetime: "persistent",
      isolation,
      latency: "remote",
    };
  }

  abstract readonly id: string;
  abstract execute(command: string, options?: ExecuteOptions): port.MaybePromise<ExecuteResponse>;

  /** Runs the command of a file operation. Override it if a sandbox can return more output than `execute` does. */
  protected runFileCommand(command: string, options: port.CallOptions): port.MaybePromise<ExecuteResponse> {
    return this.execute(command, options);
  }
}

/** A sandbox whose commands have limits, and start in a folder of its files. */
export abstract class LimitedSandbox extends BaseSandbox {
  readonly commands: CommandFacts & Required<Pick<CommandFacts, "directory" | "timeout" | "outputBytes">>;

  /** `facts`: about its commands, besides their limits. */
  constructor(
    files: BaseSandboxOptions & { root: string },
    { timeout = DEFAULT_TIMEOUT, maxOutputBytes: outputBytes = DEFAULT_OUTPUT_BYTES }: ShellLimits,
    isolation: port.BackendCapabilities["isolation"],
    facts: CommandFacts = {},
  ) {
    super(files, isolation);
    this.commands = { directory: files.root, timeout, outputBytes, ...facts };
  }

  async execute(command: string, options: ExecuteOptions = {}): Promise<ExecuteResponse> {
    const valid = validatePath(options.cwd ?? "/");
    const refused = commandProblem(command) ?? (valid.ok ? undefined : valid.error);
    if (!valid.ok || refused !== undefined)
      return { output: `Error: ${refused ?? ""}`, exitCode: 1, truncated: false };
    const { directory, outputBytes } = this.commands;
    return this.run(command, { ...options, cwd: addPrefix(directory, valid.path) }, outputBytes);
  }

  protected override runFileCommand(command: string, options: port.CallOptions): Promise<ExecuteResponse> {
    // A piece of a file as base64, or the names of a large tree.
    return this.run(command, { ...options, cwd: "/" }, 64 * 1024 * 1024);
  }

  /** Runs a command in a directory of the sandbox, until its time is up or its signal aborts. */
  protected abstract run(
    command: string,
    options: ExecuteOptions,
    maxOutputBytes: number,
  ): Promise<ExecuteResponse>;

  abstract close(): Promise<void>;

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** A sandbox could not be opened (`NOT_INITIALIZED`), or its preparation failed (`COMMAND_FAILED`). */
export class SandboxError extends DeepAgentError {}
