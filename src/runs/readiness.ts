import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Database } from "../storage/database.ts";

/** Bytes that must be free beside the database: a run that cannot be stored must not be started. */
const MIN_FREE = 16 * 1024 * 1024;

/** @throws unless the database can be written to now. Changes nothing in it. */
export async function assertWritable(
  database: Database,
  freeBytes: (folder: string) => Promise<number> = freeBytesOf,
): Promise<void> {
  takeWriteLock(database);
  if (database.memory) return;
  const free = await freeBytes(dirname(database.name));
  if (free < MIN_FREE) throw new Error(`only ${free} bytes are free beside the database`);
}

/** Whoever holds the lock now is writing, so that is as good as getting it; waiting would hold up everybody. */
function takeWriteLock(database: Database): void {
  const timeout: unknown = database.pragma("busy_timeout", { simple: true });
  database.pragma("busy_timeout = 0");
  try {
    database.exec("DELETE FROM runs WHERE 0");
  } catch (error) {
    if (!isBusy(error)) throw error;
  } finally {
    database.pragma(`busy_timeout = ${Number(timeout)}`);
  }
}

/** In itself or, where storage has put it into words, in its cause. */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return String(Reflect.get(error, "code")).startsWith("SQLITE_BUSY") || isBusy(error.cause);
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
