import { createHash, randomBytes } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
  write as writeWithCallback,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { AccessError, type DirectoryHandle, flushed } from "./handles.ts";
import { codeOf } from "./jail.ts";

/** A step takes microseconds; a lock this old belongs to a process that was killed in the middle of one. */
const STALE_AFTER_MS = 2000;
const GIVE_UP_AFTER_MS = 15_000;
const LONGEST_PAUSE_MS = 8;

/**
 * Runs a synchronous step while no other process of this user on this machine runs one for the same key.
 * Locks are files in a private directory of the temporary directory; where that cannot be had, the step
 * runs without. Throws `EBUSY` when the lock is not to be had for a long time.
 */
export async function inProcessLock<Result>(key: string, step: () => Result): Promise<Result> {
  const directory = lockDirectory();
  if (directory === undefined) return step();
  const path = join(directory, createHash("sha256").update(key).digest("hex").slice(0, 32));
  const descriptor = await acquire(path);
  try {
    return step();
  } finally {
    release(path, descriptor);
  }
}

function lockDirectory(): string | undefined {
  const user = process.getuid?.();
  const directory = join(tmpdir(), `deepagent-locks-${user ?? "user"}`);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch {
    // It is there already, or cannot be made, which the next look tells.
  }
  try {
    const stats = lstatSync(directory);
    // A directory that others can write to, or a link, could be used against us.
    const isPrivate = user === undefined || (stats.uid === user && (stats.mode & 0o022) === 0);
    return stats.isDirectory() && isPrivate ? directory : undefined;
  } catch {
    return undefined;
  }
}

async function acquire(path: string): Promise<number> {
  const end = performance.now() + GIVE_UP_AFTER_MS;
  while (performance.now() < end) {
    try {
      return openSync(path, "wx", 0o600);
    } catch (thrown) {
      if (!(thrown instanceof Error && "code" in thrown && thrown.code === "EEXIST")) throw thrown;
    }
    if (isStale(path)) breakLock(path);
    else await sleep(1 + Math.random() * LONGEST_PAUSE_MS);
  }
  throw new AccessError("EBUSY");
}

function isStale(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  // By a clock that was set back since, a lock that was left behind is of the future.
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > STALE_AFTER_MS;
}

/** Takes a stale lock away. One that turns out to be fresh, because another process was faster, is put back. */
function breakLock(path: string): void {
  const aside = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    renameSync(path, aside);
    if (!isStale(aside)) linkSync(aside, path);
    unlinkSync(aside);
  } catch {
    // Another process has taken it away or has the lock by now; the next try tells.
  }
}

function release(path: string, descriptor: number): void {
  try {
    const own = fstatSync(descriptor).ino === statSync(path, { throwIfNoEntry: false })?.ino;
    if (own) unlinkSync(path);
  } finally {
    closeSync(descriptor);
  }
}

const writeAt = promisify(writeWithCallback);

const TEMPORARY_PREFIX = ".deepagent-";
const TEMPORARY = /^\.deepagent-[0-9a-f]{24}\.tmp$/;

/** Whether a name is that of an unfinished write, which nobody is shown. */
export const isTemporaryName = (name: string): boolean =>
  name.startsWith(TEMPORARY_PREFIX) && TEMPORARY.test(name);

/** Changes whenever a file is replaced or written to. */
export const statVersion = (stats: BigIntStats): string =>
  `${stats.ino.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ctimeNs.toString(36)}-${stats.size.toString(36)}`;

/** The entry as it is, links not followed; undefined when there is none. */
export function statEntry(directory: DirectoryHandle, name: string): BigIntStats | undefined {
  try {
    return lstatSync(directory.at(name), { bigint: true });
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

export interface NewContent {
  bytes: Uint8Array;
  /** Default `create`: the name must be free, and the call fails with `EEXIST` otherwise, however close the race. */
  mode?: "create" | "overwrite";
  /** The file that is replaced, whose mode and owner stay. */
  replaces?: BigIntStats | undefined;
  /** Asked right before the content is put in place; false leaves everything as it is. */
  mayProceed?(): boolean;
}

/** The same for every path to an entry, in every process of this machine. */
export const entryKey = (directory: DirectoryHandle, name: string): string =>
  `file ${directory.identity()} ${name}`;

/**
 * Puts a file into a directory in one step: readers see nothing, the old content or the new, and so do those
 * after a power cut; once this has resolved, they see the new one. Gives the version of the new file, or
 * undefined when it was not to proceed. From `mayProceed` to the version no other process of this user
 * replaces the file.
 */
export async function putFile(
  directory: DirectoryHandle,
  name: string,
  content: NewContent,
): Promise<string | undefined> {
  const temporary = `${TEMPORARY_PREFIX}${randomBytes(12).toString("hex")}.tmp`;
  await writeTemporary(directory, temporary, content);
  try {
    const version = await inProcessLock(entryKey(directory, name), () => {
      if (content.mayProceed?.() === false) return undefined;
      if (content.mode === "overwrite") renameSync(directory.at(temporary), directory.at(name));
      else linkExclusively(directory, temporary, name);
      // A second name is removed first: that changes the status of the file, and so its version.
      removeIfThere(directory, temporary);
      return statVersion(lstatSync(directory.at(name), { bigint: true }));
    });
    if (version !== undefined) await directory.flush();
    return version;
  } finally {
    removeIfThere(directory, temporary);
  }
}

async function writeTemporary(
  directory: DirectoryHandle,
  name: string,
  { bytes, replaces }: NewContent,
): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL;
  const descriptor = directory.openFile(name, flags, 0o666);
  try {
    for (let at = 0; at < bytes.byteLength;) {
      at += (await writeAt(descriptor, bytes, at, bytes.byteLength - at, at)).bytesWritten;
    }
    if (replaces !== undefined) keepAttributes(descriptor, replaces);
    await flushed(descriptor);
  } catch (thrown) {
    removeIfThere(directory, name);
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}

function keepAttributes(descriptor: number, { uid, gid, mode }: BigIntStats): void {
  try {
    fchownSync(descriptor, Number(uid), Number(gid));
  } catch (thrown) {
    // Only a privileged process may give a file away; without, the file becomes ours.
    if (codeOf(thrown) !== "EPERM") throw thrown;
  }
  // Not the bits that lend the owner's rights: the content is another one.
  fchmodSync(descriptor, Number(mode) & 0o777);
}

function linkExclusively(directory: DirectoryHandle, temporary: string, name: string): void {
  try {
    linkSync(directory.at(temporary), directory.at(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP" && code !== "ENOSYS") throw thrown;
    // A file system without hard links. Taking the name first keeps it exclusive.
    closeSync(directory.openFile(name, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o666));
    renameSync(directory.at(temporary), directory.at(name));
  }
}

function removeIfThere(directory: DirectoryHandle, name: string): void {
  try {
    unlinkSync(directory.at(name));
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
  }
}
