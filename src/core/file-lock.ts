/** Locks that are files. Each is known by its inode, so that nobody removes the lock of another process. */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { codeOf } from "./errors.ts";

/** A lock that this process has. Its open file keeps the inode from being used again. */
export interface FileLock {
  /** False once another process has broken the lock. */
  isHeld(): boolean;
  release(): void;
}

/** Makes the file of a lock. Returns undefined if there is one already. */
export function takeLock(path: string, text = ""): FileLock | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, "wx", 0o600);
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") return undefined;
    throw thrown;
  }
  writeSync(descriptor, text);
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  const isHeld = (): boolean => {
    const now = statSync(path, { bigint: true, throwIfNoEntry: false });
    return now?.ino === ino && now.dev === dev;
  };
  const release = (): void => {
    try {
      if (isHeld()) unlinkSync(path);
    } finally {
      closeSync(descriptor);
    }
  };
  return { isHeld, release };
}

/** Removes an abandoned lock. Puts it back if another process was faster, and this is its lock. */
export function breakLock(path: string, isAbandoned: (path: string) => boolean): void {
  const aside = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    renameSync(path, aside);
    if (!isAbandoned(aside)) linkSync(aside, path);
  } catch (thrown) {
    // Another process has removed it or has the lock by now. The next attempt finds out.
    if (codeOf(thrown) === undefined) throw thrown;
  }
  rmSync(aside, { force: true });
}

/** True if a lock is older than its holder may need. If the clock was set back, such a lock has a time in the future. */
export function isOlder(path: string, milliseconds: number): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > milliseconds;
}
