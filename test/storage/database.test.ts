import {
  closeSync,
  copyFileSync,
  openSync,
  writeSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { buildSync } from "esbuild";
import { describe, expect, it, onTestFinished } from "vitest";
import { DeepAgentError, StorageError } from "../../src/core/errors.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { storageError } from "../../src/storage/sqlite/errors.ts";
import { opened, temporaryFolder, thrownBy } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

const modeOf = (path: string) => statSync(path).mode & 0o777;
const NOBODY = 65_534;

describe("openDatabase", () => {
  it("makes a private file in private folders, with a private log", () => {
    const folder = temporaryFolder();
    const file = join(folder, "data", "deep", "agent.db");
    opened(file).exec("CREATE TABLE t (x)");
    expect(modeOf(join(folder, "data"))).toBe(0o700);
    expect(modeOf(join(folder, "data", "deep"))).toBe(0o700);
    expect(modeOf(file)).toBe(0o600);
    expect(modeOf(`${file}-wal`)).toBe(0o600);
    expect(modeOf(`${file}-shm`)).toBe(0o600);
  });

  it("takes the rights of others away from an existing file", () => {
    const file = join(temporaryFolder(), "agent.db");
    openDatabase(file).close();
    chmodSync(file, 0o644);
    opened(file);
    expect(modeOf(file)).toBe(0o600);
  });

  it("sets what every connection relies on", () => {
    const database = opened(join(temporaryFolder(), "agent.db"));
    const pragma = (name: string) => database.pragma(name, { simple: true });
    expect(pragma("journal_mode")).toBe("wal");
    expect(pragma("synchronous")).toBe(2);
    expect(pragma("foreign_keys")).toBe(1);
    expect(pragma("trusted_schema")).toBe(0);
    expect(pragma("busy_timeout")).toBe(5);
  });

  it("relaxes the flush of each commit when asked to", () => {
    const database = opened(join(temporaryFolder(), "agent.db"), { synchronous: "NORMAL" });
    expect(database.pragma("synchronous", { simple: true })).toBe(1);
  });

  it("keeps a database in memory to itself", () => {
    opened(":memory:").exec("CREATE TABLE t (x)");
    expect(opened(":memory:").prepare("SELECT count(*) FROM sqlite_schema").pluck().get()).toBe(0);
  });

  it("takes a name that looks like a URI as a file's name", () => {
    const { name } = opened(join(temporaryFolder(), "file:x?mode=memory"));
    expect(statSync(name).isFile()).toBe(true);
  });

  it("lets others read while one writes", () => {
    const file = join(temporaryFolder(), "agent.db");
    const writer = opened(file);
    writer.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1); BEGIN IMMEDIATE; INSERT INTO t VALUES (2)");
    expect(opened(file).prepare("SELECT count(*) FROM t").pluck().get()).toBe(1);
    writer.exec("COMMIT");
  });
});

