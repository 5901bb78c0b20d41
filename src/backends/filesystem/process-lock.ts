/** Locks among the processes of a user on this machine. */
import { createHash } from "node:crypto";
import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { orElse } from "../../core/errors.ts";
import { breakLock, isOlder, takeLock } from "../../core/file-lock.ts";
import { AccessError } from "./handles.ts";

/**
 * Runs a synchronous step while no other process of this user on this machine runs one for the same key.
 * Locks are files in a private directory below the temporary directory. If there can be none, the step runs without
 * a lock. Throws `EBUSY` if the lock is taken for a long time.
 */
export async function inProcessLock<Result>(key: string, step: () => Result): Promise<Result> {
  const directory = lockDirectory();
  if (directory === undefined) return step();
  const path = join(directory, createHash("sha256").update(key).digest("hex").slice(0, 32));
  // A step takes microseconds, so an older lock belongs to a process that was killed in the middle of one.
  const isStale = (file: string): boolean => isOlder(file, 2000);
  const end = performance.now() + 15_000;
  while (performance.now() < end) {
    const lock = takeLock(path);
    if (lock !== undefined)
      try {
        return step();
      } finally {
        lock.release();
      }
    if (isStale(path)) breakLock(path, isStale);
    else await sleep(1 + Math.random() * 8);
  }
  throw new AccessError("EBUSY");
}

function lockDirectory(): string | undefined {
  const user = process.getuid?.();
  const directory = join(tmpdir(), `deepagent-locks-${user ?? "user"}`);
  // If it exists, or cannot be made, the following check finds out.
  orElse(() => mkdirSync(directory, { mode: 0o700 }), undefined);
  const stats = orElse(() => lstatSync(directory), undefined);
  // A link, or a directory that others can write to, would let them interfere.
  const isPrivate = user === undefined || (stats?.uid === user && (stats.mode & 0o022) === 0);
  return stats?.isDirectory() && isPrivate ? directory : undefined;
}
