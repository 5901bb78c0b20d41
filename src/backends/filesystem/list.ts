import { memoized } from "../../core/concurrency.ts";
import type { BigIntStats, Dirent } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallOptions, FileInfo, LsResult } from "../backend.ts";
import type { Located } from "../checked-backend.ts";
import type { Glob } from "../glob.ts";
import { joinPath } from "../paths.ts";
import { sortByPath } from "../search.ts";
import { type DirectoryHandle, fileIdentity } from "./handles.ts";
import { type FilesystemPath, type HiddenFiles, type Jail, statEntry } from "./jail.ts";
import { isReadOnly, isTemporaryName } from "./read-write.ts";
import { codeOf, orElse } from "../../core/errors.ts";

export interface WalkRequest {
  /** Decides which directories are read. */
  glob: Pick<Glob, "reaches">;
  /** True if a link leads to a file and belongs to the result. Default: no link does. */
  isFile?(link: string): boolean;
  /** Called with the names in each directory, before one of its files or directories is asked about. */
  onNames?(directory: string, names: readonly string[]): void;
  /** Called for each directory that could not be read. */
  onUnreadable(directory: string): void;
}

/**
 * Yields the regular files below a directory as relative paths, in portions and in path order. Does not follow links
 * to directories, includes dot files, and skips names that no path can express. Holds few directories of a level
 * open, and closes them if it is left early. `directory` itself stays open.
 */
export async function* walkFiles(
  directory: DirectoryHandle,
  request: WalkRequest,
): AsyncGenerator<readonly string[]> {
  const levels = [new Level(directory, "", request)];
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const names = await level.names;
      // Directories are read ahead, but in a deep tree one by one: it would use up all descriptors.
      const ahead = levels.length < 32 ? 4 : 1;
      const { files, child } = level.advance(names, ahead);
      if (files.length > 0) yield files;
      if (child !== undefined) levels.push(child);
      else if (levels.pop() !== levels[0]) await level.close();
    }
  } finally {
    await Promise.all(levels.map((level) => level.close()));
  }
}

class Level {
  /** In path order. The slash of a directory sorts it where its files belong. */
  readonly names: Promise<readonly string[]>;
  readonly #directory: DirectoryHandle;
  /** Path of its entries up to their names; empty for the top directory of the walk. */
  readonly #prefix: string;
  readonly #request: WalkRequest;
  /** Directories in it that are read already, by name. */
  readonly #started = new Map<string, Level>();
  #next = 0;
  #nextToStart = 0;

  constructor(directory: DirectoryHandle, prefix: string, request: WalkRequest) {
    this.#directory = directory;
    this.#prefix = prefix;
    this.#request = request;
    this.names = this.#read();
  }

