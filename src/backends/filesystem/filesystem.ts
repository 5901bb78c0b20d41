import { statSync } from "node:fs";
import { parse, resolve } from "node:path";
import { ConfigurationError, isAbortError, codeOf } from "../../core/errors.ts";
import { readOptions } from "../../core/options.ts";
import tables from "../options.json" with { type: "json" };
import { realPath } from "../../core/real-path.ts";
import type * as port from "../backend.ts";
import { CheckedBackend, FILES_ONLY, type Operations, missingEntry, storedBy } from "../checked-backend.ts";
import texts from "../errors.json" with { type: "json" };
import { type BackendFailure, type FailureAt, errors } from "../errors.ts";
import { compileGlob } from "../glob.ts";
import type { FilesystemPath, PathForm } from "./jail.ts";
import { Jail, formatFilesystemPath, parseFilesystemPath } from "./jail.ts";
import { type DiskTree, HiddenByPath, listDirectory, otherNames } from "./list.ts";
import { deleteEntry, editPath, entryRefusal, putPath, readPath, readWholePath } from "./read-write.ts";
import { findRipgrep } from "./ripgrep.ts";
import { type SearchRoot, globDirectory, grepDirectory, grepFile, withGitignore } from "./search.ts";

const IO_REASONS: Readonly<Record<string, string>> = texts.ofSystem;

const FAILURES: Readonly<Record<string, FailureAt>> = {
  EACCES: errors.permissionDenied,
  EPERM: errors.permissionDenied,
  EROFS: errors.permissionDenied,
  EISDIR: errors.isDirectory,
  EOUTSIDE: (path) => errors.symlinkNotAllowed(path, "outside_root"),
  ELOOP: (path) => errors.symlinkNotAllowed(path, "symlink"),
  ENXIO: errors.notRegularFile,
  ENODEV: errors.notRegularFile,
};

export interface FilesystemOptions {
  /** A directory; the first write makes a missing one. Default: the working directory of the process. */
  rootDir?: string;
  /**
   * `true`: `/x` means `x` in `rootDir`. `false` (default): paths are real ones of this machine, relative
   * ones start in `rootDir`. This concerns paths only; files are on the disk in both.
   */
  virtualMode?: boolean;
  /** Larger files are not searched and not edited; reading by pages has no limit. Default 10. */
  maxFileSizeMb?: number;
  /** `root` (default): nothing outside `rootDir` is reached. `none`: every file this process can reach. */
  containment?: "root" | "none";
  /**
   * `glob`, and `grep` in directories, leave out `.git` and files that git ignores by the `.gitignore` files below
   * `rootDir`, its `.git/info/exclude` and the excludes file of the user. An ignored directory can still be searched by
   * name, listed and read. Default false: these files come last, because files that an agent or a build has just
   * written are often ignored and would not be found.
   */
  respectGitignore?: boolean;
  /** Path of the `rg` binary; `false` searches without. Default: the one of `@vscode/ripgrep`, if there. */
  ripgrep?: string | false;
  /**
   * Files and directories of this machine that no method shows or changes, by whatever name. Those outside of
   * `rootDir` need not be listed.
   */
  hidden?: readonly string[];
  /** Open files relative to directory descriptors. Default: where the system can. */
  descriptorPaths?: boolean;
}

/** The tree of files below a root, by the paths that callers know. */
class Disk implements DiskTree {
  readonly form: PathForm;
  readonly jail: Jail;
  readonly top: string;
  readonly options: FilesystemOptions;
  readonly maxFileSize: number;

  constructor(options: FilesystemOptions) {
    const configuredDir = resolve(options.rootDir ?? ".");
    let found: { isDirectory(): boolean } | undefined;
    try {
      found = statSync(configuredDir, { throwIfNoEntry: false });
    } catch (cause) {
      const problem = `The directory '${configuredDir}' cannot be opened`;
      throw new ConfigurationError("ROOT_DIRECTORY", problem, { cause });
    }
    if (found?.isDirectory() === false)
      throw new ConfigurationError("ROOT_DIRECTORY", `'${configuredDir}' is not a directory`);
    const rootDir = realPath(configuredDir);
    const isContained = options.containment !== "none";
    const jailDir = isContained ? rootDir : parse(rootDir).root;
    this.form = { virtual: options.virtualMode === true, rootDir, configuredDir, jailDir };
    this.top = this.form.virtual ? "/" : rootDir;
    const { descriptorPaths, hidden } = options;
    this.jail = new Jail(isContained ? configuredDir : jailDir, descriptorPaths, hidden);
    this.options = options;
    this.maxFileSize = (options.maxFileSizeMb ?? 10) * 1024 * 1024;
  }

  locate(path: string): DiskPath | BackendFailure {
    const parsed = parseFilesystemPath(path, this.form);
    return "error" in parsed ? parsed : { ...parsed, jail: this.jail, disk: this };
  }

  topSegments(): readonly string[] {
    const top = this.locate(this.top);
    return "error" in top ? [] : top.segments;
  }

  pathOf(segments: readonly string[]) {
    return formatFilesystemPath(segments, this.form);
  }
}

interface DiskPath extends FilesystemPath {
  disk: Disk;
}

