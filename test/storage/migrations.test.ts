import { migrate, schemaVersion } from "../../src/storage/sqlite/migrations.ts";
import type { Migration } from "../../src/runs/sql/sql-files.ts";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Database, integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { bundleProcess, finish, startProcess } from "./migrate-child.ts";
import { opened, temporaryFolder, thrownBy } from "./support.ts";

const notes: Migration = {
  version: 1,
  name: "notes",
  sql: "CREATE TABLE notes (text TEXT)",
};
const dates: Migration = {
  version: 2,
  name: "dates of notes",
  sql: "ALTER TABLE notes ADD COLUMN date TEXT",
};
const broken: Migration = {
  version: 2,
  name: "half a step",
  sql: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)",
};

const tables = (database: Database) =>
  database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();

describe("migrate", () => {
  it("makes each step once and remembers it", () => {
    const database = opened();
    migrate(database, "notes", [notes]);
    migrate(database, "notes", [notes]);
    expect(schemaVersion(database, "notes")).toBe(1);
    migrate(database, "notes", [notes, dates]);
    expect(schemaVersion(database, "notes")).toBe(2);
    expect(database.prepare("SELECT name FROM pragma_table_info('notes')").pluck().all()).toEqual([
      "text",
      "date",
    ]);
  });

  it("counts each component for itself", () => {
    const database = opened();
    migrate(database, "notes", [notes, dates]);
    migrate(database, "other", [{ version: 1, name: "other", sql: "CREATE TABLE o (x)" }]);
    expect(schemaVersion(database, "notes")).toBe(2);
    expect(schemaVersion(database, "other")).toBe(1);
    expect(schemaVersion(database, "third")).toBe(0);
  });

  it("undoes a step that fails, and keeps those before it", () => {
    const database = opened();
    expect(thrownBy(() => migrate(database, "notes", [notes, broken]))).toMatchObject({
      code: "storage_migration",
      message:
        "The database (in memory) could not be brought to version 2 of notes (half a step). " +
        "Nothing was changed; please report this.",
    });
    expect(schemaVersion(database, "notes")).toBe(1);
    expect(tables(database)).toEqual(["notes", "schema_versions"]);
  });

  it("refuses a file of a newer program and changes nothing", () => {
    const file = join(temporaryFolder(), "agent.db");
    const newer = openDatabase(file);
    migrate(newer, "notes", [notes, dates]);
    newer.close();
    const database = opened(file);
    expect(thrownBy(() => migrate(database, "notes", [notes]))).toMatchObject({
      code: "storage_newer",
      message:
        "The database agent.db was written by a newer version of this program (notes is at version 2, " +
        "known are versions up to 1). Update the program, or choose another data directory.",
    });
    expect(schemaVersion(database, "notes")).toBe(2);
  });

  it("refuses steps that do not count from 1", () => {
    expect(() => migrate(opened(), "notes", [dates])).toThrow("count from 1 without gaps");
  });
});

describe("the backup that is made before a step", () => {
  it("is a private, sound copy of what was there, and not made for a new file", () => {
    const folder = temporaryFolder();
    const file = join(folder, "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    expect(readdirSync(folder).filter((name) => name.includes("backup"))).toEqual([]);
    database.prepare("INSERT INTO notes VALUES ('kept')").run();

    migrate(database, "notes", [notes, dates]);
    const backup = `${file}.notes-v1.backup`;
    expect(readdirSync(folder).filter((name) => name.includes("backup"))).toEqual([
      "agent.db.notes-v1.backup",
    ]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const copy = opened(backup);
    expect(copy.prepare("SELECT * FROM notes").all()).toEqual([{ text: "kept" }]);
    expect(schemaVersion(copy, "notes")).toBe(1);
  });

  it("is not made when a component is new in the file", () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    migrate(database, "other", [{ version: 1, name: "other", sql: "CREATE TABLE o (x)" }]);
    expect(existsSync(`${file}.other-v0.backup`)).toBe(false);
  });

  it("replaces the remains of one that was broken off", () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    writeFileSync(`${file}.notes-v1.backup.partial`, "half a copy");
    migrate(database, "notes", [notes, dates]);
    expect(existsSync(`${file}.notes-v1.backup.partial`)).toBe(false);
    expect(schemaVersion(opened(`${file}.notes-v1.backup`), "notes")).toBe(1);
  });

  it("keeps a damaged file from being migrated", () => {
    const file = join(temporaryFolder(), "agent.db");
    const writer = openDatabase(file);
    migrate(writer, "notes", [notes]);
    const insert = writer.prepare("INSERT INTO notes VALUES (?)");
    for (let row = 0; row < 200; row += 1) insert.run("text ".repeat(100));
    writer.close();
    const bytes = readFileSync(file);
    bytes.fill(0x5a, bytes.length - 8 * 4096, bytes.length - 2 * 4096);
    writeFileSync(file, bytes);

    const database = opened(file);
    expect(thrownBy(() => migrate(database, "notes", [notes, dates]))).toMatchObject({
      code: "storage_corrupt",
      message: expect.stringContaining("agent.db is damaged"),
    });
    expect(schemaVersion(database, "notes")).toBe(1);
    expect(existsSync(`${file}.notes-v1.backup`)).toBe(false);
  });
});

describe("processes that start at once", () => {
  const run = async (bundle: string, file: string, versions: number, killedIn?: number) =>
    finish(await startProcess(bundle, file, versions, killedIn === undefined ? {} : { killedIn }));

  it("leave nothing of a step they were killed in, and the next one makes it", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "agent.db");
    const bundle = bundleProcess(folder);
    expect(await run(bundle, file, 2)).toBe(0);
    expect(await run(bundle, file, 5, 4)).toBeNull();
    const database = opened(file);
    const steps = () => database.prepare("SELECT version FROM log ORDER BY rowid").pluck().all();
    expect([schemaVersion(database, "test"), steps()]).toEqual([3, [1, 2, 3]]);
    expect(database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'half_made'").get()).toBeUndefined();
    expect(integrityProblems(database)).toEqual([]);
    const backup = opened(`${file}.test-v2.backup`);
    expect(backup.prepare("SELECT max(version) FROM log").pluck().get()).toBe(2);
    expect(await run(bundle, file, 5)).toBe(0);
    expect(steps()).toEqual([1, 2, 3, 4, 5]);
  });

  it("take turns: every step happens once, one backup is made", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "data", "agent.db");
    const bundle = bundleProcess(folder);
    const first = await Promise.all([1, 2, 3, 4].map(() => startProcess(bundle, file, 6)));
    expect(await Promise.all(first.map(finish))).toEqual([0, 0, 0, 0]);
    const second = await Promise.all([1, 2, 3, 4].map(() => startProcess(bundle, file, 12)));
    expect(await Promise.all(second.map(finish))).toEqual([0, 0, 0, 0]);

    const database = opened(file);
    expect(database.prepare("SELECT version FROM log ORDER BY rowid").pluck().all()).toEqual(
      Array.from({ length: 12 }, (_, index) => index + 1),
    );
    const backup = opened(`${file}.test-v6.backup`);
    expect(backup.prepare("SELECT max(version) FROM log").pluck().get()).toBe(6);
  });
});
