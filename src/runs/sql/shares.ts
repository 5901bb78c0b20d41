/** Links with which others look at a run. */
import type { Access, SharedRun } from "../shares.ts";
import type { Principal } from "../run.ts";
import { type Columns, readFields, columnValues } from "./columns.ts";
import queries from "./shares.sql" with { type: "text" };
import { readQueries } from "./sql-files.ts";
import type { Engine, Steps } from "./steps.ts";
import { all, change, count, exists, first, insert, lockPrincipal, ofPrincipal, ofServer } from "./steps.ts";
import { remove as unsubscribe } from "./subscriptions.ts";

const queryNamed = readQueries(queries);
const SHARE = "id, run_id, created_at, expires_at, opened, credential";

type AccessRow = Record<Columns<typeof ACCESS>, unknown>;
const ACCESS =
  "kind, id, principal, run_id, name, created_at, expires_at, opened, type, url, credential, used_at";

/** Links, subscriptions and clients. An expired one looks like one that does not exist. */
export const shareRows = (engine: Engine) => ({
  ...ofPrincipal(engine, "write", {
    /** Ends a link, a subscription, or a client or all of them (`everywhere`) at once. False: there is none. */
    *revoke(principal: Principal, id: string): Steps<boolean> {
      if ((yield* change(queryNamed("revoke link"), { id, principal })) > 0) return true;
      if (yield* unsubscribe(principal, id)) return true;
      return (yield* change(queryNamed("revoke client"), { id, principal })) > 0;
    },
  }),
  // Nobody is known yet who asks.
  ...ofServer(engine, "read", {
    *find(id: string, now: number): Steps<SharedRun | undefined> {
      const row = yield* first<AccessRow>(queryNamed("find link"), { id, now });
      return row && (readFields(row, `${SHARE}, principal`) as unknown as SharedRun); // by the names of the list
    },
  }),
  /** Links, subscriptions and connected clients that have not expired, of one principal or of all. */
  access: (now: number, principal?: Principal) =>
    (principal === undefined ? engine : engine.of(principal)).read(function* () {
      const rows = yield* all<AccessRow>(queryNamed("access"), { now, principal: principal ?? null });
      return rows.map((row) => readFields(row, ACCESS) as unknown as Access); // by the names of the list
    }),
  /** Returns false if the run has `most` others, and undefined if there is no such run. */
  add: (share: SharedRun, most: number) =>
    engine.of(share.principal).write(function* (): Steps<boolean | undefined> {
      const { runId, principal, createdAt } = share;
      yield* lockPrincipal(principal);
      if (!(yield* exists(queryNamed("run"), { run: runId, principal }))) return undefined;
      // Rows of links that have expired are deleted with the next one of their run.
      yield* change(queryNamed("remove expired"), { run: runId, now: createdAt });
      if ((yield* count(queryNamed("count links"), { run: runId })) >= most) return false;
      return yield* insert("run_shares", columnValues(share, SHARE));
    }),
  /** Counts that somebody followed the link. */
  countOpening: (share: SharedRun) =>
    engine.of(share.principal).note(function* () {
      yield* change(queryNamed("count opening"), { id: share.id });
    }),
});
