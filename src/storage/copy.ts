/** Copies the databases of one machine into Postgres. */
import fixedColumns from "./fixed-columns.json" with { type: "json" };
import { join } from "node:path";
import { type CheckpointTuple, WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { StorageError } from "../core/errors.ts";
import { configAt } from "./checkpoints/address.ts";
import { SEARCHED_LENGTH } from "./memories/text-query.ts";
import { type Access, query, sendable } from "./postgres/engine.ts";
import { PostgresCheckpointer } from "./postgres/checkpoints/checkpointer.ts";
import type { LargeObjects } from "./postgres/checkpoints/objects.ts";
import { wordVector } from "./postgres/memories/database.ts";
import { createCheckpointer } from "./sqlite/checkpoints/checkpointer.ts";
import { type Database, openDatabaseInTurns } from "./sqlite/database.ts";
import { STORE_MIGRATIONS } from "./sqlite/memories/database.ts";
import { migrate } from "./sqlite/migrations.ts";
import { RUN_MIGRATIONS, TABLES_OF_RUN } from "../runs/sql/schema.ts";

export interface CopyOptions {
  /** Folder of the files. No server may use them during the copy. */
  dataDir: string;
  /** Connected to a schema that has its tables, and no runs but those of an earlier copy. */
  access: Access;
  /** Store for large values, if they do not go into Postgres. */
  objects?: LargeObjects | undefined;
  /** Maps the environment of a run in the files to that in the shared storage. */
  environment: (environment: string) => string;
  signal: AbortSignal;
}

/** Number of rows of a table, and of those that the copy added. */
export interface CopiedTable {
  name: string;
  found: number;
  copied: number;
}

/**
 * Copies table by table, and reports each. An interrupted copy can be started again: existing rows are compared and
 * kept. Every row is read back and compared; one that differs is an error, unless it belongs to a run that has
 * continued since.
 *
 * @throws StorageError when servers work on the files, or the schema has other runs
 */
export async function* copyToPostgres(options: CopyOptions): AsyncGenerator<CopiedTable> {
  const { dataDir, access, objects, signal } = options;
  const files: Database[] = [];
  const open = async (name: string): Promise<Database> => {
    const database = await openDatabaseInTurns(join(dataDir, name));
    files.push(database);
    return database;
  };
  try {
    const runs = await open("deepagent.db");
    migrate(runs, "runs", RUN_MIGRATIONS);
    // Runs that a server works on would continue in both places.
    const leased = runs
      .prepare<[], number>("SELECT count(*) FROM runs WHERE lease_owner IS NOT NULL")
      .pluck();
    const count = leased.get() ?? 0;
    if (count > 0) {
      const message = `${count} runs of the data directory are at work, or were when their server ended. Stop all servers, start one and shut it down normally, then copy again.`;
      throw new StorageError("storage_busy", message);
    }
    // In the order in which they refer to each other.
    const others = ["schedules", "schedule_skips", "news_subscriptions", "approval_rules", "thread_sources"];
    for (const table of ["threads", "runs", ...TABLES_OF_RUN, ...others]) {
      signal.throwIfAborted();
      yield await copyTable(table, runs, options);
    }
    await continueNumbers(access);
    yield await copyMemories(runs, access, signal);
    const checkpoints = await open("checkpoints.db");
    yield await copyThreads(checkpoints, new PostgresCheckpointer(access, objects), { access, signal });
  } finally {
    for (const file of files.toReversed()) file.close();
  }
}

type CopiedRow = Readonly<Record<string, unknown>>;

async function copyTable(table: string, runs: Database, { access, environment, signal }: CopyOptions) {
  const columns = runs.prepare<[], { name: string; pk: number }>(`PRAGMA table_info(${table})`).all();
  const names = columns.map(({ name }) => name);
  // Its primary key, or columns that are unique otherwise.
  const primary = columns.filter(({ pk }) => pk > 0).toSorted((a, b) => a.pk - b.pk);
  const key = table === "effects" ? ["run_id", "call"] : primary.map(({ name }) => name);
  // Postgres takes 65,535 parameters in one statement.
  const size = Math.min(500, Math.floor(30_000 / names.length));
  const place = key.join(", ");
  const first = runs.prepare<unknown[], CopiedRow>(`SELECT * FROM ${table} ORDER BY ${place} LIMIT ${size}`);
  const next = runs.prepare<unknown[], CopiedRow>(
    `SELECT * FROM ${table} WHERE (${place}) > (${key.map(() => "?").join(", ")}) ORDER BY ${place} LIMIT ${size}`,
  );
  const report = { name: table, found: 0, copied: 0 };
  for (let rows = first.all(); rows.length > 0; rows = next.all(...key.map((name) => rows.at(-1)?.[name]))) {
    signal.throwIfAborted();
    const moved: readonly CopiedRow[] = names.includes("environment")
      ? rows.map((row) => ({ ...row, environment: environment(String(row["environment"])) }))
      : rows;
    const values = moved.flatMap((row) => names.map((name) => sendable(row[name])));
    const text = `INSERT INTO ${table} (${names.join(", ")}) OVERRIDING SYSTEM VALUE VALUES ${placesFor(moved, names)} ON CONFLICT DO NOTHING`;
    report.copied += (await access.pool.query(text, values)).rowCount ?? 0;
    await compare(access, table, key, moved);
    report.found += rows.length;
  }
  return report;
}

/** The places of so many values of each row, such as `($1, $2), ($3, $4)`. */
const placesFor = (rows: readonly CopiedRow[], { length }: readonly string[]): string =>
  rows
    .map(
      (_, row) =>
        `(${Array.from({ length }, (_value, column) => `$${row * length + column + 1}`).join(", ")})`,
    )
    .join(", ");

/** @throws StorageError unless Postgres has these rows. A run may have continued since an earlier copy. */
async function compare(access: Access, table: string, key: readonly string[], rows: readonly CopiedRow[]) {
  const fixed = FIXED[table] ?? [];
  const { rows: stored } = await access.pool.query<CopiedRow>(
    `SELECT * FROM ${table} WHERE (${key.join(", ")}) IN (${placesFor(rows, key)})`,
    rows.flatMap((row) => key.map((name) => sendable(row[name]))),
  );
  const nameOf = (row: CopiedRow): string => JSON.stringify(key.map((name) => row[name]));
  const found = new Map(stored.map((row) => [nameOf(row), row]));
  for (const row of rows) {
    const other = found.get(nameOf(row));
    if (other !== undefined && fixed.every((name) => sendable(row[name]) === other[name])) continue;
    const message = `Postgres has another row for ${nameOf(row)} of ${table}: the schema has runs of its own. Copy into an empty schema, set by storageSchema.`;
    throw new StorageError("storage_corrupt", message);
  }
}

/** Columns that never change once a row is stored. */
const FIXED: Readonly<Record<string, readonly string[]>> = fixedColumns;

/** Continues the numbering after the copied rows. */
async function continueNumbers(access: Access): Promise<void> {
  const identities = await query<{ table: string; column: string }>(
    access,
    `SELECT table_name AS table, column_name AS column FROM information_schema.columns
     WHERE table_schema = current_schema() AND is_identity = 'YES' AND column_name = 'number'`,
  );
  for (const { table, column } of identities) {
    await access.pool.query(
      `SELECT setval(pg_get_serial_sequence('${table}', '${column}'), greatest(max(${column}), 1)) FROM ${table}`,
    );
  }
}

interface StoredItem extends Record<string, string | number | null> {
  namespace: string;
  key: string;
  body: string | null;
}

async function copyMemories(runs: Database, access: Access, signal: AbortSignal): Promise<CopiedTable> {
  migrate(runs, "store", STORE_MIGRATIONS);
  const page = runs.prepare<[string, string], StoredItem>(`
SELECT namespace, key, value, CASE WHEN indexed THEN substr(coalesce(body, ''), 1, ${SEARCHED_LENGTH}) END AS body,
  version, created_at, updated_at, ttl, expires_at
FROM store_items WHERE (namespace, key) > (?, ?) ORDER BY namespace, key LIMIT 100`);
  const report = { name: "memories", found: 0, copied: 0 };
  for (let after: [string, string] = ["", ""]; ;) {
    const items = page.all(...after);
    for (const item of items) {
      signal.throwIfAborted();
      const words = item.body === null ? null : wordVector(item.key, item.body);
      const sql = `
INSERT INTO store_items (namespace, key, value, body, words, version, created_at, updated_at, ttl, expires_at)
VALUES (@namespace, @key, @value, @body, @words::tsvector, @version, @created_at, @updated_at, @ttl, @expires_at)
ON CONFLICT (namespace, key) DO NOTHING RETURNING id`;
      const made = await query(access, sql, { ...item, words });
      report.found += 1;
      report.copied += made.length;
    }
    const last = items.at(-1);
    if (last === undefined) return report;
    after = [last.namespace, last.key];
  }
}

/** A thread that is copied whole has a fence, as every thread has that agents of a server work on. */
async function copyThreads(
  database: Database,
  to: PostgresCheckpointer,
  { access, signal }: Pick<CopyOptions, "access" | "signal">,
): Promise<CopiedTable> {
  const from = createCheckpointer(database);
  const places = database.prepare<[string], { namespace: string; id: string }>(
    "SELECT checkpoint_ns AS namespace, checkpoint_id AS id FROM checkpoints WHERE thread_id = ? ORDER BY seq",
  );
  const report = { name: "conversations", found: 0, copied: 0 };
  const fences = await query<{ id: string }>(access, "SELECT thread_id AS id FROM thread_fences");
  const whole = new Set(fences.map(({ id }) => id));
  for (const thread of await from.threads()) {
    report.found += 1;
    if (whole.has(thread)) continue;
    // Removes the rest of an earlier copy that was broken off.
    await to.deleteThread(thread);
    const copied = new Set<unknown>();
    for (const { namespace, id } of places.all(thread)) {
      signal.throwIfAborted();
      const tuple = await from.getTuple(configAt({ thread, namespace }, id));
      if (tuple !== undefined) await putTuple(tuple, to);
      copied.add(id);
    }
    // Messages of subagents outlive their checkpoints.
    for await (const [place, task, messages] of from.nestedMessages(thread)) {
      signal.throwIfAborted();
      const isCopied = copied.has(place.configurable?.["checkpoint_id"]);
      if (!isCopied) await to.putWrites(place, [["messages", messages]], task);
    }
    await to.startOver(thread, { run: 0, claim: 0 });
    report.copied += 1;
  }
  return report;
}

async function putTuple(
  { config, parentConfig, checkpoint, metadata, pendingWrites = [] }: CheckpointTuple,
  to: PostgresCheckpointer,
): Promise<void> {
  const { thread_id, checkpoint_ns }: Record<string, unknown> = config.configurable ?? {};
  const place = await to.put(
    parentConfig ?? { configurable: { thread_id, checkpoint_ns } },
    checkpoint,
    metadata ?? { source: "loop", step: 0, parents: {} },
  );
  for (const task of new Set(pendingWrites.map(([id]) => id))) {
    const writes = pendingWrites.filter(([id]) => id === task);
    // Answers and errors have places of their own, before those of results.
    for (const isOwn of [true, false]) {
      const some = writes.filter(([, channel]) => channel in WRITES_IDX_MAP === isOwn);
      const pairs = some.map(([, channel, value]): [string, unknown] => [channel, value]);
      if (pairs.length > 0) await to.putWrites(place, pairs, task);
    }
  }
}
