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

/** A step takes microseconds, so an older lock belongs to a process that was killed in the middle of one. */
const STALE_AFTER_MS = 2000;
const GIVE_UP_AFTER_MS = 15_000;
const LONGEST_PAUSE_MS = 8;

/**
 * Runs a synchronous step while no other process of this user on this machine runs one for the same key.
 * Locks are files in a private directory below the temporary directory. If there can be none, the step runs without
 * a lock. Throws `EBUSY` if the lock is taken for a long time.
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
    // It exists, or cannot be made; the following check finds out.
  }
  try {
    const stats = lstatSync(directory);
    // A link, or a directory that others can write to, would let them interfere.
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
  // If the clock was set back, an abandoned lock has a time in the future.
  return stats !== undefined && Math.abs(Date.now() - stats.mtimeMs) > STALE_AFTER_MS;
}

/** Removes a stale lock. Puts it back if it turns out to be fresh, because another process was faster. */
function breakLock(path: string): void {
  const aside = `${path}.${randomBytes(8).toString("hex")}`;
  try {
    renameSync(path, aside);
    if (!isStale(aside)) linkSync(aside, path);
    unlinkSync(aside);
  } catch {
    // Another process has removed it or has the lock by now. The next attempt finds out.
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

/** Whether a name belongs to an unfinished write, which is never shown. */
export const isTemporaryName = (name: string): boolean =>
  name.startsWith(TEMPORARY_PREFIX) && TEMPORARY.test(name);

/** A version that changes whenever a file is replaced or written to. */
export const statVersion = (stats: BigIntStats): string =>
  `${stats.ino.toString(36)}-${stats.mtimeNs.toString(36)}-${stats.ctimeNs.toString(36)}-${stats.size.toString(36)}`;

/** Looks up an entry without following links; undefined if there is none. */
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
  /** Default `create`: fails with `EEXIST` if the name is taken, however close the race. */
  mode?: "create" | "overwrite";
  /** The file that is replaced. Its mode and owner are kept. */
  replaces?: BigIntStats | undefined;
  /** Called right before the content is put in place. False cancels the write. */
  mayProceed?(): boolean;
}

/** Identifies an entry, whatever path leads to it, in every process of this machine. */
export const entryKey = (directory: DirectoryHandle, name: string): string =>
  `file ${directory.identity()} ${name}`;

/**
 * Puts a file into a directory in one step: a reader sees the old content or the new, also after a power cut. Once
 * this has resolved, everyone sees the new content. Gives the version of the new file, or undefined if `mayProceed`
 * was false. From that call to the version no other process of this user replaces the file.
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
      // Removing the second name changes the status of the file and with it the version.
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
    // Only a privileged process may give a file away. Otherwise the file becomes ours.
    if (codeOf(thrown) !== "EPERM") throw thrown;
  }
  // Drops the set-user-ID and set-group-ID bits, because the content is new.
  fchmodSync(descriptor, Number(mode) & 0o777);
}

function linkExclusively(directory: DirectoryHandle, temporary: string, name: string): void {
  try {
    linkSync(directory.at(temporary), directory.at(name));
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP" && code !== "ENOSYS") throw thrown;
    // The file system has no hard links. Taking the name first keeps the write exclusive.
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