  /** Returns the files up to the next directory of the walk, and that directory; without one the level has ended. */
  advance(names: readonly string[], ahead: number): { files: readonly string[]; child: Level | undefined } {
    this.#startAhead(names, ahead);
    const files: string[] = [];
    for (let name = names[this.#next++]; name !== undefined; name = names[this.#next++]) {
      const child = this.#started.get(name);
      if (child !== undefined) {
        this.#started.delete(name);
        this.#startAhead(names, ahead);
        return { files, child };
      }
      if (!name.endsWith("/")) files.push(this.#prefix + name);
    }
    return { files, child: undefined };
  }

  async close(): Promise<void> {
    // If it were closed during the read, another directory could get its descriptor.
    await this.names;
    await Promise.all([...this.#started.values()].map((level) => level.close()));
    if (this.#prefix !== "") this.#directory.close();
  }

  async #read(): Promise<readonly string[]> {
    try {
      const names: string[] = [];
      for (const entry of expressibleEntries(this.#directory, await this.#directory.entries())) {
        const isFile = (): boolean =>
          entry.isFile() ||
          (entry.isSymbolicLink() && this.#request.isFile?.(this.#prefix + entry.name) === true);
        if (entry.isDirectory()) names.push(`${entry.name}/`);
        else if (!isTemporaryName(entry.name) && isFile()) names.push(entry.name);
      }
      names.sort();
      this.#request.onNames?.(this.#prefix, names);
      return names;
    } catch {
      this.#request.onUnreadable(this.#prefix.slice(0, -1));
      return [];
    }
  }

  #startAhead(names: readonly string[], ahead: number): void {
    while (this.#nextToStart < names.length && this.#started.size < ahead) {
      const name = names[this.#nextToStart++] ?? "";
      const path = this.#prefix + name.slice(0, -1);
      if (!name.endsWith("/") || !this.#request.glob.reaches(path)) continue;
      try {
        const directory = this.#directory.openDirectory(name.slice(0, -1));
        this.#started.set(name, new Level(directory, `${path}/`, this.#request));
      } catch {
        this.#request.onUnreadable(path);
      }
    }
  }
}

/**
 * The entries that a path can name. A name with a backslash would be read as two segments. The bytes of a name that
 * is not UTF-8 are lost, so it would find nothing or another entry.
 */
function expressibleEntries(directory: DirectoryHandle, entries: readonly Dirent[]): Dirent[] {
  const doubtful = new Set<string>();
  return entries.filter(({ name }) => {
    if (name.includes("\\")) return false;
    if (!name.includes("\ufffd")) return true;
    if (doubtful.has(name)) return false;
    doubtful.add(name);
    return statEntry(directory, name) !== undefined;
  });
}

/** Entries between two turns of the event loop. */
const SLICE = 500;

export async function listDirectory(
  tree: DiskTree,
  { segments, path, links }: FilesystemPath,
  options: CallOptions | undefined,
): Promise<LsResult> {
  try {
    return await tree.jail.inDirectory(segments, { links }, async (directory, real) => {
      const place = { tree, directory, segments: real, path };
      const files: FileInfo[] = [];
      const entries = await directory.entries();
      const expressible = expressibleEntries(directory, entries);
      let skipped = entries.length - expressible.length;
      for (const [index, entry] of expressible.entries()) {
        if (index % SLICE === SLICE - 1) await nextTurn();
        options?.signal?.throwIfAborted();
        if (isTemporaryName(entry.name)) continue;
        const info = describe(place, entry);
        if (info === "unreadable") skipped += 1;
        else if (info !== undefined) files.push(info);
      }
      return { files: sortByPath(files), skipped };
    });
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOTDIR") throw thrown;
    const stats = await tree.jail.atEntry(segments, { links }, ({ directory, name }) =>
      statEntry(directory, name),
    );
    if (stats === undefined || stats.isDirectory()) throw thrown;
    return { files: [{ path: path, is_dir: false, ...sizeAndTime(stats) }] };
  }
}

/** A jail, and the paths that its callers know. */
export interface DiskTree {
  readonly jail: Jail;
  /** The directory that is the root of all paths. */
  topSegments(): readonly string[];
  /** Returns undefined for an entry that has no path. */
  pathOf(segments: readonly string[]): string | undefined;
}

/** The files of a tree that a caller hides by their paths. Hard links are other names of such files. */
export class HiddenByPath implements HiddenFiles {
  readonly #identities: () => Promise<ReadonlySet<string>>;

  constructor(tree: DiskTree, hides: (path: string) => boolean) {
    this.#identities = memoized(
      async () => new Set((await findIdentities(tree, { accepts: hides })).values()),
    );
  }

  async has(stats: BigIntStats): Promise<boolean> {
    if (stats.nlink < 2n) return false;
    // Walks the whole tree, which only a file with several names makes necessary.
    return (await this.#identities()).has(fileIdentity(stats));
  }
}

/** The other paths of a file, as far as they are found in a second. */
export async function otherNames(tree: DiskTree, path: string, stats: BigIntStats): Promise<string[]> {
  const until = performance.now() + 1000;
  const found = await findIdentities(tree, { accepts: (other) => other !== path, until });
  return [...found].filter(([, identity]) => identity === fileIdentity(stats)).map(([other]) => other);
}

/** The identity of each accepted file with several names, by its path. */
function findIdentities(
  tree: DiskTree,
  { accepts, until = Infinity }: { accepts: (path: string) => boolean; until?: number },
): Promise<Map<string, string>> {
  const top = tree.topSegments();
  return tree.jail.inDirectory(top, {}, async (directory) => {
    const found = new Map<string, string>();
    const everything = { glob: { reaches: () => true }, onUnreadable: () => undefined };
    for await (const files of walkFiles(directory, everything)) {
      for (const file of files) {
        if (performance.now() > until) return found;
        const segments = [...top, ...file.split("/")];
        const path = tree.pathOf(segments);
        if (path === undefined || !accepts(path)) continue;
        const stats = tree.jail.follow(segments)?.stats;
        if (stats !== undefined && stats.nlink > 1n) found.set(path, fileIdentity(stats));
      }
    }
    return found;
  });
}

export interface OpenDirectory extends Located {
  tree: DiskTree;
  directory: DirectoryHandle;
  /** From the root of the jail, free of links. */
  segments: readonly string[];
}

function describe({ tree, directory, segments, path }: OpenDirectory, entry: Dirent) {
  const shown = joinPath(path, entry.name);
  if (entry.isSymbolicLink()) {
    // A link that leads out of the root is shown with its name alone.
    const { segments: real, stats } = tree.jail.follow([...segments, entry.name]) ?? {};
    const target = real && tree.pathOf(real);
    const link = target === undefined ? {} : { real_path: target };
    if (stats?.isDirectory() === true) return { path: `${shown}/`, is_dir: true, ...link };
    return { path: shown, is_dir: false, ...link, ...(stats === undefined ? {} : sizeAndTime(stats)) };
  }
  const stats = orElse(() => statEntry(directory, entry.name), "unreadable" as const);
  // Undefined if it is gone.
  if (typeof stats !== "object") return stats;
  if (stats.isDirectory()) return { path: `${shown}/`, is_dir: true, modified_at: stats.mtime.toISOString() };
  return { path: shown, is_dir: false, ...sizeAndTime(stats) };
}

const sizeAndTime = (stats: BigIntStats): Omit<FileInfo, "path"> => ({
  size: Number(stats.size),
  modified_at: stats.mtime.toISOString(),
  ...(stats.isFile() && isReadOnly(stats) ? { read_only: true } : {}),
  ...(stats.isFile() && stats.nlink > 1n ? { names: Number(stats.nlink) } : {}),
});
