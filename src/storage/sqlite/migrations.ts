import type { Migration } from "../../runs/sql/sql-files.ts";
import { closeSync, openSync, renameSync, rmSync } from "node:fs";
import { oneLine, fill } from "../../core/text.ts";
import { StorageError } from "../../core/errors.ts";
import { damagedError, storageError } from "./errors.ts";
import { type Database, databaseName, integrityProblems, withLongWait } from "./database.ts";
import { openConnection } from "./driver.ts";
import texts from "../texts.json" with { type: "json" };

/** A step with work of its own. */
export interface SqliteMigration extends Migration {
  /** The rest of the step, after the statements. */
  work?: (database: Database) => void;
}

/** The error for a step that threw. */
function migrationFailure(database: Database, component: string, step: SqliteMigration, thrown: unknown) {
  const known = storageError(thrown, databaseName(database.name));
  if (known instanceof StorageError) return known;
  return new StorageError(
    "storage_migration",
    fill(texts.migrationFailed, databaseName(database.name), step.version, component, step.name),
    { cause: thrown },
  );
}

/**
 * Migrates the tables of `component` to the newest of `migrations`.
 *
 * Every step and its version number are written in one IMMEDIATE transaction, so processes that start
 * at once take turns and each step runs once. Before the first step changes the tables of an existing
 * file, a copy of it is made beside it. Throws `StorageError` when the file comes from a newer program,
 * is damaged, or a step fails; the tables are then unchanged.
 */
export function migrate(database: Database, component: string, migrations: readonly SqliteMigration[]): void {
  const wrong = migrations.find(({ version }, index) => version !== index + 1);
  if (wrong !== undefined)
    throw new Error(`Migrations of ${component} must count from 1 without gaps; found ${wrong.version}.`);
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
        apply(database, component, next);
      });
      withLongWait(database, () => step.immediate());
    }
  } catch (thrown) {
    throw storageError(thrown, databaseName(database.name));
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

function pendingFrom(database: Database, component: string, migrations: readonly SqliteMigration[]): number {
  const version = schemaVersion(database, component);
  if (version < 0) throw damagedError(databaseName(database.name));
  if (version <= migrations.length) return version;
  throw new StorageError(
    "storage_newer",
    fill(texts.newerDatabase, databaseName(database.name), component, version, migrations.length),
  );
}

/** Makes the step and notes its version. */
function apply(database: Database, component: string, migration: SqliteMigration): void {
  try {
    database.exec(migration.sql);
    migration.work?.(database);
  } catch (thrown) {
    throw migrationFailure(database, component, migration, thrown);
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
 * Copies the file to `<file>.<component>-v<version>.backup`. The caller holds the write lock, so no other process makes
 * the same copy; a second connection reads the last committed state.
 */
function backUp(database: Database, component: string, version: number): void {
  if (database.memory) return;
  const [problem] = integrityProblems(database);
  if (problem !== undefined)
    throw new StorageError(
      "storage_corrupt",
      fill(texts.damagedDatabase, databaseName(database.name), oneLine(problem, 200)),
    );
  const target = `${database.name}.${component}-v${version}.backup`;
  const partial = `${target}.partial`;
  rmSync(partial, { force: true });
  closeSync(openSync(partial, "wx", 0o600));
  const reader = openConnection(database.name, { readonly: true });
  try {
    reader.prepare("VACUUM INTO ?").run(partial);
  } finally {
    reader.close();
  }
  renameSync(partial, target);
}
