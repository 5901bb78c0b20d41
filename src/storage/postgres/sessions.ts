/** Sessions of 2025-era clients that all servers on one Postgres serve. */
import type { SessionStore, StoredSession } from "../../runs/server-ports.ts";
import { type Steps, all, change } from "../../runs/sql/steps.ts";
import { type Access, NOW, postgresEngine, query } from "./engine.ts";

export function sessionStore(access: Access): SessionStore {
  const engine = postgresEngine(access);
  return {
    open: async (session, limits) => engine.write(() => openSession(session, limits)),
    ownerOf: async (id) => {
      const sql = "SELECT owner FROM client_sessions WHERE id = @id";
      return (await query<{ owner: string }>(access, sql, { id }))[0]?.owner;
    },
    join: async (id) => {
      const sql = `
UPDATE client_sessions SET used = ${NOW} WHERE id = @id RETURNING owner, opening, subscriptions`;
      return (await query<StoredSession>(access, sql, { id }))[0];
    },
    setOwner: async (id, owner) =>
      void (await query(access, "UPDATE client_sessions SET owner = @owner WHERE id = @id", { id, owner })),
    subscribe: async (id, uri, wanted) => {
      const add = `
UPDATE client_sessions SET subscriptions = subscriptions || @uri::text
WHERE id = @id AND NOT @uri = ANY(subscriptions) AND cardinality(subscriptions) < 1024`;
      const remove =
        "UPDATE client_sessions SET subscriptions = array_remove(subscriptions, @uri) WHERE id = @id";
      if (uri.length <= 2048) await query(access, wanted ? add : remove, { id, uri });
    },
    touch: async (ids) => {
      const sql = `UPDATE client_sessions SET used = ${NOW} WHERE id = ANY(@ids::text[]) RETURNING id`;
      return (await query<{ id: string }>(access, sql, { ids })).map(({ id }) => id);
    },
    end: async (id) => void (await query(access, "DELETE FROM client_sessions WHERE id = @id", { id })),
    endIdle: async (idleMs) => {
      const sql = `DELETE FROM client_sessions WHERE used <= ${NOW} - @idleMs::bigint RETURNING id`;
      return (await query<{ id: string }>(access, sql, { idleMs })).map(({ id }) => id);
    },
  };
}

/** Sessions of one principal are opened one after the other, so that they can be counted. */
function* openSession(
  ...[{ id, principal, owner, opening }, { limit, busyMs }]: Parameters<SessionStore["open"]>
): Steps<Awaited<ReturnType<SessionStore["open"]>>> {
  yield* all("SELECT pg_advisory_xact_lock(hashtextextended(@principal, 1))", { principal });
  const theirs = yield* all<{ id: string; idle: number }>(
    `SELECT id, ${NOW} - used AS idle FROM client_sessions WHERE principal = @principal ORDER BY used`,
    { principal },
  );
  const ended = theirs.length >= limit ? theirs[0] : undefined;
  if (ended !== undefined) {
    if (ended.idle < busyMs) return { ok: false, waitMs: busyMs - ended.idle };
    yield* change("DELETE FROM client_sessions WHERE id = @id", { id: ended.id });
  }
  const sql = `
INSERT INTO client_sessions (id, principal, owner, opening, used)
VALUES (@id, @principal, @owner, @opening, ${NOW})`;
  yield* change(sql, { id, principal, owner, opening });
  return { ok: true, ...(ended === undefined ? {} : { ended: ended.id }) };
}
