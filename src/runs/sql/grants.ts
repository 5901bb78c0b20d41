/** Calls that people approved for the rest of a run. */
import type { Approval, Grant, Principal } from "../run.ts";
import { type RowOf, readFields } from "./columns.ts";
import { IS_OF_PRINCIPAL } from "./rows.ts";
import { type Steps, all, change, first, insert } from "./steps.ts";

const toGrant = (row: RowOf<Grant>): Grant =>
  readFields(row, "tool, text, approval_id, granted_by, granted_at");

/** Grants all calls that count as the same as the one of this approval. */
export function* grant({ runId, id, tool, same }: Approval, by: string, now: number): Steps<void> {
  if (same === undefined) throw new Error(`No other call counts as the same as that of approval ${id}.`);
  const { key, text } = same;
  const given = { run_id: runId, key, tool, text, approval_id: id, granted_by: by, granted_at: now };
  yield* insert("run_grants", given, "ON CONFLICT (run_id, key) DO NOTHING");
}

/** The grant by which this call goes ahead without a question, where a person may approve it at all. */
export function* grantFor({ runId, same, allowedDecisions }: Approval): Steps<Grant | undefined> {
  if (same === undefined || !allowedDecisions.includes("approve")) return undefined;
  const sql = "SELECT * FROM run_grants WHERE run_id = @run_id AND key = @key";
  const row = yield* first<RowOf<Grant>>(sql, { run_id: runId, key: same.key });
  return row && toGrant(row);
}

/** Oldest first; none when the run is not the principal's. */
export function* grantsOf(principal: Principal, runId: string): Steps<Grant[]> {
  const sql = `SELECT * FROM run_grants WHERE run_id = @run_id AND ${IS_OF_PRINCIPAL} ORDER BY number`;
  return (yield* all<RowOf<Grant>>(sql, { run_id: runId, principal })).map(toGrant);
}

export function* revokeGrants(runId: string): Steps<void> {
  yield* change("DELETE FROM run_grants WHERE run_id = @run_id", { run_id: runId });
}
