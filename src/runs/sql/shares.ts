/** Links with which others look at a run. */
import type { Access, SharedRun } from "../shares.ts";
import { defined } from "../../core/unknown.ts";
import type { Principal } from "../run.ts";
import { type Columns, readFields, columnValues } from "./columns.ts";
import { IS_OF_PRINCIPAL } from "./rows.ts";
import type { Engine, Steps } from "./steps.ts";
import { all, change, count, exists, first, insert, lockPrincipal, ofPrincipal, ofServer } from "./steps.ts";
import { remove as unsubscribe } from "./subscriptions.ts";

const SHARE = "id, run_id, created_at, expires_at, opened, credential";

type AccessRow = Record<Columns<typeof ACCESS>, unknown>;
const ACCESS = "kind, id, principal, run_id, name, created_at, expires_at, opened, type, url, credential";
const NAME_COLUMN = "substr(coalesce(r.name, r.task), 1, 200) AS name";

/** Links and subscriptions. An expired one looks like one that does not exist. */
export const shareRows = (engine: Engine) => ({
  ...ofPrincipal(engine, "write", {
    /** Ends a link or a subscription at once. False: there is none. */
    *revoke(principal: Principal, id: string): Steps<boolean> {
      const sql = `DELETE FROM run_shares WHERE id = @id AND ${IS_OF_PRINCIPAL}`;
      return (yield* change(sql, { id, principal })) > 0 || (yield* unsubscribe(principal, id));
    },
  }),
  // Nobody is known yet who asks.
  ...ofServer(engine, "read", {
    *find(id: string, now: number): Steps<SharedRun | undefined> {
      const sql = `SELECT s.*, r.principal FROM run_shares AS s JOIN runs AS r ON r.id = s.run_id
    WHERE s.id = @id AND s.expires_at > @now`;
      const row = yield* first<AccessRow>(sql, { id, now });
      return row && (readFields(row, `${SHARE}, principal`) as unknown as SharedRun); // by the names of the list
    },
  }),
  /** Links and subscriptions that have not expired, of one principal or of all. */
  access: (now: number, principal?: Principal) =>
    (principal === undefined ? engine : engine.of(principal)).read(function* () {
      const isOf = (table: string): string =>
        principal === undefined ? "" : `AND ${table}.principal = @principal`;
      const rows = yield* all<AccessRow>(
        `SELECT 'link' AS kind, s.id AS id, r.principal, s.run_id, ${NAME_COLUMN}, s.created_at, s.expires_at, s.opened,
       NULL AS type, NULL AS url, s.credential
     FROM run_shares AS s JOIN runs AS r ON r.id = s.run_id WHERE s.expires_at > @now ${isOf("r")}
     UNION ALL SELECT 'subscription', n.id, n.principal, n.run_id, ${NAME_COLUMN}, n.created_at, n.expires_at, NULL,
       n.type, n.url, n.credential
     FROM news_subscriptions AS n LEFT JOIN runs AS r ON r.id = n.run_id AND r.principal = n.principal
     WHERE n.expires_at > @now ${isOf("n")} ORDER BY expires_at, id`,
        { now, ...defined({ principal }) },
      );
      return rows.map((row) => readFields(row, ACCESS) as unknown as Access); // by the names of the list
    }),
  /** Returns false if the run has `most` others, and undefined if there is no such run. */
  add: (share: SharedRun, most: number) =>
    engine.of(share.principal).write(function* (): Steps<boolean | undefined> {
      const { runId, principal, createdAt } = share;
      yield* lockPrincipal(principal);
      const run = "SELECT id FROM runs WHERE id = @run AND principal = @principal";
      if (!(yield* exists(run, { run: runId, principal }))) return undefined;
      // Rows of links that have expired are deleted with the next one of their run.
      const expired = "DELETE FROM run_shares WHERE run_id = @run AND expires_at <= @now";
      yield* change(expired, { run: runId, now: createdAt });
      const others = "SELECT count(*) AS count FROM run_shares WHERE run_id = @run";
      if ((yield* count(others, { run: runId })) >= most) return false;
      return yield* insert("run_shares", columnValues(share, SHARE));
    }),
  /** Counts that somebody followed the link. */
  countOpening: (share: SharedRun) =>
    engine.of(share.principal).note(function* () {
      yield* change("UPDATE run_shares SET opened = opened + 1 WHERE id = @id", { id: share.id });
    }),
});
