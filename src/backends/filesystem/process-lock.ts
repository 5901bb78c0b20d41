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
import { AccessError } from "./directory-handles.ts";

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
