/**
 * Finds the places of a folder whose files start programs: in Git, editors and agents that the person uses outside
 * the sandbox. A command that nobody approved may not change them.
 */
import { type Dirent, closeSync, constants, fstatSync, opendirSync, openSync, readSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { isInside, realPath } from "../../core/real-path.ts";
import { linkStatsAt } from "../../core/stats.ts";
import places from "./starting-places.json" with { type: "json" };
import { OWN_COMMON_FOLDER, isPlaceholder } from "./placeholders.ts";

export const STARTING_PLACES: readonly {
  /** File or folder in the root of a project, or in a folder there such as `.github/hooks`. */
  name: string;
  /** The part of it that starts programs. */
  starts: string;
  source: string;
  /** True if it is protected only where it exists. */
  isOptional: boolean;
}[] = [
  // Protected even if they are missing.
  ...places.always.map((place) => ({ ...place, isOptional: false })),
  // Protected if they exist: without them, their programs do not run at all.
  ...places.ifPresent.map((place) => ({ ...place, isOptional: true })),
];

/** True for the path of such a place. A workspace of VS Code has tasks and settings, under any name. */
const isStarting = (path: string): boolean =>
  STARTING_PLACES.some(({ name }) => `/${path}`.endsWith(`/${name}`)) || path.endsWith(".code-workspace");

/** The program that a project file starts, by the names on its path. */
export const startsAt = (path: string): string | undefined =>
  STARTING_PLACES.find(({ name }) => `/${path}/`.includes(`/${name}/`))?.starts;

/** Absolute paths by the way in which each can be protected. */
export interface ProtectedPlaces {
  existing: string[];
  /** Must not be made. */
  missing: string[];
  /** Git directories without a file `commondir`, which would lead Git to other hooks and settings. */
  withoutCommonFolder: string[];
  /** Places that a link leads to. A mount protects the target, but nothing keeps the link from being replaced. */
  links: string[];
}

/** All places that a command may neither make nor change. */
export const allPlaces = ({ existing, missing, withoutCommonFolder, links }: ProtectedPlaces): string[] => [
  ...existing,
  ...missing,
  ...withoutCommonFolder.map((folder) => join(folder, "commondir")),
  ...links,
];

/** True if a real path below `root` is one of these places, lies in one, or has the name of one in any folder. */
export function isStartingPath(root: string, path: string): boolean {
  if (!isInside(root, path)) return false;
  const names = relative(root, path).split(sep);
  const isNamed = names.some((_, index) => isStarting(names.slice(0, index + 1).join("/")));
  return isNamed || allPlaces(startingPlaces(root)).some((place) => isInside(place, path));
}

/**
 * Limits of the search: depth below the root and number of folders with nested projects, depth of submodules, entries
 * of a folder and bytes of a file. Commands may have made anything here.
 */
const SEARCH_LIMITS = { depth: 3, folders: 1000, moduleDepth: 6, entries: 5000, fileBytes: 256 * 1024 };

/** Finds the places below `root`, which is a real path; those of nested projects as far as the limits allow. */
export function startingPlaces(root: string): ProtectedPlaces {
  const search = new PlaceSearch(root);
  search.root();
  search.nested();
  return search.found;
}

/** Finds the places in the folder of a repository, which is a real path. */
export function gitPlaces(folder: string): ProtectedPlaces {
  const search = new PlaceSearch(folder);
  search.gitFolder(folder);
  return search.found;
}

/** The folders of Git in a workspace: of its repository, of submodules, and of other repositories inside. */
export function gitFolders(workspace: string): string[] {
  const root = realPath(workspace);
  const isOfGit = (folder: string): boolean => relative(root, folder).split(sep).includes(".git");
  return startingPlaces(root).withoutCommonFolder.filter(isOfGit);
}

class PlaceSearch {
  readonly found: ProtectedPlaces = { existing: [], missing: [], withoutCommonFolder: [], links: [] };
  readonly #root: string;
  readonly #seen = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Looks for each name, because the listing of a folder may be cut. */
  root(): void {
    for (const { name, isOptional } of STARTING_PLACES) {
      const path = join(this.#root, name);
      if (name === ".git") this.#git(path);
      else this.#add(path, !isOptional && linkStatsAt(dirname(path)) !== undefined);
    }
  }

  /** Looks into the folders nearest to the root first. */
  nested(): void {
    let folders = [this.#root];
    let left = SEARCH_LIMITS.folders;
    for (let depth = 0; depth <= SEARCH_LIMITS.depth && left > 0; depth += 1) {
      const some = folders.slice(0, left);
      left -= some.length;
      folders = some.flatMap((folder) => {
        const entries = readEntries(folder);
        if (isGitFolder(entries)) this.gitFolder(folder);
        for (const { name } of entries) {
          const path = join(folder, name);
          if (name === ".git") this.#git(path);
          else if (isStarting(this.#way(path))) this.#add(path);
        }
        // These may also be projects.
        return entries
          .filter((entry) => entry.isDirectory() && entry.name !== "node_modules")
          .map(({ name }) => join(folder, name))
          .filter((path) => !isStarting(this.#way(path)));
      });
    }
  }

  #way(path: string): string {
    return relative(this.#root, path).split(sep).join("/");
  }

  /** A repository, or the file that a worktree or a submodule has in its place. */
  #git(path: string): void {
    if (linkStatsAt(path)?.isDirectory() === true && !isPlaceholder(path)) return this.gitFolder(path);
    this.#add(path, dirname(path) === this.#root);
    const target = /^gitdir: (.+)$/m.exec(readFileHead(path))?.[1];
    const folder = target === undefined ? this.#root : realPath(resolve(dirname(path), target));
    if (folder !== this.#root && isInside(this.#root, folder)) this.gitFolder(folder);
  }

  /** A folder with the settings and hooks of a repository; those of its submodules and worktrees are in it. */
  gitFolder(folder: string): void {
    if (this.#seen.has(folder)) return;
    this.#seen.add(folder);
    const config = readFileHead(join(folder, "config"));
    const hasOwnSettings = /worktreeconfig/i.test(config);
    for (const name of ["hooks", "config"]) this.#add(join(folder, name), true);
    this.#add(join(folder, "config.worktree"), hasOwnSettings);
    const common = join(folder, "commondir");
    if (linkStatsAt(common) === undefined || readFileHead(common) === OWN_COMMON_FOLDER)
      this.found.withoutCommonFolder.push(folder);
    else this.#add(common);
    for (const path of configValues("hookspath", config)) this.#add(resolve(dirname(folder), path), true);
    for (const path of configValues("path", config)) this.#add(resolve(folder, path));
    const worktrees = join(folder, "worktrees");
    for (const { name } of readEntries(worktrees)) {
      for (const file of ["gitdir", "commondir"]) this.#add(join(worktrees, name, file));
      this.#add(join(worktrees, name, "config.worktree"), hasOwnSettings);
    }
    this.#modules(join(folder, "modules"), SEARCH_LIMITS.moduleDepth);
  }

  /** Names of submodules have slashes, so that their folders lie at any depth. */
  #modules(folder: string, depth: number): void {
    const entries = readEntries(folder);
    if (isGitFolder(entries)) return this.gitFolder(folder);
    if (depth === 0) return;
    for (const entry of entries) if (entry.isDirectory()) this.#modules(join(folder, entry.name), depth - 1);
  }

  /** `isHeld`: a missing one must not be made, nor the first missing folder on the way to it. */
  #add(path: string, isHeld = false): void {
    if (this.#seen.has(path) || path === this.#root || !isInside(this.#root, path)) return;
    this.#seen.add(path);
    const { existing, missing, links } = this.found;
    const names = relative(this.#root, path).split(sep);
    const onTheWay = names.map((_, index) => join(this.#root, ...names.slice(0, index + 1)));
    if (onTheWay.some((each) => linkStatsAt(each)?.isSymbolicLink() === true)) links.push(path);
    else if (isPlaceholder(path)) missing.push(path);
    else if (linkStatsAt(path) !== undefined) existing.push(path);
    else if (!isHeld) return;
    else if (linkStatsAt(dirname(path)) === undefined) this.#add(dirname(path), true);
    else missing.push(path);
  }
}

/** The values of a name in the settings of Git; paths below the home folder are left out. */
function configValues(name: string, config: string): string[] {
  const settings = config.split("\n").map((line) => /^([^=]+)=(.*)/.exec(line) ?? []);
  return settings
    .filter(([, key = ""]) => key.trim().toLowerCase() === name)
    .map(([, , value = ""]) => value.trim().replaceAll('"', ""))
    .filter((value) => value !== "" && !value.startsWith("~"));
}

function isGitFolder(entries: readonly Dirent[]): boolean {
  const folders = new Set(entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])));
  return folders.has("objects") && folders.has("refs") && entries.some(({ name }) => name === "HEAD");
}

function readEntries(folder: string): Dirent[] {
  try {
    const entries: Dirent[] = [];
    const opened = opendirSync(folder);
    try {
      while (entries.length < SEARCH_LIMITS.entries) {
        const entry = opened.readSync();
        if (entry === null) break;
        entries.push(entry);
      }
    } finally {
      opened.closeSync();
    }
    return entries;
  } catch {
    return [];
  }
}

/** The text of a file; empty for everything else, such as a pipe, which would never end. */
export function readFileHead(path: string): string {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    try {
      if (!fstatSync(file).isFile()) return "";
      const bytes = Buffer.alloc(SEARCH_LIMITS.fileBytes);
      return bytes.toString("utf8", 0, readSync(file, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
