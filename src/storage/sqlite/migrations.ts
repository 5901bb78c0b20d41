import { createHash } from "node:crypto";
import { closeSync, openSync, renameSync, rmSync } from "node:fs";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { oneLine } from "../../core/text.ts";
import { ownTurn } from "../../core/turns.ts";
import { StorageError, damagedError, isLocked, storageError } from "../errors.ts";
import { flushLog } from "./commit.ts";
import {
  type Database,
  LONG_WAIT_MS,
  databaseName,
  integrityProblems,
  integrityProblemsInThread,
  pragmaNumber,
  usedBytes,
  whenUnlocked,
  withLongWait,
} from "./database.ts";
import { openConnection } from "./driver.ts";
import { checkpointInThread, inThread, readInThread } from "./worker-thread.ts";

/**
 * One step of a component's schema. Once released it never changes; the next change is a new step. It is made in
 * a transaction: either all of it happens or nothing.
 */
export type Migration = {
  /** Counts from 1 without gaps. */
  version: number;
  name: string;
} & (
  | /** Statements. */ { sql: string }
  | Rewrite
  | /** What SQL alone cannot do. It yields between its pieces. */ {
      up(database: Database): Generator<void> | void;
    }
);

/** Of Node, what functions need that a thread has the sources of. */
export interface NodeParts {
  createHash: typeof createHash;
  inflateRawSync: typeof inflateRawSync;
  deflateRawSync: typeof deflateRawSync;
}

/** What is done to rows that are too large for one turn of the event loop. */
export interface Rewrite {
  rewrite(this: void, database: Database, node: NodeParts): void;
  /** The functions it calls: these, too, call no others. */
  uses: readonly ((...args: never[]) => unknown)[];
}

export const NODE: NodeParts = { createHash, inflateRawSync, deflateRawSync };

/** What a thread can do. */
export type Apart = Extract<Migration, { sql: string } | Rewrite>;

/** What a step that threw is told as. */
export function failure(
  database: Database,
  component: string,
  step: Migration,
  thrown: unknown,
): StorageError {
  const known = storageError(thrown, databaseName(database.name));
  if (known instanceof StorageError) return known;
  return new StorageError(
    "storage_migration",
    `The database ${databaseName(database.name)} could not be brought to version ${step.version} ` +
      `of ${component} (${step.name}). Nothing was changed; please report this.`,
    { cause: thrown },
  );
}

/** In one transaction, unless another process was faster. `work` is the source of what the step does. */
const stepOf = (work: string): string => `(database, component, version, sql) => database.transaction(() => {
  const known = database.prepare("SELECT version FROM schema_versions WHERE component = ?").pluck().get(component);
  if (known !== version - 1) return;
  ${work}
  database.prepare("UPDATE schema_versions SET version = ? WHERE component = ?").run(version, component);
}).immediate()`;

/** The sources of functions, each under the name the others have for it. */
const sourceOf = ({ rewrite, uses }: Rewrite): string => `
  ${uses.map(String).join("\n")}
  (${String(rewrite)})(database, { ...require("node:crypto"), ...require("node:zlib") });`;

/** Makes the step in a file that has tables of the component, by a thread; `timeout`: for locks, in milliseconds. */
export async function makeInThread(
  database: Database,
  component: string,
  step: Apart,
  timeout: number,
): Promise<void> {
  const isSql = "sql" in step;
  const work = stepOf(isSql ? "database.exec(sql);" : sourceOf(step));
  const values = [component, step.version, isSql ? step.sql : ""];
  try {
    await inThread({ file: database.name, work, values, timeout });
  } catch (thrown) {
    throw failure(database, component, step, thrown);
  }
}

/** How often a start waits for another process in turn: about a minute. */
const BEGIN_TRIES = 12;

/** A file below this size, in bytes, is not worth a thread for each step. */
const SMALL_FILE = 1_000_000;

/** Told while an existing file is migrated. */
export interface MigrationNotice {
  database: string;
  component: string;
  /** What is done next. */
  step: string;
  bytes: number;
}

/**
 * Brings the tables of `component` to the newest of `migrations`.
 *
 * Every step and its version number are written in one IMMEDIATE transaction, so processes that start
 * at once take turns and each step runs once. Before the first step changes the tables of an existing
 * file, a copy of it is made beside it. Throws `StorageError` when the file comes from a newer program,
 * is damaged, or a step fails; the tables are then what they were.
 */
export function migrate(database: Database, component: string, migrations: readonly Migration[]): void {
  checkNumbers(component, migrations);
  try {
    let backedUp = false;
    while (pendingFrom(database, component, migrations) < migrations.length) {
      const step = database.transaction(() => {
        // Another process may have made this step since it was looked up.
        const version = pendingFrom(database, component, migrations);
        const next = migrations[version];
        if (next === undefined) return;
        if (version > 0 && !backedUp) backUp(database, component, version);
        backedUp = true;
        for (const _ of pieces(database, component, next));
      });
      withLongWait(database, () => step.immediate());
    }
  } catch (thrown) {
    throw storageError(thrown, databaseName(database.name));
  }
}

/**
 * The same for a program that serves meanwhile: the file is checked and copied in a thread, and long steps
 * leave turns of the event loop to others. Nothing else may use the connection until it is done.
 */
