import * as fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { codeOf } from "../../core/errors.ts";

const readdir = promisify(fs.readdir);
const flush = promisify(fs.fsync);

/** A refusal of our own, in the shape of Node's file system errors. */
export class AccessError extends Error {
  readonly code: "EOUTSIDE" | "ELOOP" | "ENOTDIR" | "EBUSY" | "EALIAS" | "ENOROOT" | "EHIDDEN" | "EACCES";

  constructor(code: AccessError["code"]) {
    super(code);
    this.code = code;
  }
}

/**
 * An open directory. Names passed to it are single segments and are looked up in this very directory,
 * wherever its path leads by now; links are never followed. Throws Node's file system errors.
 */
export interface DirectoryHandle {
  /** A path for `lstat`, `readlink`, `link`, `rename`, `unlink`, `mkdir` and `rmdir` of one entry. */
  at(name: string): string;
  /** Its entries, in any order. The directory must stay open until they are read. */
  entries(): Promise<fs.Dirent[]>;
  openDirectory(name: string): DirectoryHandle;
  /** A file descriptor of one entry; the caller closes it. */
  openFile(name: string, flags: number, mode?: number): number;
  /** Identifies the directory, whatever path leads to it. */
  identity(): string;
  /** Makes its current entries safe from a power cut, if the system can do that. */
  flush(): Promise<void>;
  close(): void;
}

// A flag that the system lacks is absent at run time, although its type is a number.
const NO_FOLLOW = fs.constants.O_NOFOLLOW ?? 0;
const DIRECTORY = fs.constants.O_DIRECTORY ?? 0;
const NON_BLOCKING = fs.constants.O_NONBLOCK ?? 0;

/** True if entries can be opened relative to a directory descriptor, as on Linux. */
export const hasDescriptorPaths = (platform: NodeJS.Platform = process.platform): boolean =>
  platform === "linux" && fs.existsSync("/proc/self/fd");

/** Opens a directory by its real path. `byDescriptor` chooses the safer way, which only Linux has. */
export const openRoot = (
  path: string,
  byDescriptor: boolean,
  platform: NodeJS.Platform = process.platform,
) =>
  byDescriptor
    ? new DescriptorDirectory(fs.openSync(path, fs.constants.O_RDONLY | DIRECTORY | NO_FOLLOW))
    : new NamedDirectory(path, platform);

