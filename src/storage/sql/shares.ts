/** Links with which others look at a run. */
import { MAX_SHARES, type RunShare, type ShareRows, type SharedRun } from "../../runs/shares.ts";
import type { Principal } from "../../runs/run.ts";
import { fieldsOf } from "./columns.ts";
import { IS_OF_PRINCIPAL } from "./rows.ts";
import {
  type Engine,
  type Steps,
  all,
  change,
  count,
  exists,
  first,
  insert,
  lockPrincipal,
  ofPrincipal,
  ofServer,
} from "./steps.ts";

interface ShareRow {
  id: string;
  run_id: string;
  principal: Principal;
  created_at: number;
  expires_at: number;
  opened: number;
}

const SHARE = "id, created_at, expires_at, opened";

/** Rows of links that have expired are deleted with the next one of their run. */
function* add({ id, runId, principal, createdAt, expiresAt }: SharedRun): Steps<boolean | undefined> {
  yield* lockPrincipal(principal);
  const run = "SELECT id FROM runs WHERE id = @run AND principal = @principal";
  if (!(yield* exists(run, { run: runId, principal }))) return undefined;
  const expired = "DELETE FROM run_shares WHERE run_id = @run AND expires_at <= @now";
  yield* change(expired, { run: runId, now: createdAt });
  const others = "SELECT count(*) AS count FROM run_shares WHERE run_id = @run";
  if ((yield* count(others, { run: runId })) >= MAX_SHARES) return false;
  return yield* insert("run_shares", { id, run_id: runId, created_at: createdAt, expires_at: expiresAt });
}

function* of(principal: Principal, runId: string, now: number): Steps<RunShare[]> {
  const rows = yield* all<ShareRow>(
    `SELECT ${SHARE} FROM run_shares
     WHERE run_id = @run AND expires_at > @now AND ${IS_OF_PRINCIPAL} ORDER BY created_at, id`,
    { run: runId, now, principal },
  );
  return rows.map((row) => fieldsOf(row, SHARE));
}

function* remove(principal: Principal, runId: string, id: string): Steps<boolean> {
  const sql = `DELETE FROM run_shares WHERE id = @id AND run_id = @run AND ${IS_OF_PRINCIPAL}`;
  return (yield* change(sql, { id, run: runId, principal })) > 0;
}

function* find(id: string, now: number): Steps<SharedRun | undefined> {
  const row = yield* first<ShareRow>(
    `SELECT s.id, s.run_id, s.created_at, s.expires_at, s.opened, r.principal
     FROM run_shares AS s JOIN runs AS r ON r.id = s.run_id WHERE s.id = @id AND s.expires_at > @now`,
    { id, now },
  );
  return row && fieldsOf(row, `${SHARE}, run_id, principal`);
}

function* countOpening({ id }: SharedRun): Steps<void> {
  yield* change("UPDATE run_shares SET opened = opened + 1 WHERE id = @id", { id });
}

export const shareRows = (engine: Engine): ShareRows => ({
  ...ofPrincipal(engine, "read", { of }),
  ...ofPrincipal(engine, "write", { remove }),
  // Nobody is known yet who asks.
  ...ofServer(engine, "read", { find }),
  add: (share) => engine.of(share.principal).write(() => add(share)),
  countOpening: (share) => engine.of(share.principal).note(() => countOpening(share)),
});
