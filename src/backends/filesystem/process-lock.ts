/** Locks among the processes of a user on this machine. */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../../core/errors.ts";
import { AccessError } from "./handles.ts";

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
      if (codeOf(thrown) !== "EEXIST") throw thrown;
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