/** Entries through `/proc/self/fd/<n>/<name>`, which the kernel resolves like `openat`. */
class DescriptorDirectory implements DirectoryHandle {
  readonly #descriptor: number;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  at(name: string): string {
    return `/proc/self/fd/${this.#descriptor}/${name}`;
  }

  entries(): Promise<fs.Dirent[]> {
    return readdir(`/proc/self/fd/${this.#descriptor}`, { withFileTypes: true });
  }

  openDirectory(name: string): DirectoryHandle {
    return new DescriptorDirectory(
      fs.openSync(this.at(name), fs.constants.O_RDONLY | DIRECTORY | NO_FOLLOW | NON_BLOCKING),
    );
  }

  openFile(name: string, flags: number, mode?: number): number {
    return fs.openSync(this.at(name), flags | NO_FOLLOW | NON_BLOCKING, mode);
  }

  identity(): string {
    return fileIdentity(fs.fstatSync(this.#descriptor, { bigint: true }));
  }

  flush(): Promise<void> {
    return flushed(this.#descriptor);
  }

  close(): void {
    fs.closeSync(this.#descriptor);
  }
}

/**
 * True if Windows reads a name as something else: a device (`nul`, `com1.txt`), a stream of a file (`a.txt:b`), or the
 * name without the periods and spaces at its end. `.` is the directory itself.
 */
export const isWindowsAlias = (name: string): boolean =>
  name !== "." &&
  (/[:\0]|[. ]$/.test(name) ||
    /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])\s*(?:\.|$)/i.test(name));

/** Maximum number of times a directory is read again because it changed. */
const READ_ATTEMPTS = 5;

/**
 * Entries by path, for systems without descriptor paths. Compares the change times of all directories on the way
 * before and after each read, so a directory that is swapped and swapped back is noticed if these times are fine
 * enough. Changes by path (`at`) are not protected: only descriptors make timing irrelevant.
 */
class NamedDirectory implements DirectoryHandle {
  readonly #path: string;
  readonly #identity: string;
  readonly #platform: NodeJS.Platform;
  readonly #parent: NamedDirectory | undefined;

  constructor(path: string, platform: NodeJS.Platform, parent?: NamedDirectory) {
    this.#path = path;
    this.#platform = platform;
    this.#parent = parent;
    const stats = fs.lstatSync(path, { bigint: true });
    if (stats.isSymbolicLink() || !stats.isDirectory()) throw new AccessError("ENOTDIR");
    this.#identity = fileIdentity(stats);
    this.#stamp();
  }

  at(name: string): string {
    if (this.#platform === "win32" && isWindowsAlias(name)) throw new AccessError("EALIAS");
    return join(this.#path, name);
  }

  async entries(): Promise<fs.Dirent[]> {
    for (let attempt = 0; attempt < READ_ATTEMPTS; attempt += 1) {
      const before = this.#stamp();
      const entries = await readdir(this.#path, { withFileTypes: true });
      if (this.#stamp() === before) return entries;
    }
    throw new AccessError("EBUSY");
  }

  openDirectory(name: string): DirectoryHandle {
    return this.#undisturbed(() => new NamedDirectory(this.at(name), this.#platform, this));
  }

  openFile(name: string, flags: number, mode?: number): number {
    const creates = (flags & fs.constants.O_CREAT) !== 0;
    const open = (): number => fs.openSync(this.at(name), flags | NO_FOLLOW | NON_BLOCKING, mode);
    if (creates) return open();
    return this.#undisturbed(() => {
      const before = fs.lstatSync(this.at(name), { bigint: true });
      if (before.isSymbolicLink()) throw new AccessError("ELOOP");
      const descriptor = open();
      if (fileIdentity(fs.fstatSync(descriptor, { bigint: true })) === fileIdentity(before))
        return descriptor;
      fs.closeSync(descriptor);
      throw new AccessError("EBUSY");
    }, fs.closeSync);
  }

  identity(): string {
    return this.#identity;
  }

  async flush(): Promise<void> {
    // Windows cannot open directories, and flushes their entries by itself.
    if (this.#platform === "win32") return;
    const descriptor = fs.openSync(this.#path, fs.constants.O_RDONLY | DIRECTORY | NO_FOLLOW);
    try {
      await flushed(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  }

  close(): void {
    // This handle keeps nothing open.
  }

  /** Runs something, and undoes and repeats it if a directory on the way changed during the run. */
  #undisturbed<Result>(run: () => Result, undo: (result: Result) => void = () => {}): Result {
    for (let attempt = 0; attempt < READ_ATTEMPTS; attempt += 1) {
      const before = this.#stamp();
      const result = run();
      if (this.#stamp() === before) return result;
      undo(result);
    }
    throw new AccessError("EBUSY");
  }

  /** The state of this directory and those above it. Fails if the path leads to another directory now. */
  #stamp(): string {
    const stats = fs.lstatSync(this.#path, { bigint: true });
    if (fileIdentity(stats) !== this.#identity) throw new AccessError("EBUSY");
    const above = this.#parent === undefined ? "" : this.#parent.#stamp();
    return `${above} ${stats.ctimeNs}`;
  }
}

/** Flushes a file or directory, unless the file system cannot do that. */
export async function flushed(descriptor: number): Promise<void> {
  try {
    await flush(descriptor);
  } catch (thrown) {
    if (!["EINVAL", "ENOTSUP", "ENOSYS"].includes(codeOf(thrown) ?? "")) throw thrown;
  }
}

export const fileIdentity = (stats: { dev: bigint; ino: bigint }): string => `${stats.dev}:${stats.ino}`;

/**
 * Opens files below a directory, one after another. The directories on the way to the last one stay open,
 * so that files in path order cost one opening each. No link is followed. `root` itself stays open.
 */
export class DirectoryTrail {
  readonly #root: DirectoryHandle;
  readonly #open: { name: string; directory: DirectoryHandle }[] = [];

  constructor(root: DirectoryHandle) {
    this.#root = root;
  }

  /** A file descriptor, which the caller closes. Throws Node's file system errors. */
  openFile(path: string, flags: number): number {
    const names = path.split("/");
    const file = names.pop() ?? "";
    const shared = this.#open.findIndex(({ name }, index) => name !== names[index]);
    this.#closeFrom(shared === -1 ? Math.min(this.#open.length, names.length) : shared);
    let directory = this.#open.at(-1)?.directory ?? this.#root;
    for (const name of names.slice(this.#open.length)) {
      directory = directory.openDirectory(name);
      this.#open.push({ name, directory });
    }
    return directory.openFile(file, flags);
  }

  close(): void {
    this.#closeFrom(0);
  }

  #closeFrom(index: number): void {
    for (const { directory } of this.#open.splice(index)) directory.close();
  }
}
