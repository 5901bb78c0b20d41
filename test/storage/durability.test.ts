import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { GroupCommit, flushLog, withoutWaiting } from "../../src/storage/sqlite/commit.ts";
import { whenUnlocked } from "../../src/storage/sqlite/database.ts";
import { StorageError } from "../../src/core/errors.ts";
import { watchFlushes } from "../support/disk.ts";
import { opened, temporaryFolder } from "./support.ts";

function numbers() {
  const file = join(temporaryFolder(), "agent.db");
  const database = opened(file);
  database.exec("CREATE TABLE numbers (n INTEGER) STRICT");
  const insert = database.prepare("INSERT INTO numbers VALUES (?)");
  const count = database.prepare<[], number>("SELECT count(*) FROM numbers").pluck();
  return {
    file,
    log: `${file}-wal`,
    database,
    add: (n: number) => void insert.run(n),
    count: () => count.get(),
  };
}

it("what comes while the disk is busy shares the next flush", async () => {
  const { log, database, add, count } = numbers();
  let flushes = 0;
  await watchFlushes({ log }, () => (flushes += 1));
  const flushing = Array.from({ length: 50 }, (_, n) => {
    withoutWaiting(database, () => add(n));
    return flushLog(database);
  });
  await Promise.all(flushing);
  expect(count()).toBe(50);
  expect(flushes).toBe(2);
});

it("what throws is told to who asked for it, and nothing of it is kept", async () => {
  const { database, add, count } = numbers();
  const half = database.transaction(() => {
    add(1);
    throw new Error("broken");
  });
  await expect(whenUnlocked(database, () => half.immediate())).rejects.toThrow("broken");
  expect(count()).toBe(0);
  expect(database.pragma("synchronous", { simple: true })).toBe(2);
});

it("what comes together is committed together, without the work that throws", async () => {
  const { file, database, add, count } = numbers();
  const other = opened(file);
  const versions = (): number => Number(other.pragma("data_version", { simple: true }));
  const before = versions();
  const group = GroupCommit.of(database);
  const all = [1, 2, 3].map((n) =>
    group.run(() => {
      add(n);
      if (n === 2) throw new Error("broken");
      expect(versions()).toBe(before);
      return n;
    }),
  );
  await group.settled();
  expect(count()).toBe(2);
  const ends = await Promise.allSettled(all);
  expect(ends).toMatchObject([{ value: 1 }, { reason: { message: "broken" } }, { value: 3 }]);
  expect(versions()).not.toBe(before);
});

it("notes wait for the disk only with something else that does", async () => {
  const { database, add, count } = numbers();
  const group = GroupCommit.of(database);
  const flushes = (): number => Number(database.pragma("synchronous", { simple: true }));
  const noted = (): Promise<number> => group.note(() => (add(1), flushes()));
  const [NORMAL, FULL] = [1, 2];
  expect(await Promise.all([noted(), noted()])).toEqual([NORMAL, NORMAL]);
  expect(flushes()).toBe(FULL);
  expect(await Promise.all([noted(), group.run(flushes)])).toEqual([FULL, FULL]);
  expect(count()).toBe(3);
});

it("what comes together is not kept when its file fails", async () => {
  const { database, add, count } = numbers();
  const group = GroupCommit.of(database);
  const all = [1, 2].map((n) =>
    group.run(() => {
      add(n);
      if (n === 2) throw new StorageError("storage_io", "The disk is broken.");
    }),
  );
  const failed = { reason: { code: "storage_io" } };
  expect(await Promise.allSettled(all)).toMatchObject([failed, failed]);
  expect(count()).toBe(0);
});

it("after the disk has failed, nothing is acknowledged before the file itself has everything", async () => {
  const { log, database, add } = numbers();
  let fails = true;
  await watchFlushes({ log }, () => {
    if (fails) throw new Error("EIO");
  });
  withoutWaiting(database, () => add(1));
  const first = flushLog(database);
  await expect(first).rejects.toThrow(StorageError);
  await expect(first).rejects.toThrow("The disk did not accept writes to agent.db.");
  fails = false;
  // A reader keeps the log from being written into the file.
  const reader = opened(database.name);
  reader.exec("BEGIN");
  reader.prepare("SELECT * FROM numbers").all();
  add(2);
  await expect(flushLog(database)).rejects.toThrow(StorageError);
  reader.exec("COMMIT");
  withoutWaiting(database, () => add(3));
  await flushLog(database);
  const [state] = database.pragma("wal_checkpoint(NOOP)") as [{ log: number }]; // what it answers
  expect(state.log).toBe(0);
});

it("a database that is in memory, or has another journal, commits as ever", async () => {
  for (const mode of ["memory", "delete"]) {
    const database = mode === "memory" ? opened() : opened(join(temporaryFolder(), "agent.db"));
    database.pragma(`journal_mode = ${mode}`);
    database.exec("CREATE TABLE numbers (n INTEGER) STRICT");
    const level = await whenUnlocked(database, () => {
      database.exec("INSERT INTO numbers VALUES (1)");
      return database.pragma("synchronous", { simple: true });
    });
    expect(level).toBe(2);
  }
});

it("what is closed before the disk has it is in the file", async () => {
  const { file, log, database, add } = numbers();
  withoutWaiting(database, () => add(1));
  const stored = flushLog(database);
  database.close();
  await stored;
  expect(existsSync(log)).toBe(false);
  expect(opened(file).prepare("SELECT n FROM numbers").all()).toEqual([{ n: 1 }]);
});
