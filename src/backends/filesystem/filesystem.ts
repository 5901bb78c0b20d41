import { statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { ConfigurationError, isAbortError } from "../../core/errors.ts";
import { type OptionTable, readOptions } from "../../core/options.ts";
import { realPath } from "../../core/real-path.ts";
import type {
  Backend,
  BackendCapabilities,
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
  ResolveOptions,
  WriteOptions,
  WriteResult,
} from "../backend.ts";
import * as errors from "../errors.ts";
import { bytesOf, bytesToWrite } from "../file-data.ts";
import { compileGlob } from "../glob.ts";
import { pageRequest } from "../pages.ts";
import { Jail, codeOf, realSegments } from "./jail.ts";
import { listDirectory } from "./list.ts";
import { type FilesystemPath, type PathForm, filesystemPathOf, parseFilesystemPath } from "./paths.ts";
import { readPath, readWholePath } from "./read.ts";
import { findRipgrep } from "./ripgrep.ts";
import { type SearchRoot, globDirectory, grepDirectory, grepFile, withGitignore } from "./search.ts";
import { deleteEntry, editPath, putPath } from "./write.ts";

/** What a missing thing is called: the file asked for, or the directory. */
export type Expected = "file" | "directory" | "path";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "the disk quota is used up",
  EMFILE: "too many files are open; try again",
  ENFILE: "too many files are open; try again",
  ENAMETOOLONG: "the name is too long",
  EBUSY: "it changed while it was opened; try again",
  ENOTEMPTY: "files were added to it meanwhile; try again",
  EALIAS: "Windows takes this name for something else; choose another one",
  ENOROOT: "the root directory is no longer there; it must be made again",
  EIO: "the device reports an input/output error",
};

/** The failure value for what a file system call threw; what is not a file system error is thrown on. */
export function failureOf(thrown: unknown, path: string, expected: Expected): errors.BackendFailure {
  if (isAbortError(thrown)) return errors.operationAborted(path);
  const code = codeOf(thrown);
  switch (code) {
    case undefined:
      throw thrown;
    case "ENOENT":
    case "ENOTDIR":
    case "EHIDDEN":
      return missing(path, expected);
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return errors.permissionDenied(path);
    case "EISDIR":
      return errors.isDirectory(path);
    case "EOUTSIDE":
      return errors.symlinkNotAllowed(path, "outside_root");
    case "ELOOP":
      return errors.symlinkNotAllowed(path, "symlink");
    case "ENXIO":
    case "ENODEV":
      return errors.notRegularFile(path);
    default:
      return errors.ioFailure(path, REASONS[code] ?? `the system reports ${code}`);
  }
}

/** As `failureOf`, for changes: a parent that is a file, or a hidden place, is the reason, not a missing file. */
export function writeFailureOf(thrown: unknown, path: string): errors.BackendFailure {
  const code = codeOf(thrown);
  if (code === "ENOTDIR") return errors.parentIsFile(path);
  return code === "EHIDDEN" ? errors.permissionDenied(path) : failureOf(thrown, path, "file");
}

function missing(path: string, expected: Expected): errors.BackendFailure {
  if (expected === "file") return errors.fileNotFound(path);
  return expected === "directory" ? errors.directoryNotFound(path) : errors.pathNotFound(path);
}

export interface FilesystemOptions {
  /** A directory; the first write makes a missing one. Default: the working directory of the process. */
  rootDir?: string;
  /**
   * `true`: `/x` means `x` in `rootDir`. `false` (default): paths are real ones of this machine, relative
   * ones start in `rootDir`. A form of paths only; files are on the disk in both.
   */
  virtualMode?: boolean;
  /** Larger files are not searched and not edited; reading by pages has no limit. Default 10. */
  maxFileSizeMb?: number;
  /** `root` (default): nothing outside `rootDir` is reached. `none`: every file this process can reach. */
  containment?: "root" | "none";
  /**
   * `glob`, and `grep` in directories, pass over `.git` and what the `.gitignore` files below `rootDir`
   * exclude, unless it is a directory to search in. Everything can still be listed and read. Default false:
   * what an agent or a build has just written is often excluded, and "not found" should be true of it.
   */
  respectGitignore?: boolean;
  /** Path of the `rg` binary; `false` searches without. Default: the one of `@vscode/ripgrep`, if there. */
  ripgrep?: string | false;
  /**
   * Files and directories of this machine that no method shows or changes, by whatever name. Where they lie
   * outside of `rootDir` they need no mention.
   */
  hidden?: readonly string[];
  /** Open files relative to directory descriptors. Default: where the system can. */
  descriptorPaths?: boolean;
}