describe("openDatabase, when it cannot", () => {
  it.each([
    ["a text", "These are notes, not a database."],
    ["a longer text", "notes ".repeat(2000)],
  ])("refuses %s and leaves it as it is", (_kind, content) => {
    const file = join(temporaryFolder(), "agent.db");
    writeFileSync(file, content);
    const thrown = thrownBy(() => openDatabase(file));
    expect(thrown).toBeInstanceOf(StorageError);
    expect(thrown).toBeInstanceOf(DeepAgentError);
    expect(thrown).toMatchObject({
      code: "storage_not_a_database",
      message:
        "agent.db is not a SQLite database. It was left untouched: move it away, or choose another data directory.",
    });
    expect(readFileSync(file, "utf8")).toBe(content);
  });

  it("refuses a database of another program, and leaves it as it is", () => {
    const file = join(temporaryFolder(), "agent.db");
    const other = openConnection(file);
    other.exec("PRAGMA application_id = 252006673; CREATE TABLE theirs (x)");
    other.close();
    const before = readFileSync(file);
    expect(thrownBy(() => opened(file))).toMatchObject({
      code: "storage_not_a_database",
      message: expect.stringContaining("agent.db is a database of another program"),
    });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("refuses a folder in the place of the file", () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    expect(thrownBy(() => openDatabase(folder))).toMatchObject({ code: "storage_directory" });
    expect(modeOf(folder)).toBe(0o755);
  });

  it("says that a part of the path is a file", () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "notes"), "");
    const thrown = thrownBy(() => openDatabase(join(folder, "notes", "agent.db")));
    expect(thrown).toMatchObject({
      code: "storage_directory",
      message:
        "The directory of the database agent.db cannot be used: a part of its path is a file. " +
        "Choose another data directory with --data-dir, or correct this one.",
    });
  });

  it.each([
    ["another folder", "other"],
    ["nothing", "nothing"],
    ["itself", "way"],
  ])("writes nothing while a link on the path leads to %s", (_name, target) => {
    const folder = temporaryFolder();
    const way = join(folder, "way");
    const turnTo = (to: string): void => {
      rmSync(way, { force: true });
      symlinkSync(to, way);
    };
    mkdirSync(join(folder, "first"));
    mkdirSync(join(folder, "other"));
    turnTo("first");
    const database = opened(join(way, "agent.db"));
    database.exec("CREATE TABLE t (x)");
    const insert = () => database.prepare("INSERT INTO t VALUES (1)").run();
    turnTo(target);
    expect(thrownBy(insert)).toMatchObject({
      code: "storage_directory",
      message: expect.stringMatching(/^A link on the path of agent\.db has changed its target/),
    });
    expect(readdirSync(join(folder, "other"))).toEqual([]);
    turnTo("first");
    expect(insert()).toMatchObject({ changes: 1 });
  });

  it.each([
    ["to nothing", "nothing", /a link on its path leads to a place that does not exist/],
    ["to itself", "way", /the links on its path lead in a circle/],
  ])("says that a link on the path leads %s", (_name, target, message) => {
    const folder = temporaryFolder();
    symlinkSync(target, join(folder, "way"));
    expect(thrownBy(() => openDatabase(join(folder, "way/data/agent.db")))).toMatchObject({
      code: "storage_directory",
      message: expect.stringMatching(message),
    });
  });

  it.runIf(process.platform === "linux")("comes back from a place where no folder can be made", () => {
    const thrown = thrownBy(() => openDatabase("/proc/nothing/here/agent.db"));
    expect(thrown).toMatchObject({ code: "storage_directory" });
    expect(thrown).not.toMatchObject({ message: expect.stringContaining("/proc") });
  });

  it("says that the directory is read-only", () => {
    const outside = temporaryFolder();
    const folder = join(outside, "locked");
    mkdirSync(folder, { mode: 0o555 });
    chmodSync(outside, 0o755);
    // Root may write everywhere: then it is somebody else who tries.
    if (process.getuid?.() === 0) {
      process.seteuid?.(NOBODY);
      onTestFinished(() => process.seteuid?.(0));
    }
    expect(thrownBy(() => openDatabase(join(folder, "agent.db")))).toMatchObject({
      code: "storage_directory",
      message: expect.stringContaining("permission was denied"),
    });
  });
});

