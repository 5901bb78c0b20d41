import {
  type Migration,
  migrate,
  migrateInTurns,
  schemaVersion,
} from "../../src/storage/sqlite/migrations.ts";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type Database, integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { bundleProcess, finish, startProcess } from "./migrate-child.ts";
import { opened, temporaryFolder } from "./support.ts";

const notes: Migration = {
  version: 1,
  name: "notes",
  up: (database) => void database.exec("CREATE TABLE notes (text TEXT)"),
};
const dates: Migration = {
  version: 2,
  name: "dates of notes",
  up: (database) => void database.exec("ALTER TABLE notes ADD COLUMN date TEXT"),
};
const broken: Migration = {
  version: 2,
  name: "half a step",
  up: (database) => void database.exec("CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)"),
};

type Way = (database: Database, component: string, migrations: readonly Migration[]) => Promise<void>;
const WAYS: readonly [name: string, migrate: Way][] = [
  ["migrate", async (...args) => migrate(...args)],
  ["migrateInTurns", (...args) => migrateInTurns(...args, () => undefined)],
];

const tables = (database: Database) =>
  database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();

describe.each(WAYS)("%s", (_name, migrate) => {
  it("makes each step once and remembers it", async () => {
    const database = opened();
    await migrate(database, "notes", [notes]);
    await migrate(database, "notes", [notes]);
    expect(schemaVersion(database, "notes")).toBe(1);
    await migrate(database, "notes", [notes, dates]);
    expect(schemaVersion(database, "notes")).toBe(2);
    expect(database.prepare("SELECT name FROM pragma_table_info('notes')").pluck().all()).toEqual([
      "text",
      "date",
    ]);
  });

  it("counts each component for itself", async () => {
    const database = opened();
    await migrate(database, "notes", [notes, dates]);
    await migrate(database, "other", [
      { version: 1, name: "other", up: (inner) => void inner.exec("CREATE TABLE o (x)") },
    ]);
    expect(schemaVersion(database, "notes")).toBe(2);
    expect(schemaVersion(database, "other")).toBe(1);
    expect(schemaVersion(database, "third")).toBe(0);
  });

  it("undoes a step that fails, and keeps those before it", async () => {
    const database = opened();
    await expect(migrate(database, "notes", [notes, broken])).rejects.toMatchObject({
      code: "storage_migration",
      message:
        "The database (in memory) could not be brought to version 2 of notes (half a step). " +
        "Nothing was changed; please report this.",
    });
    expect(schemaVersion(database, "notes")).toBe(1);
    expect(tables(database)).toEqual(["notes", "schema_versions"]);
  });

  it("refuses a file of a newer program and changes nothing", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const newer = openDatabase(file);
    await migrate(newer, "notes", [notes, dates]);
    newer.close();
    const database = opened(file);
    await expect(migrate(database, "notes", [notes])).rejects.toMatchObject({
      code: "storage_newer",
      message:
        "The database agent.db was written by a newer version of this program (notes is at version 2, " +
        "known are versions up to 1). Update the program, or choose another data directory.",
    });
    expect(schemaVersion(database, "notes")).toBe(2);
  });

  it("refuses steps that do not count from 1", async () => {
    await expect(migrate(opened(), "notes", [dates])).rejects.toThrow("count from 1 without gaps");
  });
});

describe.each(WAYS)("the backup that %s makes before a step", (_name, migrate) => {
  it("is a private, sound copy of what was there, and not made for a new file", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "agent.db");
    const database = opened(file);
    await migrate(database, "notes", [notes]);
    expect(readdirSync(folder).filter((name) => name.includes("backup"))).toEqual([]);
    database.prepare("INSERT INTO notes VALUES ('kept')").run();

    await migrate(database, "notes", [notes, dates]);
    const backup = `${file}.notes-v1.backup`;
    expect(readdirSync(folder).filter((name) => name.includes("backup"))).toEqual([
      "agent.db.notes-v1.backup",
    ]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    const copy = opened(backup);
    expect(copy.prepare("SELECT * FROM notes").all()).toEqual([{ text: "kept" }]);
    expect(schemaVersion(copy, "notes")).toBe(1);
  });

  it("is not made when a component is new in the file", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    await migrate(database, "notes", [notes]);
    await migrate(database, "other", [
      { version: 1, name: "other", up: (inner) => void inner.exec("CREATE TABLE o (x)") },
    ]);
    expect(existsSync(`${file}.other-v0.backup`)).toBe(false);
  });

  it("replaces the remains of one that was broken off", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    await migrate(database, "notes", [notes]);
    writeFileSync(`${file}.notes-v1.backup.partial`, "half a copy");
    await migrate(database, "notes", [notes, dates]);
    expect(existsSync(`${file}.notes-v1.backup.partial`)).toBe(false);
    expect(schemaVersion(opened(`${file}.notes-v1.backup`), "notes")).toBe(1);
  });

  it("keeps a damaged file from being migrated", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const writer = openDatabase(file);
    await migrate(writer, "notes", [notes]);
    const insert = writer.prepare("INSERT INTO notes VALUES (?)");
    for (let row = 0; row < 200; row += 1) insert.run("text ".repeat(100));
    writer.close();
    const bytes = readFileSync(file);
    bytes.fill(0x5a, bytes.length - 8 * 4096, bytes.length - 2 * 4096);
    writeFileSync(file, bytes);

    const database = opened(file);
    await expect(migrate(database, "notes", [notes, dates])).rejects.toMatchObject({
      code: "storage_corrupt",
      message: expect.stringContaining("agent.db is damaged"),
    });
    expect(schemaVersion(database, "notes")).toBe(1);
    expect(existsSync(`${file}.notes-v1.backup`)).toBe(false);
  });
});