export const FILESYSTEM_OPTIONS: OptionTable<FilesystemOptions> = {
  rootDir: "a text",
  virtualMode: "true or false",
  maxFileSizeMb: "a number",
  containment: "a text",
  respectGitignore: "true or false",
  ripgrep: "anything",
  hidden: "a list of non-empty texts",
  descriptorPaths: "true or false",
};

const BYTES_PER_MB = 1024 * 1024;

/** Files of a directory on disk, which no path, link or race leads out of. */
export class FilesystemBackend implements Backend {
  readonly capabilities: Partial<BackendCapabilities>;
  readonly #jail: Jail;
  readonly #form: PathForm;
  readonly #maxFileSize: number;
  readonly #respectGitignore: boolean;
  readonly #ripgrep: string | false | undefined;

  /** Throws `ConfigurationError` when `rootDir` is something else than a directory. */
  constructor(given: FilesystemOptions = {}) {
    const options = readOptions("FilesystemBackend", given, FILESYSTEM_OPTIONS);
    const configuredDir = resolve(options.rootDir ?? ".");
    const rootDir = directoryAt(configuredDir);
    const isContained = options.containment !== "none";
    const jailDir = isContained ? rootDir : parse(rootDir).root;
    this.#form = { virtual: options.virtualMode === true, rootDir, configuredDir, jailDir };
    const { descriptorPaths, hidden } = options;
    this.#jail = new Jail(isContained ? configuredDir : jailDir, descriptorPaths, hidden);
    this.#maxFileSize = (options.maxFileSizeMb ?? 10) * BYTES_PER_MB;
    this.#respectGitignore = options.respectGitignore === true;
    this.#ripgrep = options.ripgrep;
    this.capabilities = {
      writeMode: true,
      regexGrep: true,
      versions: true,
      abort: true,
      rawRead: true,
      paths: this.#form.virtual ? "virtual" : "real",
      lifetime: "persistent",
      isolation: "none",
    };
  }