export async function migrateInTurns(
  database: Database,
  component: string,
  migrations: readonly Migration[],
  notify: (notice: MigrationNotice) => void,
): Promise<void> {
  checkNumbers(component, migrations);
  const bytes = usedBytes(database);
  const isLarge = bytes >= SMALL_FILE && !database.memory;
  const isNew = schemaVersion(database, component) === 0;
  const tell = (step: string): void => {
    if (!isNew) notify({ database: databaseName(database.name), component, step, bytes });
  };
  const settings = [...DURING].map(([name, value]) => {
    const before = pragmaNumber(database, name);
    database.pragma(`${name} = ${value}`);
    return `${name} = ${before}`;
  });
  try {
    let backedUp = false;
    while (pendingFrom(database, component, migrations) < migrations.length) {
      let left: Apart | undefined;
      await begin(database);
      try {
        const version = pendingFrom(database, component, migrations);
        const next = migrations[version];
        if (next !== undefined) {
          if (version > 0 && !backedUp) {
            tell("backup");
            await backUpInThread(database, component, version);
          }
          backedUp = true;
          tell(`${next.version}: ${next.name}`);
          if (version > 0 && isLarge && !("up" in next)) left = next;
          else for (const _ of pieces(database, component, next)) await ownTurn();
        }
        database.exec("COMMIT");
      } finally {
        if (database.inTransaction) database.exec("ROLLBACK");
      }
      if (left !== undefined) await makeInThread(database, component, left, BEGIN_TRIES * LONG_WAIT_MS);
    }
    if (!backedUp || isNew || database.memory) return;
    await flushLog(database);
    // Emptied by the thread: of a long one no commit has to cut off the rest.
    await checkpointInThread(database.name, "TRUNCATE");
  } catch (thrown) {
    throw storageError(thrown, databaseName(database.name));
  } finally {
    for (const setting of settings) database.pragma(setting);
  }
}

/** So that a commit of most of a file takes no time: it is written before, and flushed by a thread afterwards. */
const DURING = new Map([
  ["wal_autocheckpoint", 0],
  ["synchronous", 1],
  ["cache_size", -1000],
]);

/** Another process may be at the same, which takes a while. */
async function begin(database: Database): Promise<void> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await whenUnlocked(database, () => void database.exec("BEGIN IMMEDIATE"));
    } catch (thrown) {
      if (!isLocked(thrown) || tried === BEGIN_TRIES) throw thrown;
    }
  }
}

/** The version of the component's tables in the file, 0 when it has none. */
export function schemaVersion(database: Database, component: string): number {
  const table = database.prepare(
    "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_versions'",
  );
  if (table.get() === undefined) return 0;
  const version = database
    .prepare<[string], number>("SELECT version FROM schema_versions WHERE component = ?")
    .pluck()
    .get(component);
  return version ?? 0;
}

function pendingFrom(database: Database, component: string, migrations: readonly Migration[]): number {
  const version = schemaVersion(database, component);
  if (version < 0) throw damagedError(databaseName(database.name));
  if (version <= migrations.length) return version;
  throw new StorageError(
    "storage_newer",
    `The database ${databaseName(database.name)} was written by a newer version of this program ` +
      `(${component} is at version ${version}, known are versions up to ${migrations.length}). ` +
      `Update the program, or choose another data directory.`,
  );
}

/** Makes the step and notes its version; yields where others may have a turn. */
function* pieces(database: Database, component: string, migration: Migration): Generator<void> {
  try {
    if ("sql" in migration) database.exec(migration.sql);
    else if ("rewrite" in migration) migration.rewrite(database, NODE);
    else yield* migration.up(database) ?? [];
  } catch (thrown) {
    throw failure(database, component, migration, thrown);
  }
  database.exec(
    "CREATE TABLE IF NOT EXISTS schema_versions (component TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT",
  );
  database
    .prepare(
      "INSERT INTO schema_versions (component, version) VALUES (?, ?) " +
        "ON CONFLICT (component) DO UPDATE SET version = excluded.version",
    )
    .run(component, migration.version);
}

/**
 * Copies the file to `<file>.<component>-v<version>.backup`. The caller holds the write lock, so no other
 * process makes the same copy; a second connection reads the last committed state meanwhile.
 */
function backUp(database: Database, component: string, version: number): void {
  if (database.memory) return;
  assertSound(database, integrityProblems(database));
  const { partial, finish } = beginBackup(database, component, version);
  const reader = openConnection(database.name, { readonly: true });
  try {
    reader.prepare(COPY).run(partial);
  } finally {
    reader.close();
  }
  finish();
}

async function backUpInThread(database: Database, component: string, version: number): Promise<void> {
  if (database.memory) return;
  assertSound(database, await integrityProblemsInThread(database));
  const { partial, finish } = beginBackup(database, component, version);
  await readInThread(database.name, COPY, partial);
  finish();
}

const COPY = "VACUUM INTO ?";

function assertSound(database: Database, [problem]: readonly string[]): void {
  if (problem === undefined) return;
  throw new StorageError(
    "storage_corrupt",
    `The database ${databaseName(database.name)} is damaged and was left as it is: ${oneLine(problem, 200)}. ` +
      `Restore a backup copy, or move it away.`,
  );
}

/** An empty private file to copy into, and what makes it the backup. */
function beginBackup(database: Database, component: string, version: number) {
  const target = `${database.name}.${component}-v${version}.backup`;
  const partial = `${target}.partial`;
  rmSync(partial, { force: true });
  closeSync(openSync(partial, "wx", 0o600));
  return { partial, finish: () => renameSync(partial, target) };
}

function checkNumbers(component: string, migrations: readonly Migration[]): void {
  const wrong = migrations.find(({ version }, index) => version !== index + 1);
  if (wrong === undefined) return;
  throw new Error(`Migrations of ${component} must count from 1 without gaps; found ${wrong.version}.`);
}
