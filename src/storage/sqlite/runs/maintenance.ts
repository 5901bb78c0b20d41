import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { ownTurn } from "../../../core/concurrency.ts";
import type { RunStatistics } from "../../../runs/ports.ts";
import type { RunStatus } from "../../../runs/run.ts";
import type { Database } from "../database.ts";

/** Runs counted between two turns of the event loop. */
const RUNS_PER_TURN = 2000;

/** Counts runs in the rows, so that every process with this database gives the same numbers. */
export async function readStatistics(database: Database): Promise<RunStatistics> {
  const runs: Record<RunStatus, number> = {
    working: 0,
    input_required: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
  };
  const some = database.prepare<[number], { status: RunStatus; count: number; last: number }>(`
SELECT status, count(*) AS count, max(number) AS last FROM (
  SELECT status, number FROM runs WHERE number > ? ORDER BY number LIMIT ${RUNS_PER_TURN}
) GROUP BY status`);
  for (let last = 0; ;) {
    const rows = some.all(last);
    if (rows.length === 0) break;
    for (const { status, count } of rows) runs[status] += count;
    last = Math.max(...rows.map((row) => row.last));
    await ownTurn();
  }
  // The index of undelivered approvals has the pending ones and few others.
  const pending = database.prepare<[], number>(
    "SELECT count(*) FROM approvals WHERE delivered = 0 AND status = 'pending'",
  );
  return { runs, pendingApprovals: pending.pluck().get() ?? 0 };
}

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

/** Tries to get the write lock without waiting. When another connection has it, the file can be written to. */
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

/** Whether the error, or a cause of it, is that of a lock. */
function isBusy(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return String(Reflect.get(error, "code")).startsWith("SQLITE_BUSY") || isBusy(error.cause);
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
