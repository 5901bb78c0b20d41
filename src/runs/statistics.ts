import { ownTurn } from "../core/turns.ts";
import type { Database } from "../storage/database.ts";
import type { RunStatus } from "./run.ts";

/** Numbers over the runs of all principals: for whoever operates the server, never for a client. */
export interface RunStatistics {
  runs: Readonly<Record<RunStatus, number>>;
  pendingApprovals: number;
}

/** Runs counted between two turns of the event loop. */
const RUNS_PER_TURN = 2000;

/** Reads them from the rows, so that every process with this database says the same. */
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
  // The index of approvals that no run has received holds the pending ones and few others.
  const pending = database.prepare<[], number>(
    "SELECT count(*) FROM approvals WHERE delivered = 0 AND status = 'pending'",
  );
  return { runs, pendingApprovals: pending.pluck().get() ?? 0 };
}
