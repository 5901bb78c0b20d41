import * as fs from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { codeOf, orElse } from "../../core/errors.ts";
import { isInside, realPath } from "../../core/real-path.ts";
import type { Located } from "../checked-backend.ts";
import { type BackendFailure, errors } from "../errors.ts";
import { hasSpellings, plainSpelling, validatePath } from "../paths.ts";
import { AccessError, type DirectoryHandle, hasDescriptorPaths, fileIdentity, openRoot } from "./handles.ts";

/**
 * Hidden files and directories below a root. They are recognized by device and inode, so that no link, hard link
 * or other spelling of the name leads to them.
 */
export class HiddenEntries {
  readonly #paths: readonly string[];
  readonly #root: string;

  /** `root` is a real path. Paths that are not below it are left out. */
  constructor(root: string, paths: readonly string[]) {
    this.#root = root;
    const every = paths.flatMap((path) => [path, realPath(path)]);
    this.#paths = [...new Set(every)].filter((path) => isInside(root, realPath(dirname(path))));
  }

  /** Hides the hidden entries of a directory, and of all directories that are opened from it. */
  guard(directory: DirectoryHandle): DirectoryHandle {
    return this.#paths.length === 0 ? directory : new GuardedDirectory(directory, new HiddenNow(this.#paths));
  }

  /** True if there is a hidden entry anywhere below a directory. */
  areBelow(directory: fs.BigIntStats): boolean {
    const identity = fileIdentity(directory);
    return this.#paths.some((path) => {
      for (let above = realPath(dirname(path)); isInside(this.#root, above); above = dirname(above)) {
        if (identityAt(above) === identity) return true;
        if (above === dirname(above)) return false;
      }
      return false;
    });
  }
}

/** The hidden files and directories, looked up once for one operation. */
class HiddenNow {
  readonly #paths: readonly string[];
  readonly #entries: ReadonlySet<string>;
  readonly #parents: ReadonlySet<string>;
  #files: ReadonlySet<string> | undefined;

  constructor(paths: readonly string[]) {
    this.#paths = paths;
    this.#entries = knownIdentities(paths.map((path) => identityAt(path, fs.lstatSync)));
    this.#parents = knownIdentities(paths.map((path) => identityAt(dirname(path))));
  }

  /** True if an entry is hidden. A file with several names is hidden if one of them is in a hidden directory. */
  has(stats: fs.BigIntStats): boolean {
    const identity = fileIdentity(stats);
    if (this.#entries.has(identity) || !stats.isFile() || stats.nlink < 2n)
      return this.#entries.has(identity);
    this.#files ??= knownIdentities(
      this.#paths.flatMap((path) => {
        // A file has no entries, and neither has a directory that is gone.
        const names = orElse(() => fs.readdirSync(path, { recursive: true, encoding: "utf8" }), []);
        return names.map((name) => identityAt(join(path, name), fs.lstatSync));
      }),
    );
    return this.#files.has(identity);
  }

  isParent(directory: DirectoryHandle): boolean {
    return this.#parents.has(directory.identity());
  }
}

class GuardedDirectory implements DirectoryHandle {
  readonly #inner: DirectoryHandle;
  readonly #hidden: HiddenNow;

  constructor(inner: DirectoryHandle, hidden: HiddenNow) {
    this.#inner = inner;
    this.#hidden = hidden;
  }