describe("a damaged database", () => {
  const damaged = (): string => {
    const file = join(temporaryFolder(), "agent.db");
    const database = openDatabase(file);
    database.exec("CREATE TABLE t (x); CREATE INDEX i ON t (x)");
    const insert = database.prepare("INSERT INTO t VALUES (?)");
    for (let row = 0; row < 500; row += 1) insert.run(`row ${row} `.repeat(20));
    database.close();
    return file;
  };

  it("is sound as long as nothing happened to it", () => {
    expect(integrityProblems(opened(damaged()))).toEqual([]);
  });

  it("is reported when its end is missing", () => {
    const file = damaged();
    truncateSync(file, 5 * 4096);
    const before = readFileSync(file);
    const thrown = thrownBy(() => {
      const problems = integrityProblems(opened(file));
      throw new StorageError("storage_corrupt", problems.join("\n"));
    });
    expect(thrown).toMatchObject({ code: "storage_corrupt", message: expect.stringMatching(/\S/) });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("is reported when a part of its last page is missing, which SQLite reads as zeros", () => {
    const file = damaged();
    truncateSync(file, statSync(file).size - 1000);
    const before = readFileSync(file);
    expect(thrownBy(() => opened(file))).toMatchObject({
      code: "storage_corrupt",
      message: expect.stringContaining("The database agent.db is damaged. It was left untouched"),
    });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("is read where the missing part is in its log", () => {
    const file = damaged();
    const database = openDatabase(file);
    database.exec("INSERT INTO t SELECT x || x FROM t");
    const copy = join(temporaryFolder(), "agent.db");
    for (const end of ["", "-wal"]) copyFileSync(`${file}${end}`, `${copy}${end}`);
    database.close();
    // As when a machine goes down while the log is written into the file.
    writeFileSync(copy, readFileSync(file).subarray(0, statSync(file).size - 1000));
    expect(integrityProblems(opened(copy))).toEqual([]);
  });

  it("is reported when pages hold nonsense", () => {
    const file = damaged();
    const bytes = readFileSync(file);
    bytes.fill(0x5a, 2 * 4096, 6 * 4096);
    writeFileSync(file, bytes);
    const database = opened(file);
    expect(integrityProblems(database)).not.toEqual([]);
    const thrown = storageError(
      thrownBy(() => database.prepare("SELECT sum(length(x)) FROM t").get()),
      "agent.db",
    );
    expect(thrown).toMatchObject({
      code: "storage_corrupt",
      message: expect.stringContaining("The database agent.db is damaged"),
    });
  });
});

describe("a connection throws", () => {
  it("names a full disk", () => {
    const database = opened();
    database.exec("CREATE TABLE t (x)");
    database.pragma("max_page_count = 4");
    const thrown = thrownBy(() => database.prepare("INSERT INTO t VALUES (zeroblob(100000))").run());
    expect(thrown).toBeInstanceOf(StorageError);
    expect(thrown).toMatchObject({
      code: "storage_full",
      message: expect.stringMatching(
        /^There is no space left to write to .*\. Free some disk space and try again\.$/,
      ),
      cause: expect.objectContaining({ code: "SQLITE_FULL" }),
    });
    const fill = database.transaction(() => database.exec("INSERT INTO t VALUES (zeroblob(100000))"));
    for (const way of [fill, fill.immediate]) {
      expect(thrownBy(() => way())).toMatchObject({ code: "storage_full" });
    }
  });

  it("names a lock that stayed", () => {
    const file = join(temporaryFolder(), "agent.db");
    const holder = opened(file);
    holder.exec("BEGIN IMMEDIATE");
    const waiter = opened(file);
    waiter.pragma("busy_timeout = 0");
    const thrown = thrownBy(() => waiter.exec("BEGIN IMMEDIATE"));
    expect(thrown).toMatchObject({ code: "storage_busy" });
    const transaction = waiter.transaction(() => undefined);
    expect(thrownBy(() => transaction.immediate())).toMatchObject({ code: "storage_busy" });
    holder.exec("COMMIT");
  });

  it("names a database that may only be read", () => {
    const database = opened();
    database.exec("CREATE TABLE t (x)");
    database.pragma("query_only = ON");
    const thrown = thrownBy(() => database.exec("INSERT INTO t VALUES (1)"));
    expect(thrown).toMatchObject({ code: "storage_readonly" });
  });

  it("names a page that was damaged after the file was opened", () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, x); PRAGMA wal_autocheckpoint = 0");
    const insert = database.prepare("INSERT INTO t (x) VALUES (zeroblob(3000))");
    for (let row = 0; row < 200; row += 1) insert.run();
    database.pragma("wal_checkpoint(TRUNCATE)");
    const damaged = openSync(file, "r+");
    writeSync(damaged, Buffer.alloc(100 * 4096, 255), 0, 100 * 4096, 20 * 4096);
    const reader = opened(file);
    const thrown = thrownBy(() => reader.prepare("SELECT sum(length(x)) FROM t").get());
    expect(thrown).toMatchObject({ code: "storage_corrupt" });
    closeSync(damaged);
  });

  it("leaves a mistake of the program as it is", () => {
    const thrown = thrownBy(() => opened().exec("SELECT * FROM nothing"));
    expect(thrown).toMatchObject({ name: "SqliteError", code: "SQLITE_ERROR" });
    for (const any of [thrown, new TypeError("other")]) expect(storageError(any, "agent.db")).toBe(any);
  });
});

it("the modules of the connection load no package before a database is opened: whoever reads runs does not pay for the agent", () => {
  const source = join(import.meta.dirname, "../../src/storage/sqlite/migrations.ts");
  const { metafile } = buildSync({
    entryPoints: [source],
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "esm",
    packages: "external",
  });
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path));
  expect([...new Set(imports.filter((path) => !path.startsWith("node:")))]).toEqual([]);
});
