/** Links with which others look at a run. */
import { MAX_SHARES, type RunShare, type ShareRows, type SharedRun } from "../../runs/shares.ts";
import type { Principal } from "../../runs/run.ts";
import { IS_OF_PRINCIPAL } from "./rows.ts";
import { type Engine, type Steps, all, change, first, lockPrincipal } from "./steps.ts";

interface ShareRow {
  id: string;
  run_id: string;
  principal: Principal;
  created_at: number;
  expires_at: number;
  opened: number;
}

const toShare = (row: Omit<ShareRow, "run_id" | "principal">): RunShare => ({
  id: row.id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  opened: row.opened,
});

/** Rows of links that have expired are deleted with the next one of their run. */
function* add({ id, runId, principal, createdAt, expiresAt }: SharedRun): Steps<boolean | undefined> {
  yield* lockPrincipal(principal);
  const run = yield* first("SELECT id FROM runs WHERE id = @run AND principal = @principal", {
    run: runId,
    principal,
  });
  if (run === undefined) return undefined;
  yield* change("DELETE FROM run_shares WHERE run_id = @run AND expires_at <= @now", {
    run: runId,
    now: createdAt,
  });
  const found = yield* first<{ count: number }>(
    "SELECT count(*) AS count FROM run_shares WHERE run_id = @run",
    { run: runId },
  );
  if ((found?.count ?? 0) >= MAX_SHARES) return false;
  yield* change(
    "INSERT INTO run_shares (id, run_id, created_at, expires_at) VALUES (@id, @run, @created_at, @expires_at)",
    { id, run: runId, created_at: createdAt, expires_at: expiresAt },
  );
  return true;
}

function* of(principal: Principal, runId: string, now: number): Steps<RunShare[]> {
  const rows = yield* all<ShareRow>(
    `SELECT id, created_at, expires_at, opened FROM run_shares
     WHERE run_id = @run AND expires_at > @now AND ${IS_OF_PRINCIPAL} ORDER BY created_at, id`,
    { run: runId, now, principal },
  );
  return rows.map(toShare);
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
  return row && { ...toShare(row), runId: row.run_id, principal: row.principal };
}

function* countOpening({ id }: SharedRun): Steps<void> {
  yield* change("UPDATE run_shares SET opened = opened + 1 WHERE id = @id", { id });
}

export const shareRows = (engine: Engine): ShareRows => ({
  add: (share) => engine.of(share.principal).write(() => add(share)),
  of: (principal, runId, now) => engine.of(principal).read(() => of(principal, runId, now)),
  remove: (principal, runId, id) => engine.of(principal).write(() => remove(principal, runId, id)),
  // Nobody is known yet who asks.
  find: (id, now) => engine.read(() => find(id, now)),
  countOpening: (share) => engine.of(share.principal).note(() => countOpening(share)),
});