  at(name: string): string {
    const path = this.#inner.at(name);
    if (this.#isHidden(path)) throw new AccessError("EHIDDEN");
    return path;
  }

  async entries(): Promise<fs.Dirent[]> {
    const entries = await this.#inner.entries();
    if (!this.#hidden.isParent(this.#inner)) return entries;
    return entries.filter(({ name }) => !this.#isHidden(this.#inner.at(name)));
  }

  openDirectory(name: string): DirectoryHandle {
    const directory = this.#inner.openDirectory(name);
    if (!this.#isHidden(directory.at("."))) return new GuardedDirectory(directory, this.#hidden);
    directory.close();
    throw new AccessError("EHIDDEN");
  }

  openFile(name: string, flags: number, mode?: number): number {
    const descriptor = this.#inner.openFile(name, flags, mode);
    if (!this.#hidden.has(fs.fstatSync(descriptor, { bigint: true }))) return descriptor;
    fs.closeSync(descriptor);
    throw new AccessError("EHIDDEN");
  }

  identity(): string {
    return this.#inner.identity();
  }

  flush(): Promise<void> {
    return this.#inner.flush();
  }

  close(): void {
    this.#inner.close();
  }

  #isHidden(path: string): boolean {
    const stats = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stats !== undefined && this.#hidden.has(stats);
  }
}

const identityAt = (path: string, stat: fs.StatSyncFn = fs.statSync): string | undefined =>
  orElse(() => {
    const stats = stat(path, { bigint: true, throwIfNoEntry: false });
    return stats && fileIdentity(stats);
  }, undefined);

const knownIdentities = (identities: readonly (string | undefined)[]): ReadonlySet<string> =>
  new Set(identities.filter((identity) => identity !== undefined));

/** An entry and the open directory it is in. `segments` is its path from the root, free of links. */
export interface JailEntry {
  directory: DirectoryHandle;
  name: string;
  segments: readonly string[];
}

export interface WalkOptions {
  /** Makes missing directories. Default false. */
  create?: boolean;
  /** Decides if a link at the end stands for itself or its target. Default `target`. */
  lastLink?: "itself" | "target";
  /** Default `inside`: links are followed as long as they stay below the root. */
  links?: "inside" | "none";
}

/** The end of a path after its links were followed. */
export interface Followed {
  /** From the root, free of links. */
  segments: readonly string[];
  /** Undefined if nothing exists at the path. */
  stats: fs.BigIntStats | undefined;
}

/** The first obstacle on a path that stops a walk, or the entry at its end. */
type WalkStep =
  | { located: JailEntry }
  | LinkStep
  | { missing: readonly string[]; above: readonly string[]; thrown: unknown };

interface LinkStep {
  target: string;
  above: readonly string[];
  rest: readonly string[];
}

/**
 * A directory that no path leads out of. Paths are walked segment by segment from the open root. Each name is looked up
 * in the directory that was just opened; a link is read, and its target is walked in the same way. So the checked entry
 * is the one that is used, even if others swap entries during the walk. Throws Node's file system errors and
 * `AccessError`.
 */
export class Jail {
  /** Real path, for `ripgrep` and nothing else. */
  readonly root: string;
  readonly hidden: HiddenEntries;
  readonly #aliases: readonly string[];
  readonly #byDescriptor: boolean;
  #wasThere: boolean;

  /**
   * A `rootDir` that does not exist is made by the first walk with `create`. `byDescriptor`: see `openRoot`.
   * `hidden`: paths of this machine, see `HiddenEntries`.
   */
  constructor(rootDir: string, byDescriptor: boolean = hasDescriptorPaths(), hidden: readonly string[] = []) {
    this.root = realPath(rootDir);
    this.hidden = new HiddenEntries(this.root, hidden);
    this.#aliases = [this.root, rootDir];
    this.#byDescriptor = byDescriptor;
    this.#wasThere = fs.existsSync(this.root);
    if (this.#wasThere) openRoot(this.root, byDescriptor).close();
  }

  /** True if the root does not exist yet. It then counts as empty, not as missing. */
  get isUnmade(): boolean {
    return !this.#wasThere && !fs.existsSync(this.root);
  }

  /** Calls `use` with the directory at `segments`, which is closed afterwards. */
  inDirectory<Result>(
    segments: readonly string[],
    options: WalkOptions,
    use: (directory: DirectoryHandle, segments: readonly string[]) => Result | Promise<Result>,
  ): Promise<Result> {
    return this.atEntry([...segments, "."], options, (found) => use(found.directory, found.segments));
  }

  /** Calls `use` with the entry at `segments`, whose directory is closed afterwards. The root has no entry. */
  async atEntry<Result>(
    segments: readonly string[],
    options: WalkOptions,
    use: (located: JailEntry) => Result | Promise<Result>,
  ): Promise<Result> {
    const step = this.#walkLinks(segments, options);
    if ("missing" in step) throw step.thrown;
    const located = step.located;
    try {
      return await use(located);
    } finally {
      located.directory.close();
    }
  }

  /**
   * Follows the links of a path, whose end need not exist. Returns undefined if it leads out, in circles, or through
   * something that cannot be read or is not a directory.
   */
  follow(segments: readonly string[], lastLink?: WalkOptions["lastLink"]): Followed | undefined {
    if (this.isUnmade) return { segments, stats: undefined };
    try {
      const step = this.#walkLinks(segments, { lastLink });
      if ("missing" in step) {
        // The system follows no link through a missing directory and back.
        if (step.missing.includes("..")) return undefined;
        return { segments: [...step.above, ...step.missing], stats: undefined };
      }
      const { directory, name, segments: real } = step.located;
      try {
        return { segments: real, stats: statEntry(directory, name) };
      } finally {
        directory.close();
      }
    } catch {
      return undefined;
    }
  }

  /** Walks a path, and the targets of its links in their place. */
  #walkLinks(segments: readonly string[], options: WalkOptions): Exclude<WalkStep, LinkStep> {
    let pending = segments;
    // The system follows at most 40 links, too.
    for (let links = 0; links <= 40; links += 1) {
      const step = this.#walkToLink(pending, options);
      if (!("target" in step)) return step;
      if (options.links === "none") break;
      // Continues with the target of the link, then the rest of the path.
      const { target, above, rest } = step;
      const below = isAbsolute(target)
        ? this.#aliases.flatMap((alias) => replaceBase(target, alias, "") ?? [])[0]
        : target;
      if (below === undefined) throw new AccessError("EOUTSIDE");
      const parts = below.split(/[/\\]/).filter((part) => part !== "" && part !== ".");
      pending = [...(isAbsolute(target) ? [] : above), ...parts, ...rest];
    }
    throw new AccessError("ELOOP");
  }

  #openRoot({ create = false }: WalkOptions): DirectoryHandle {
    if (create && this.isUnmade) fs.mkdirSync(this.root, { recursive: true });
    try {
      const root = openRoot(this.root, this.#byDescriptor);
      this.#wasThere = true;
      return this.hidden.guard(root);
    } catch (thrown) {
      const code = codeOf(thrown);
      if (code === "ENOENT" && !this.#wasThere) throw thrown;
      // Its place may be taken by a file, or by a link to somewhere else.
      if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP") throw new AccessError("ENOROOT");
      throw thrown;
    }
  }

  /** Walks until the first link or missing directory. */
  #walkToLink(pending: readonly string[], options: WalkOptions): WalkStep {
    // The path of an entry itself, a new one or one that was judged before, is taken as it is spelt.
    const isExact = options.create === true || options.lastLink === "itself" || options.links === "none";
    const passed: string[] = [];
    const open: DirectoryHandle[] = [this.#openRoot(options)];
    let keep: DirectoryHandle | undefined;
    try {
      for (const [index, given] of pending.entries()) {
        // The root handle is never popped: going above it is refused.
        const directory = open.at(-1) as DirectoryHandle;
        const name = isExact ? given : trueName(directory, given);
        const isLast = index === pending.length - 1;
        if (name === "..") {
          if (passed.pop() === undefined) throw new AccessError("EOUTSIDE");
          open.pop()?.close();
        } else if (isLast) {
          const target = options.lastLink === "itself" ? undefined : linkTarget(directory, name);
          if (target !== undefined) return { target, above: passed, rest: [] };
          keep = directory;
          return { located: { directory, name, segments: name === "." ? passed : [...passed, name] } };
        } else {
          const found = enter(directory, name, options, open);
          if (found === undefined) passed.push(name);
          else if ("target" in found) return { ...found, above: passed, rest: pending.slice(index + 1) };
          else return { ...found, above: passed, missing: pending.slice(index) };
        }
      }
      // The path was the root or ended in `..`, so the directory itself is meant.
      keep = open.at(-1) as DirectoryHandle;
      return { located: { directory: keep, name: ".", segments: passed } };
    } finally {
      for (const directory of open) if (directory !== keep) directory.close();
    }
  }
}

/** Looks up an entry without following links; undefined if there is none. */
export const statEntry = (directory: DirectoryHandle, name: string): fs.BigIntStats | undefined =>
  fs.lstatSync(directory.at(name), { bigint: true, throwIfNoEntry: false });

/**
 * Finds the entry that differs from a missing name only in characters that look the same: macOS puts U+202F into the
 * names of screenshots, and other programs decompose letters. Returns the name itself unless exactly one entry fits.
 */
function trueName(directory: DirectoryHandle, name: string): string {
  if (!hasSpellings(name) || statEntry(directory, name) !== undefined) return name;
  const plain = plainSpelling(name);
  // A directory that cannot be listed has only the names that are known.
  const names = orElse(() => fs.readdirSync(directory.at(".")), []);
  const [first, ...others] = names.filter((entry) => plainSpelling(entry) === plain);
  return first === undefined || others.length > 0 ? name : first;
}

/** Opens a directory below the last of `open` and adds it. Returns the target of a link, or the error if it is missing. */
function enter(
  directory: DirectoryHandle,
  name: string,
  options: WalkOptions,
  open: DirectoryHandle[],
): { target: string } | { thrown: unknown } | undefined {
  try {
    open.push(directory.openDirectory(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    const target = code === "ENOTDIR" || code === "ELOOP" ? linkTarget(directory, name) : undefined;
    if (target !== undefined) return { target };
    if (code !== "ENOENT") throw thrown;
    if (options.create !== true) return { thrown };
    try {
      fs.mkdirSync(directory.at(name));
    } catch (failed) {
      // Another process made it first. It is opened and checked like any other directory.
      if (codeOf(failed) !== "EEXIST") throw failed;
    }
    open.push(directory.openDirectory(name));
  }
  return undefined;
}

/** The target of a link; undefined for any other entry, also for a missing one. */
function linkTarget(directory: DirectoryHandle, name: string): string | undefined {
  if (name === ".") return undefined;
  try {
    return fs.readlinkSync(directory.at(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === "EINVAL" || code === "ENOENT" || code === "UNKNOWN") return undefined;
    throw thrown;
  }
}

/** A path as it was asked for, and as segments from the root of the jail. */
export interface FilesystemPath extends Located {
  jail: Jail;
  segments: readonly string[];
  /** Default `inside`; `none` for a path whose links were followed before. */
  links?: WalkOptions["links"];
  /** Files that the caller hides. Default: none. */
  hidden?: HiddenFiles;
}

/** Files that are not read by any of their names. */
export interface HiddenFiles {
  has(stats: fs.BigIntStats): Promise<boolean>;
}

export interface PathForm {
  virtual: boolean;
  /** Real path of the directory that `/` or a relative path means. */
  rootDir: string;
  /** The configured path of that directory, with its links. */
  configuredDir: string;
  /** Real path of the jail: `rootDir`, or the root of the file system without containment. */
  jailDir: string;
}

const splitPath = (path: string, separator: string): string[] =>
  path.split(separator).filter((segment) => segment !== "");

/** Reads a path in the configured form. Looks nothing up. */
export function parseFilesystemPath(
  path: string,
  form: PathForm,
): Pick<FilesystemPath, "path" | "segments"> | BackendFailure {
  const valid = validatePath(path, { form: form.virtual ? "virtual" : "real" });
  if (!valid.ok) return valid;
  const base = splitPath(relative(form.jailDir, form.rootDir), sep);
  if (form.virtual) return { segments: [...base, ...splitPath(valid.path, "/")], path: valid.path };
  const asked = resolve(form.rootDir, valid.path);
  const wanted = replaceBase(asked, form.configuredDir, form.rootDir) ?? asked;
  const below = replaceBase(wanted, form.jailDir, "");
  if (below === undefined) return errors.outsideRoot(valid.path, form.configuredDir);
  return { segments: splitPath(below, sep), path: wanted };
}

/** The reverse of `parseFilesystemPath`; undefined if the segments have no path in this form. */
export function formatFilesystemPath(segments: readonly string[], form: PathForm): string | undefined {
  const real = resolve(form.jailDir, ...segments);
  if (!form.virtual) return real;
  const below = replaceBase(real, form.rootDir, "");
  return below === undefined ? undefined : `/${splitPath(below, sep).join("/")}`;
}

/** Replaces `base` at the beginning of a path; undefined for a path that is not below `base`. */
function replaceBase(path: string, base: string, by: string): string | undefined {
  if (path === base) return by;
  const start = base.endsWith(sep) ? base : base + sep;
  return path.startsWith(start) ? by + sep + path.slice(start.length) : undefined;
}
