import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import pg from "pg";
import { folderMark } from "../../../src/app/settings.ts";
import type { Home } from "../../support/harness.ts";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { committed } from "./folder.ts";

const SCHEMA = "deepagent";

/** A schema of Postgres: the commands that made its tables, and their rows. */
interface Dump {
  commands: string[];
  tables: Record<string, Record<string, unknown>[]>;
}

/** Notes each command that makes or changes a table from now on. */
export const noteCommands = (server: PostgresServer): Promise<unknown> =>
  server.query(`
    CREATE TABLE public.commands (number SERIAL, text TEXT);
    CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.commands (text) VALUES (current_query()); END $$;
    CREATE EVENT TRIGGER note ON ddl_command_start EXECUTE FUNCTION public.note();`);

export async function keepDump(place: string, server: PostgresServer): Promise<void> {
  const noted = await server.query<{ text: string }>("SELECT text FROM public.commands ORDER BY number");
  const found = await server.query<{ name: string }>(
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 ORDER BY tablename",
    [SCHEMA],
  );
  const dump: Dump = { commands: [], tables: {} };
  // A text of several commands is noted for each of them.
  dump.commands = noted.map(({ text }) => text).filter((text, index, all) => text !== all[index - 1]);
  for (const { name } of found) {
    const rows = await server.query<{ row: Record<string, unknown> }>(
      `SELECT to_jsonb(t) AS row FROM ${SCHEMA}.${name} t`,
    );
    if (rows.length > 0) dump.tables[name] = rows.map(({ row }) => row);
  }
  writeFileSync(committed(place, "dump.json.gz"), gzipSync(JSON.stringify(dump), { level: 9 }));
}

/** Restores a dump into a database of its own, as if its program had worked in this workspace. Gives its address. */
export async function restoreDump(
  place: string,
  server: PostgresServer,
  { workspace }: Home,
): Promise<string> {
  const text = gunzipSync(readFileSync(committed(place, "dump.json.gz"))).toString();
  const { commands, tables } = JSON.parse(text) as Dump;
  await server.query(`CREATE DATABASE "${place}"`);
  const url = server.url.replace(/[^/]+$/, place);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Triggers and references wait until all rows are in their tables.
  await client.query(`SET search_path = ${SCHEMA}; SET session_replication_role = replica`);
  for (const command of commands) await client.query(command);
  for (const run of tables["runs"] ?? []) {
    const here = { workspace: realpathSync(workspace), folder: folderMark(workspace) };
    run["environment"] = JSON.stringify({ ...JSON.parse(String(run["environment"])), ...here });
  }
  for (const [name, rows] of Object.entries(tables)) {
    await client.query(
      `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_recordset(NULL::${name}, $1)`,
      [JSON.stringify(rows)],
    );
  }
  const numbered = await client.query<{ name: string; column: string }>(
    `SELECT table_name AS name, column_name AS column FROM information_schema.columns
     WHERE table_schema = $1 AND is_identity = 'YES'`,
    [SCHEMA],
  );
  for (const { name, column } of numbered.rows) {
    await client.query(
      `SELECT setval(pg_get_serial_sequence('${name}', '${column}'), max(${column})) FROM ${name}`,
    );
  }
  await client.end();
  return url;
}
