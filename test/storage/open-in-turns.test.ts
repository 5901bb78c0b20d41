import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { openDatabase, openDatabaseInTurns } from "../../src/storage/sqlite/database.ts";
import { opened, temporaryFolder } from "./support.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

describe("openDatabaseInTurns", () => {
  it("waits for a lock of another process, and others have their turns meanwhile", async () => {
    const file = join(temporaryFolder(), "agent.db");
    openDatabase(file).close();
    const holder = openConnection(file);
    onTestFinished(() => void holder.close());
    // Readers are kept out, too.
    holder.pragma("locking_mode = EXCLUSIVE");
    holder.exec("CREATE TABLE kept (x)");
    let isOpen = false;
    const opening = openDatabaseInTurns(file).finally(() => (isOpen = true));
    for (let turn = 0; turn < 100; turn += 1) await nextTurn();
    expect(isOpen).toBe(false);
    holder.close();
    const database = await opening;
    onTestFinished(() => void database.close());
    expect(database.prepare("SELECT * FROM kept").all()).toEqual([]);
    expect(database.pragma("journal_mode", { simple: true })).toBe("wal");
  });

  it("finds what a long log has that a killed process left", async () => {
    const folder = temporaryFolder();
    const [file, left] = [join(folder, "agent.db"), join(folder, "left.db")];
    const writer = opened(file, { synchronous: "NORMAL" });
    writer.pragma("wal_autocheckpoint = 0");
    writer.exec("CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(3000000))");
    for (const part of ["", "-wal"]) copyFileSync(`${file}${part}`, `${left}${part}`);
    const database = await openDatabaseInTurns(left);
    onTestFinished(() => void database.close());
    expect(database.prepare("SELECT length(x) FROM t").pluck().get()).toBe(3_000_000);
  });

  it("says what is wrong with a file as openDatabase does, also beside a long log", async () => {
    const file = join(temporaryFolder(), "agent.db");
    writeFileSync(file, "no database ".repeat(1000));
    writeFileSync(`${file}-wal`, "no log ".repeat(300_000));
    await expect(openDatabaseInTurns(file)).rejects.toMatchObject({ code: "storage_not_a_database" });
  });
});