describe("migrateInTurns", () => {
  it("tells nothing of a new file", async () => {
    const told: unknown[] = [];
    await migrateInTurns(opened(), "notes", [notes, dates], (notice) => told.push(notice));
    expect(told).toEqual([]);
  });

  const slow: Migration = {
    version: 2,
    name: "many pieces",
    *up(database) {
      for (let piece = 0; piece < 50; piece += 1) {
        database.prepare("INSERT INTO notes VALUES (?)").run(`${piece}`);
        yield;
      }
    },
  };

  it("lets the program serve while it checks, copies and changes the file, and tells what it does", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    const reader = opened(file);
    const seen: unknown[] = [];
    const over = new AbortController();
    const steps: string[] = [];
    const migrated = migrateInTurns(database, "notes", [notes, slow], ({ step }) => steps.push(step)).finally(
      () => over.abort(),
    );
    while (!over.signal.aborted) {
      const isCopying = existsSync(`${file}.notes-v1.backup.partial`);
      seen.push(isCopying ? "copying" : reader.prepare("SELECT count(*) FROM notes").pluck().get());
      await nextTurn();
    }
    await migrated;
    expect(steps).toEqual(["backup", "2: many pieces"]);
    expect(seen).toContain("copying");
    // Nobody sees a part of a step.
    expect(seen.filter((one) => one !== "copying" && one !== 0 && one !== 50)).toEqual([]);
    expect(seen.filter((one) => one === 0).length).toBeGreaterThan(10);
    expect(reader.prepare("SELECT count(*) FROM notes").pluck().get()).toBe(50);
  });
});

describe("a step in SQL of an existing file", () => {
  const filled: Migration = {
    version: 2,
    name: "many rows",
    sql: `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO notes SELECT i FROM n`,
  };

  it("is made by a thread: others have their turns, and nobody sees a part of it", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    // Small files are not worth it.
    database.exec("CREATE TABLE large (x); INSERT INTO large VALUES (zeroblob(2000000))");
    const executed: string[] = [];
    const exec = database.exec.bind(database);
    database.exec = (sql) => (executed.push(sql), exec(sql));
    const over = new AbortController();
    const seen = new Set<unknown>();
    let turns = 0;
    const migrated = migrateInTurns(database, "notes", [notes, filled], () => undefined).finally(() =>
      over.abort(),
    );
    const reader = opened(file).prepare("SELECT max(rowid) FROM notes").pluck();
    for (; !over.signal.aborted; turns += 1) {
      seen.add(reader.get());
      await nextTurn();
    }
    await migrated;
    expect(turns).toBeGreaterThan(100);
    expect([...seen].filter((one) => one !== null && one !== 200_000)).toEqual([]);
    expect(executed.filter((sql) => sql.includes("INSERT"))).toEqual([]);
    expect([schemaVersion(database, "notes"), reader.get()]).toEqual([2, 200_000]);
    expect(database.pragma("synchronous", { simple: true })).toBe(2);
  });

  it("that fails leaves nothing", async () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    migrate(database, "notes", [notes]);
    const half: Migration = { version: 2, name: "half a step", sql: "CREATE TABLE half (x); SELECT nothing" };
    await expect(migrateInTurns(database, "notes", [notes, half], () => undefined)).rejects.toMatchObject({
      code: "storage_migration",
      cause: { code: "SQLITE_ERROR" },
    });
    expect([schemaVersion(database, "notes"), tables(database)]).toEqual([1, ["notes", "schema_versions"]]);
  });
});

describe("processes that start at once", () => {
  const run = async (bundle: string, file: string, versions: number, killedIn?: number | "backup") =>
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

  it("leave a file as it was when they were killed while it was copied", async () => {
    const folder = temporaryFolder();
    const file = join(folder, "agent.db");
    const bundle = bundleProcess(folder);
    expect(await run(bundle, file, 2)).toBe(0);
    expect(await run(bundle, file, 3, "backup")).toBeNull();
    const database = opened(file);
    expect([schemaVersion(database, "test"), integrityProblems(database)]).toEqual([2, []]);
    expect(await run(bundle, file, 3)).toBe(0);
    expect(schemaVersion(database, "test")).toBe(3);
    expect(readdirSync(folder).filter((name) => name.includes("backup"))).toEqual([
      "agent.db.test-v2.backup",
    ]);
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