  roots(): FileRoot[] {
    return [{ path: this.#root(), holds: "disk" }];
  }

  async followLinks(path: string, { lastLink }: ResolveOptions = {}): Promise<string | undefined> {
    const parsed = parseFilesystemPath(path, this.#form);
    if (!parsed.ok) return undefined;
    const real = await realSegments(this.#jail, parsed.segments, lastLink);
    return real && filesystemPathOf(real, this.#form);
  }

  ls(path: string, options?: CallOptions): Promise<LsResult> {
    return this.#attempt(path, "directory", (at) =>
      this.#isUnmade(at) ? { files: [], skipped: 0 } : listDirectory(this.#jail, at, options),
    );
  }

  read(filePath: string, offset?: number, limit?: number, options?: CallOptions): Promise<ReadResult> {
    return this.#attempt(filePath, "file", (path) =>
      readPath(this.#jail, path, pageRequest(offset, limit), options),
    );
  }

  readRaw(filePath: string, options?: CallOptions): Promise<ReadRawResult> {
    return this.#attempt(filePath, "file", (path) => readWholePath(this.#jail, path, options));
  }

  grep(
    pattern: string,
    path?: string | null,
    glob?: string | null,
    maxCount?: number | null,
    options?: GrepOptions,
  ): Promise<GrepResult> {
    return this.#attempt(path ?? this.#root(), "path", async ({ segments, shownAs }) => {
      const filter = compileGlob(glob ?? "*", { nameAtAnyDepth: true });
      if (!filter.ok) return { error: filter.error, code: filter.code };
      if (this.#isUnmade({ segments })) return { matches: [], skipped: 0, truncated: false };
      const search = { pattern, glob, maxCount, options, maxFileSize: this.#maxFileSize };
      // A promise that is kept would keep the graph that searched first, through its async context.
      const ripgrep = (this.#ripgrep ?? (await findRipgrep())) || undefined;
      try {
        return await this.#search({ segments, shownAs }, (root) =>
          grepDirectory(root, { ...search, ripgrep }),
        );
      } catch (thrown) {
        const isFile = codeOf(thrown) === "ENOTDIR" && this.#jail.lookUp(segments) !== undefined;
        if (isFile) return grepFile(this.#jail, segments, shownAs, { ...search, ripgrep });
        throw thrown;
      }
    });
  }

  glob(pattern: string, path?: string, options?: CallOptions): Promise<GlobResult> {
    return this.#attempt(path ?? this.#root(), "directory", async ({ segments, shownAs }) => {
      const compiled = compileGlob(pattern);
      if (!compiled.ok) return { error: compiled.error, code: compiled.code };
      if (this.#isUnmade({ segments })) return { files: [], skipped: 0, truncated: false };
      try {
        return await this.#search({ segments, shownAs }, (root) => globDirectory(root, pattern, options));
      } catch (thrown) {
        const isFile = codeOf(thrown) === "ENOTDIR" && this.#jail.lookUp(segments) !== undefined;
        if (isFile) return errors.notDirectory(shownAs);
        throw thrown;
      }
    });
  }

  async write(filePath: string, content: string, options: WriteOptions = {}): Promise<WriteResult> {
    const bytes = bytesToWrite(filePath, content);
    if (!bytes.ok) return { error: bytes.error, code: bytes.code };
    return this.#put(filePath, bytes.bytes, options);
  }

  edit(
    filePath: string,
    oldString: string,
    newString: string,
    replaceAll = false,
    { expectedVersion, signal }: EditOptions = {},
  ): Promise<EditResult> {
    const edit = {
      oldString,
      newString,
      replaceAll,
      expectedVersion,
      signal,
      maxFileSize: this.#maxFileSize,
    };
    return this.#attempt(filePath, "file", (path) => editPath(this.#jail, path, edit), writeFailureOf);
  }

  delete(filePath: string, options?: CallOptions): Promise<DeleteResult> {
    return this.#attempt(filePath, "file", ({ segments, shownAs }) => {
      const base = parseFilesystemPath(this.#root(), this.#form);
      const isAboveRoot = base.ok && segments.every((segment, index) => base.segments[index] === segment);
      if (isAboveRoot) return errors.refusedToDelete(shownAs);
      return deleteEntry(this.#jail, { segments, shownAs }, options);
    });
  }

  async uploadFiles(
    files: Array<[string, Uint8Array]>,
    options?: CallOptions,
  ): Promise<FileUploadResponse[]> {
    const answers: FileUploadResponse[] = [];
    for (const [path, bytes] of files) {
      const result = await this.#put(path, bytes, { ...options, mode: "overwrite" });
      answers.push({ path, error: errors.operationError(result.code) });
    }
    return answers;
  }

  async downloadFiles(paths: string[], options?: CallOptions): Promise<FileDownloadResponse[]> {
    const answers: FileDownloadResponse[] = [];
    for (const path of paths) {
      const { data, code } = await this.readRaw(path, options);
      answers.push(
        data === undefined
          ? { path, content: null, error: errors.operationError(code) }
          : { path, content: bytesOf(data), error: null },
      );
    }
    return answers;
  }

  #root(): string {
    return this.#form.virtual ? "/" : this.#form.rootDir;
  }

  /** Whether a path is the root, and nothing was written there yet. */
  #isUnmade({ segments }: Pick<FilesystemPath, "segments">): boolean {
    return segments.length === 0 && this.#jail.isUnmade;
  }

  #search<Result>(
    { segments, shownAs }: FilesystemPath,
    run: (root: SearchRoot) => Promise<Result>,
  ): Promise<Result> {
    return this.#jail.inDirectory(segments, {}, (directory, real) => {
      const root = { jail: this.#jail, directory, segments: real, shownAs };
      if (!this.#respectGitignore) return run(root);
      const top = parseFilesystemPath(this.#root(), this.#form);
      return withGitignore(root, top.ok ? top.segments : [], run);
    });
  }

  #put(filePath: string, bytes: Uint8Array, options: WriteOptions): Promise<WriteResult> {
    return this.#attempt(
      filePath,
      "file",
      (path) => putPath(this.#jail, path, bytes, options),
      writeFailureOf,
    );
  }

  async #attempt<Result>(
    filePath: string,
    expected: Expected,
    run: (path: FilesystemPath) => Result | Promise<Result>,
    toFailure: typeof failureOf = failureOf,
  ): Promise<Result | errors.BackendFailure> {
    const parsed = parseFilesystemPath(filePath, this.#form);
    if (!parsed.ok) return { error: parsed.error, code: parsed.code };
    try {
      return await run(parsed);
    } catch (thrown) {
      return toFailure(thrown, parsed.shownAs, expected);
    }
  }
}

/** The real path of a directory, or of one that can be made there. */
function directoryAt(path: string): string {
  let found: { isDirectory(): boolean } | undefined;
  try {
    found = statSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    throw new ConfigurationError("ROOT_DIRECTORY", `The directory '${path}' cannot be opened`, {
      cause: thrown,
    });
  }
  if (found?.isDirectory() !== false) return realPath(path);
  throw new ConfigurationError("ROOT_DIRECTORY", `'${path}' is not a directory`);
}
