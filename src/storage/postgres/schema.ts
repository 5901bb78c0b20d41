/** The tables of runs in Postgres: those of SQLite, with the types and the triggers of Postgres. */
import type { Pool } from "pg";
import { StorageError } from "../../core/errors.ts";
import { type Migration, readMigrations } from "../../runs/sql/sql-files.ts";
import { RUN_MIGRATIONS } from "../../runs/sql/schema.ts";
import checkpoints from "./checkpoints/tables.sql" with { type: "text" };
import { type Access, query, unhurried } from "./engine.ts";
import memories from "./memories/tables.sql" with { type: "text" };
import rates from "./rates.sql" with { type: "text" };
import servers from "./servers.sql" with { type: "text" };
import sessions from "./sessions.sql" with { type: "text" };
import shared from "./shared.sql" with { type: "text" };

/** SQL that Postgres writes in another way, in the order in which it is replaced. */
const REPLACED: readonly [RegExp, string][] = [
  [/INTEGER PRIMARY KEY AUTOINCREMENT/g, "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"],
  [/\bINTEGER\b/g, "BIGINT"],
  [/\bBLOB\b/g, "BYTEA"],
  [/\)( WITHOUT ROWID,)? STRICT;/g, ");"],
  // `WHEN` can be a condition of an own row only, as it is in all of ours.
  [
    /CREATE TRIGGER (\w+) BEFORE (UPDATE(?: OF \w+)?) ON (\w+)\n(?:WHEN (.*)\n)?BEGIN SELECT RAISE\(ABORT, ('[^']*')\); END;/g,
    "CREATE TRIGGER $1 BEFORE $2 ON $3 FOR EACH ROW WHEN ($4) EXECUTE FUNCTION refuse($5);",
  ],
  [/ WHEN \(\)/g, ""],
];

const COMPONENTS: readonly [name: string, migrations: readonly Migration[]][] = [
  [
    "runs",
    RUN_MIGRATIONS.map((step) => {
      const inPostgres = REPLACED.reduce(
        (sql, [pattern, instead]) => sql.replace(pattern, instead),
        step.sql,
      );
      return { ...step, sql: step.isForSqlite ? "" : inPostgres };
    }),
  ],
  ["checkpoints", readMigrations(checkpoints)],
  ["store", readMigrations(memories)],
  ["shared", readMigrations(shared)],
  ["sessions", readMigrations(sessions)],
  ["rates", readMigrations(rates)],
  ["servers", readMigrations(servers)],
];

/** Creates the schema and migrates its tables to the newest version. Of servers that start at once one does it. */
export async function migratePostgres(pool: Pool, schema: string): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await client.query(`SELECT pg_advisory_xact_lock(7310518093241)`);
    const found = await client.query("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
    // A role that owns its schema may not create others, and `IF NOT EXISTS` asks for that right first.
    if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${schema}`);
    await client.query(`
CREATE TABLE IF NOT EXISTS schema_versions (component TEXT PRIMARY KEY, version BIGINT NOT NULL);
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;`);
    for (const [component, migrations] of COMPONENTS) {
      const sql = "SELECT version FROM schema_versions WHERE component = $1";
      const version = (await client.query<{ version: number }>(sql, [component])).rows[0]?.version ?? 0;
      if (version > migrations.length) {
        const message = `The Postgres schema was written by a newer version of this program. Update this server.`;
        throw new StorageError("storage_newer", message);
      }
      for (const { version: next, sql: step } of migrations.slice(version)) {
        await client.query(unhurried(step));
        await client.query(
          `INSERT INTO schema_versions (component, version) VALUES ($1, $2)
       ON CONFLICT (component) DO UPDATE SET version = excluded.version`,
          [component, next],
        );
      }
    }
    await client.query("COMMIT");
  } catch (thrown) {
    await client.query("ROLLBACK").catch(() => undefined);
    throw thrown;
  } finally {
    client.release();
  }
}

/** True if a newer version has changed the tables. */
export async function isNewer(access: Access): Promise<boolean> {
  const found = await query<{ component: string; version: number }>(
    access,
    "SELECT component, version FROM schema_versions",
  );
  const known = new Map(COMPONENTS.map(([component, migrations]) => [component, migrations.length]));
  return found.some(({ component, version }) => version > (known.get(component) ?? 0));
}
