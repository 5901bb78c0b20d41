/** Sessions of 2025-era clients that all servers on one Postgres serve. */
import type {
  Mail,
  NewSession,
  OpenedSession,
  SessionStore,
  StoredSession,
} from "../../runs/server-ports.ts";
import { type Steps, all, change } from "../sql/steps.ts";
import type { Migration } from "../sqlite/migrations.ts";
import type { Access } from "./access.ts";
import { postgresEngine, query } from "./engine.ts";
import type { ChangeNews } from "./news.ts";

export const POSTGRES_SESSIONS: readonly Migration[] = [
  {
    version: 1,
    name: "sessions that any server serves, and messages between servers",
    sql: `
CREATE TABLE client_sessions (
  id TEXT PRIMARY KEY,
  principal TEXT NOT NULL,
  owner TEXT NOT NULL,
  opening TEXT NOT NULL,
  subscriptions TEXT[] NOT NULL DEFAULT '{}',
  servers TEXT[] NOT NULL,
  used BIGINT NOT NULL
);
CREATE INDEX client_sessions_of_principal ON client_sessions (principal, used);
CREATE TABLE session_mail (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session TEXT NOT NULL REFERENCES client_sessions ON DELETE CASCADE,
  server TEXT NOT NULL,
  message TEXT NOT NULL,
  time BIGINT NOT NULL
);
CREATE INDEX session_mail_of_server ON session_mail (server);
CREATE INDEX session_mail_of_session ON session_mail (session);`,
  },
];

/** Subscriptions of one session, and characters of an address. */
const MAX_SUBSCRIPTIONS = 1024;
const MAX_URI = 2048;
/** Servers that a session remembers; those that joined it first are forgotten first. */
const MAX_SERVERS = 100;
/** Characters of messages that wait in one session. */
const MAX_WAITING = 4 * 1024 * 1024;
/** After so long nobody takes a message any more: its server is gone. In milliseconds. */
const MAIL_MS = 600_000;

const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const INSERT = `
INSERT INTO client_sessions (id, principal, owner, opening, servers, used)
VALUES (@id, @principal, @owner, @opening, ARRAY[@server::text], ${NOW})`;
const JOIN = `
UPDATE client_sessions SET used = ${NOW}, servers = CASE WHEN @server = ANY(servers) THEN servers
  ELSE (servers || @server::text)[greatest(1, cardinality(servers) + 2 - ${MAX_SERVERS}):] END
WHERE id = @id RETURNING owner, opening, subscriptions`;
const SUBSCRIBE = `
UPDATE client_sessions SET subscriptions = subscriptions || @uri::text
WHERE id = @id AND NOT @uri = ANY(subscriptions) AND cardinality(subscriptions) < ${MAX_SUBSCRIPTIONS}`;
const UNSUBSCRIBE =
  "UPDATE client_sessions SET subscriptions = array_remove(subscriptions, @uri) WHERE id = @id";
const POST = `
INSERT INTO session_mail (session, server, message, time)
SELECT id, receiver, @message, ${NOW}
FROM client_sessions, unnest(CASE WHEN @to::text IS NULL THEN servers ELSE ARRAY[@to::text] END) AS receiver
WHERE id = @session AND receiver <> @from RETURNING server`;

export function sessionStore(access: Access, news: ChangeNews): SessionStore {
  const engine = postgresEngine(access);
  return {
    ...mailOf(access, news),
    open: async (session, limits) => engine.write(() => open(session, limits)),
    ownerOf: async (id) => {
      const sql = "SELECT owner FROM client_sessions WHERE id = @id";
      return (await query<{ owner: string }>(access, sql, { id }))[0]?.owner;
    },
    join: async (id, server) => (await query<StoredSession>(access, JOIN, { id, server }))[0],
    setOwner: async (id, owner) =>
      void (await query(access, "UPDATE client_sessions SET owner = @owner WHERE id = @id", { id, owner })),
    subscribe: async (id, uri, wanted) => {
      if (uri.length <= MAX_URI) await query(access, wanted ? SUBSCRIBE : UNSUBSCRIBE, { id, uri });
    },
    touch: async (ids) => {
      const sql = `UPDATE client_sessions SET used = ${NOW} WHERE id = ANY(@ids::text[]) RETURNING id`;
      return (await query<{ id: string }>(access, sql, { ids })).map(({ id }) => id);
    },
    end: async (id) => void (await query(access, "DELETE FROM client_sessions WHERE id = @id", { id })),
    endIdle: async (idleMs) => {
      await query(access, `DELETE FROM session_mail WHERE time < ${NOW} - @mailMs::bigint`, {
        mailMs: MAIL_MS,
      });
      const sql = `DELETE FROM client_sessions WHERE used <= ${NOW} - @idleMs::bigint RETURNING id`;
      return (await query<{ id: string }>(access, sql, { idleMs })).map(({ id }) => id);
    },
  };
}

/** Sessions of one principal are opened one after the other, so that they can be counted. */
function* open(
  { id, principal, owner, opening, server }: NewSession,
  { limit, busyMs }: { limit: number; busyMs: number },
): Steps<OpenedSession> {
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
  yield* change(INSERT, { id, principal, owner, opening, server });
  return { ok: true, ...(ended === undefined ? {} : { ended: ended.id }) };
}

function mailOf(access: Access, news: ChangeNews): Pick<SessionStore, "post" | "take" | "listen"> {
  return {
    post: async (mail) => {
      const sql = "SELECT sum(length(message))::bigint AS waiting FROM session_mail WHERE session = @session";
      const [row] = await query<{ waiting: number | null }>(access, sql, { session: mail.session });
      if ((row?.waiting ?? 0) + mail.message.length > MAX_WAITING) return false;
      for (const { server } of await query<{ server: string }>(access, POST, { ...mail })) news.tell(server);
      return true;
    },
    take: async (server) => {
      const sql = "DELETE FROM session_mail WHERE server = @server RETURNING id, session, message";
      const taken = await query<Mail & { id: number }>(access, sql, { server });
      return taken
        .sort((one, other) => one.id - other.id)
        .map(({ session, message }) => ({ session, message }));
    },
    listen: (server, arrived) =>
      news.listen({
        changed: (id) => {
          if (id === server) arrived();
        },
        changedElsewhere: arrived,
        // Runs report it, and everybody looks every two seconds.
        failed: () => undefined,
      }),
  };
}
