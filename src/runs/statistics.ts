import type { Database } from "../storage/database.ts";
import type { RunStatus } from "./run.ts";

/** Numbers over the runs of all principals: for whoever operates the server, never for a client. */
export interface RunStatistics {
  runs: Readonly<Record<RunStatus, number>>;
  pendingApprovals: number;
}

/** Reads them from the rows, so that every process with this database says the same. */
export function readStatistics(database: Database): RunStatistics {
  const runs: Record<RunStatus, number> = {
    working: 0,
    input_required: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
  };
  const rows = database.prepare<[], { status: RunStatus; count: number }>(
    "SELECT status, count(*) AS count FROM runs GROUP BY status",
  );
  for (const { status, count } of rows.all()) runs[status] = count;
  // The index of approvals that no run has received holds the pending ones and few others.
  const pending = database.prepare<[], number>(
    "SELECT count(*) FROM approvals WHERE delivered = 0 AND status = 'pending'",
  );
  return { runs, pendingApprovals: pending.pluck().get() ?? 0 };
}