const DISK_OPERATIONS: Operations<DiskPath> = {
  attempt: async (at, { method, options: { realPath, hides } }, run) => {
    const { path, disk } = at;
    const place = realPath === undefined ? undefined : disk.locate(realPath);
    if (place !== undefined && "error" in place) return place;
    const judged: DiskPath = place === undefined ? at : { ...place, path, links: "none" };
    const hidden = hides && new HiddenByPath(disk, hides);
    try {
      return await run({ ...judged, hidden });
    } catch (thrown) {
      if (isAbortError(thrown)) return errors.operationAborted(path);
      const code = codeOf(thrown);
      if (code === undefined) throw thrown;
      const isChange = method === "write" || method === "edit" || method === "upload";
      // The obstacle of a change is a parent that is a file, or a hidden entry, not a missing file.
      if (isChange && code === "ENOTDIR") return errors.parentIsFile(path);
      if (isChange && code === "EHIDDEN") return errors.permissionDenied(path);
      const missing = missingEntry(method);
      const known = /^(?:ENOENT|ENOTDIR|EHIDDEN)$/.test(code) ? missing : FAILURES[code];
      return known?.(path) ?? errors.ioFailure(path, IO_REASONS[code] ?? `the system reports ${code}`);
    }
  },
  ls: (at, options) => (isUnmade(at) ? { files: [], skipped: 0 } : listDirectory(at.disk, at, options)),
  read: readPath,
  readRaw: readWholePath,
  grep: async (at, given) => {
    const filter = compileGlob(given.glob ?? "*", { nameAtAnyDepth: true });
    if (!filter.ok) return { error: filter.error, code: filter.code };
    if (isUnmade(at)) return { matches: [], skipped: 0, truncated: false };
    const { options, maxFileSize } = at.disk;
    // Keeping the promise would keep the graph that searched first, through its async context.
    const ripgrep = (options.ripgrep ?? (await findRipgrep())) || undefined;
    // Git's own files are compressed.
    const reaches = (folder: string): boolean =>
      !/(?:^|\/)\.git\/objects$/.test(folder) && filter.glob.reaches(folder);
    const search = { ...given, filter: { ...filter.glob, reaches }, maxFileSize, ripgrep };
    return searchAt(
      at,
      (root) => grepDirectory(root, search),
      () => grepFile(at, search),
    );
  },
  glob: (at, pattern, options) => {
    const compiled = compileGlob(pattern);
    if (!compiled.ok) return { error: compiled.error, code: compiled.code };
    if (isUnmade(at)) return { files: [], skipped: 0, truncated: false };
    return searchAt<port.GlobResult>(
      at,
      (root) => globDirectory(root, compiled.glob, options),
      () => errors.notDirectory(at.path),
    );
  },
  ...storedBy<DiskPath>(async (at, bytes, options) => withNames(at, await putPath(at, bytes, options))),
  edit: async (at, edit) => withNames(at, await editPath(at, { ...edit, maxFileSize: at.disk.maxFileSize })),
  refusal: (at, change) => entryRefusal(at, change),
  delete: (at, options) => {
    const base = at.disk.topSegments();
    const isAboveRoot = at.segments.every((segment, index) => base[index] === segment);
    return isAboveRoot ? errors.refusedToDelete(at.path) : deleteEntry(at, options);
  },
};

/** True if a path is the root and the root does not exist yet. */
const isUnmade = ({ segments, jail }: DiskPath): boolean => segments.length === 0 && jail.isUnmade;

/** Names the other paths of a file that was changed under all its names. */
async function withNames<Result extends port.WriteResult>({ segments, disk }: DiskPath, result: Result) {
  const file = result.otherNames === undefined ? undefined : disk.jail.follow(segments);
  const path = file && disk.pathOf(file.segments);
  if (file?.stats === undefined || path === undefined) return result;
  return { ...result, otherNames: await otherNames(disk, path, file.stats) };
}

/** Searches in the directory at a path, or calls `ofFile` if the path is a file. */
async function searchAt<Result>(
  { path, segments: asked, links, hidden, disk }: DiskPath,
  run: (root: SearchRoot) => Promise<Result>,
  ofFile: () => port.MaybePromise<Result>,
): Promise<Result> {
  const { jail, options } = disk;
  try {
    return await jail.inDirectory(asked, { links }, (directory, segments) => {
      const leavesOut = options.respectGitignore === true;
      const root = { tree: disk, directory, segments, path, hidden, leavesOut };
      return withGitignore(root, disk.topSegments(), run);
    });
  } catch (thrown) {
    if (codeOf(thrown) === "ENOTDIR" && jail.follow(asked)?.stats !== undefined) return ofFile();
    throw thrown;
  }
}

/** Files of a directory on disk. No path, link or race leads out of it. */
export class FilesystemBackend extends CheckedBackend {
  readonly capabilities: Partial<port.BackendCapabilities>;
  readonly #disk: Disk;

  /** Throws `ConfigurationError` when `rootDir` is something else than a directory. */
  constructor(given: FilesystemOptions = {}) {
    const disk = new Disk(readOptions("FilesystemBackend", given, tables.FilesystemBackend));
    super(DISK_OPERATIONS, (path) => disk.locate(path), disk.top);
    this.#disk = disk;
    const paths = disk.form.virtual ? "virtual" : "real";
    this.capabilities = { ...FILES_ONLY, paths, lifetime: "persistent" };
  }

  roots(): port.FileRoot[] {
    return [{ path: this.#disk.top, holds: "disk" }];
  }

  followLinks(path: string, { lastLink }: port.ResolveOptions = {}): string | undefined {
    const located = this.#disk.locate(path);
    const followed = "error" in located ? undefined : this.#disk.jail.follow(located.segments, lastLink);
    return followed && this.#disk.pathOf(followed.segments);
  }
}
