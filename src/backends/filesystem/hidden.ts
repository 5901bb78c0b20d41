import {
  type BigIntStats,
  closeSync,
  type Dirent,
  fstatSync,
  lstatSync,
  readdirSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isInside, realPath } from "../../core/real-path.ts";
import { AccessError, type DirectoryHandle, identityOf } from "./directory-handles.ts";

/**
 * Files and directories below a root that nobody is shown. They are told by what they are, not by their
 * names: neither links nor hard links nor another case of the name lead to them.
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

  /** The same directory, and every one that is opened from it, without what is hidden now. */
  guard(directory: DirectoryHandle): DirectoryHandle {
    return this.#paths.length === 0 ? directory : new GuardedDirectory(directory, new HiddenNow(this.#paths));
  }

  /** Whether something hidden is anywhere below a directory. */
  areBelow(directory: BigIntStats): boolean {
    const identity = identityOf(directory);
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
    this.#entries = setOf(paths.map((path) => identityAt(path, lstatSync)));
    this.#parents = setOf(paths.map((path) => identityAt(dirname(path))));
  }

  /** A file with several names may have one of them in a hidden directory. */
  has(stats: BigIntStats): boolean {
    const identity = identityOf(stats);
    if (this.#entries.has(identity)) return true;
    return stats.isFile() && stats.nlink > 1n && (this.#files ??= setOf(this.#below())).has(identity);
  }

  isParent(directory: DirectoryHandle): boolean {
    return this.#parents.has(directory.identity());
  }

  #below(): (string | undefined)[] {
    return this.#paths.flatMap((path) => {
      try {
        const names = readdirSync(path, { recursive: true, encoding: "utf8" });
        return names.map((name) => identityAt(join(path, name), lstatSync));
      } catch {
        // A file, or gone.
        return [];
      }
    });
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

  async entries(): Promise<Dirent[]> {
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
    if (!this.#hidden.has(fstatSync(descriptor, { bigint: true }))) return descriptor;
    closeSync(descriptor);
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
    const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stats !== undefined && this.#hidden.has(stats);
  }
}

type Stat = (path: string, options: { bigint: true; throwIfNoEntry: false }) => BigIntStats | undefined;

function identityAt(path: string, stat: Stat = statSync): string | undefined {
  try {
    const stats = stat(path, { bigint: true, throwIfNoEntry: false });
    return stats === undefined ? undefined : identityOf(stats);
  } catch {
    return undefined;
  }
}

const setOf = (identities: readonly (string | undefined)[]): ReadonlySet<string> =>
  new Set(identities.filter((identity) => identity !== undefined));
