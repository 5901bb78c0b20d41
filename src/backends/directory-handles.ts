import {
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  realpathSync,
} from "node:fs";
import { join } from "node:path";

/** A file system refusal of our own, in the shape of Node's: `code` says what it is. */
export class AccessError extends Error {
  readonly code: "EOUTSIDE" | "ELOOP" | "ENOTDIR" | "EBUSY";

  constructor(code: AccessError["code"]) {
    super(code);
    this.code = code;
  }
}

/**
 * An open directory. Names given to it are single segments and are looked up in this very directory,
 * wherever its path leads by now; links are never followed. Throws Node's file system errors.
 */
export interface DirectoryHandle {
  /** A path for `lstat`, `readlink`, `link`, `rename`, `unlink`, `mkdir` and `rmdir` of one entry. */
  at(name: string): string;
  entries(): Dirent[];
  openDirectory(name: string): DirectoryHandle;
  /** A file descriptor of one entry; the caller closes it. */
  openFile(name: string, flags: number, mode?: number): number;
  /** The same for every path to this directory, as long as it exists. */
  identity(): string;
  close(): void;
}

// On systems that lack a flag it is absent at run time, whatever its type says.
const NO_FOLLOW = constants.O_NOFOLLOW ?? 0;
const DIRECTORY = constants.O_DIRECTORY ?? 0;
const NON_BLOCKING = constants.O_NONBLOCK ?? 0;

/** Whether entries can be opened relative to a directory descriptor, as on Linux. */
export const hasDescriptorPaths = (): boolean => process.platform === "linux" && existsSync("/proc/self/fd");

/** Opens a directory by its real path; `byDescriptor` chooses the safer way, where there is one. */
export function openRoot(path: string, byDescriptor: boolean): DirectoryHandle {
  return byDescriptor
    ? new DescriptorDirectory(openSync(path, constants.O_RDONLY | DIRECTORY | NO_FOLLOW))
    : new NamedDirectory(path);
}

/** Entries through `/proc/self/fd/<n>/<name>`, which the kernel resolves like `openat`. */
class DescriptorDirectory implements DirectoryHandle {
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  at(name: string): string {
    return `/proc/self/fd/${this.#descriptor}/${name}`;
  }

  entries(): Dirent[] {
    return readdirSync(`/proc/self/fd/${this.#descriptor}`, { withFileTypes: true });
  }

  openDirectory(name: string): DirectoryHandle {
    return new DescriptorDirectory(
      openSync(this.at(name), constants.O_RDONLY | DIRECTORY | NO_FOLLOW | NON_BLOCKING),
    );
  }

  openFile(name: string, flags: number, mode?: number): number {
    return openSync(this.at(name), flags | NO_FOLLOW | NON_BLOCKING, mode);
  }

  identity(): string {
    return identityOf(fstatSync(this.#descriptor, { bigint: true }));
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** Entries by path, the directory checked again after each use: what changed in between is refused. */
class NamedDirectory implements DirectoryHandle {
  readonly #path: string;
  readonly #identity: string;

  constructor(path: string) {
    this.#path = path;
    const stats = lstatSync(path, { bigint: true });
    if (stats.isSymbolicLink() || !stats.isDirectory()) throw new AccessError("ENOTDIR");
    this.#identity = identityOf(stats);
    this.#verify();
  }

  at(name: string): string {
    return join(this.#path, name);
  }

  entries(): Dirent[] {
    const entries = readdirSync(this.#path, { withFileTypes: true });
    this.#verify();
    return entries;
  }

  openDirectory(name: string): DirectoryHandle {
    const directory = new NamedDirectory(this.at(name));
    this.#verify();
    return directory;
  }

  openFile(name: string, flags: number, mode?: number): number {
    const creates = (flags & constants.O_CREAT) !== 0;
    const before = creates ? undefined : lstatSync(this.at(name), { bigint: true });
    if (before?.isSymbolicLink() === true) throw new AccessError("ELOOP");
    const descriptor = openSync(this.at(name), flags | NO_FOLLOW | NON_BLOCKING, mode);
    try {
      const opened = identityOf(fstatSync(descriptor, { bigint: true }));
      if (before !== undefined && identityOf(before) !== opened) throw new AccessError("EBUSY");
      this.#verify();
      return descriptor;
    } catch (thrown) {
      closeSync(descriptor);
      throw thrown;
    }
  }

  identity(): string {
    return this.#identity;
  }

  close(): void {
    // Nothing is held open.
  }

  #verify(): void {
    const isSame =
      realpathSync.native(this.#path) === this.#path &&
      identityOf(lstatSync(this.#path, { bigint: true })) === this.#identity;
    if (!isSame) throw new AccessError("EBUSY");
  }
}

const identityOf = (stats: { dev: bigint; ino: bigint }): string => `${stats.dev}:${stats.ino}`;
