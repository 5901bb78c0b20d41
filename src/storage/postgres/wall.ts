/** A second wall between principals: policies of Postgres, and a role that is bound by them. */
import type { Pool, PoolClient } from "pg";
import { ConfigurationError } from "../../core/errors.ts";
import { TABLES_OF_RUN } from "../../runs/sql/schema.ts";

/** Without a value in this transaction it is null, or empty when an earlier one had one: then no row matches. */
const setting = (name: string): string => `nullif(current_setting('deepagent.${name}', true), '')`;

const IS_MINE = `principal = ${setting("principal")}`;
const RUN_IS_MINE = `EXISTS (SELECT 1 FROM runs WHERE runs.id = run_id AND ${IS_MINE})`;
/** Also one that is being copied and has no run yet. */
const THREAD_IS_MINE = ["threads", "thread_copies"]
  .map(
    (table) => `EXISTS (SELECT 1 FROM ${table} AS t WHERE t.id = thread_id COLLATE "default" AND ${IS_MINE})`,
  )
  .join(" OR ");

/** The rows of each table that a principal sees and changes; the role reaches no other table. */
const POLICIES: Readonly<Record<string, string>> = {
  threads: IS_MINE,
  thread_copies: IS_MINE,
  runs: IS_MINE,
  schedules: IS_MINE,
  news_subscriptions: IS_MINE,
  approval_rules: IS_MINE,
  login_rows: IS_MINE,
  thread_sources: THREAD_IS_MINE,
  schedule_skips: `EXISTS (SELECT 1 FROM schedules WHERE schedules.id = schedule_id AND ${IS_MINE})`,
  ...Object.fromEntries(TABLES_OF_RUN.map((table) => [table, RUN_IS_MINE])),
  checkpoints: THREAD_IS_MINE,
  checkpoint_writes: THREAD_IS_MINE,
  checkpoint_blobs: THREAD_IS_MINE,
  thread_fences: THREAD_IS_MINE,
  store_items: `starts_with(namespace, ${setting("namespace")})`,
  store_passages: "EXISTS (SELECT 1 FROM store_items WHERE store_items.id = item)",
};
/** Numbers of items and ids of objects, without content or principal. */
const OPEN_TABLES = ["store_models", "store_unembedded", "checkpoint_objects"];

const POLICY = "deepagent_wall";
/** Any number that no other program uses for an advisory lock. */
const LOCK = 7_310_518_093_242;

/** Builds the missing parts of the wall and tries it. Throws ConfigurationError if it does not hold. */
export async function buildWall(pool: Pool, schema: string, role: string): Promise<void> {
  const client = await pool.connect();
  try {
    await checkRole(client, role);
    // Tables that lack their policy or the rights on them.
    const { rows } = await client.query<{ name: string }>(
      `SELECT name FROM unnest($1::text[]) AS name JOIN pg_class AS c ON c.oid = name::regclass
     WHERE NOT has_table_privilege($3, c.oid, 'DELETE') OR NOT has_schema_privilege($3, c.relnamespace, 'USAGE')
       OR name = ANY ($2) AND NOT (c.relrowsecurity
         AND EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = c.oid AND polname = '${POLICY}'))`,
      [[...Object.keys(POLICIES), ...OPEN_TABLES], Object.keys(POLICIES), role],
    );
    for (const table of rows.map(({ name }) => name)) {
      const condition = POLICIES[table];
      const policy =
        condition === undefined
          ? ""
          : `DROP POLICY IF EXISTS ${POLICY} ON ${table};
             CREATE POLICY ${POLICY} ON ${table} USING (${condition});
             ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY;`;
      // Statements that are sent together are one transaction.
      await client.query(`SELECT pg_advisory_xact_lock(${LOCK}); ${policy}
        GRANT USAGE ON SCHEMA ${schema} TO "${role}";
        GRANT SELECT, INSERT, UPDATE, DELETE ON ${table} TO "${role}"`);
    }
    await checkEffect(client, role);
  } finally {
    client.release();
  }
}

async function checkRole(client: PoolClient, role: string): Promise<void> {
  const { rows } = await client.query<{ login: string; mine: boolean | null }>(
    `SELECT session_user AS login,
       (SELECT pg_has_role(session_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = $1) AS mine`,
    [role],
  );
  const { login = "", mine = null } = rows[0] ?? {};
  if (mine === true) return;
  const grant = `GRANT ${role} TO ${login}`;
  const todo = mine === null ? `CREATE ROLE ${role} NOLOGIN; ${grant}` : grant;
  const message = `storageRole names a Postgres role that this server cannot use. Have an administrator run: ${todo};`;
  throw new ConfigurationError("INVALID_CONFIG", message);
}

/** Superusers, roles with BYPASSRLS and owners of tables, also by membership, pass through the wall. */
async function checkEffect(client: PoolClient, role: string): Promise<void> {
  await client.query(`BEGIN; SET LOCAL ROLE "${role}"`);
  const { rows } = await client.query<{ name: string }>(
    "SELECT name FROM unnest($1::text[]) AS name WHERE NOT row_security_active(name::regclass)",
    [Object.keys(POLICIES)],
  );
  await client.query("ROLLBACK");
  if (rows.length === 0) return;
  const message = `storageRole names a Postgres role that row-level security does not bind, because it is a superuser, has BYPASSRLS or is a member of the owner of the tables. Name another role.`;
  throw new ConfigurationError("INVALID_CONFIG", message);
}
