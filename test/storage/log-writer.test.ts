import { existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Database, whenUnlocked } from "../../src/storage/sqlite/database.ts";
import { writeLogInThread } from "../../src/storage/sqlite/commit.ts";
import { opened, temporaryFolder } from "./support.ts";

const stateOf = (database: Database): unknown => database.pragma("wal_checkpoint(NOOP)");

function fill(database: Database, pages: number): void {
  database.exec("CREATE TABLE IF NOT EXISTS pages (content BLOB)");
  const insert = database.prepare("INSERT INTO pages VALUES (randomblob(4096))");
  for (let page = 0; page < pages; page += 1) insert.run();
}

it("a long log is written into the file by a thread, and a short one is left", async () => {
  const database = opened(join(temporaryFolder(), "agent.db"), { synchronous: "NORMAL" });
  const errors: unknown[] = [];
  const end = writeLogInThread(database, (error) => errors.push(error));
  fill(database, 1500);
  // No commit did it.
  expect(stateOf(database)).toMatchObject([{ checkpointed: 0 }]);
  await expect.poll(() => stateOf(database)).not.toMatchObject([{ checkpointed: 0 }]);
  await end();
  expect(errors).toEqual([]);
  expect(database.prepare("SELECT count(*) FROM pages").pluck().get()).toBe(1500);
});

it("who writes without end waits for the thread, and the log begins anew", async () => {
  const database = opened(join(temporaryFolder(), "agent.db"), { synchronous: "NORMAL" });
  const errors: unknown[] = [];
  const end = writeLogInThread(database, (error) => errors.push(error));
  fill(database, 9000);
  const insert = database.prepare("INSERT INTO pages VALUES (randomblob(4096))");
  const pages = (): number => (stateOf(database) as [{ log: number }])[0].log; // what it answers
  let longest = 0;
  // A write in every turn of the event loop: the thread alone would never find all of the log in the file.
  while (pages() > 1000) {
    longest = Math.max(longest, pages());
    await whenUnlocked(database, () => insert.run());
    await nextTurn();
  }
  expect(longest).toBeGreaterThan(8000);
  expect(longest).toBeLessThan(64_000);
  await end();
  expect(errors).toEqual([]);
});

it("without the thread, commits do it again", async () => {
  const file = join(temporaryFolder(), "agent.db");
  const database = opened(file, { synchronous: "NORMAL" });
  fill(database, 10);
  const errors: unknown[] = [];
  const end = writeLogInThread(database, (error) => {
    errors.push(error);
    // It is back: only the thread did not find it.
    renameSync(`${file}.away`, file);
  });
  fill(database, 1500);
  renameSync(file, `${file}.away`);
  await expect.poll(() => existsSync(file)).toBe(true);
  await end();
  expect(errors).toHaveLength(1);
  expect(database.pragma("wal_autocheckpoint", { simple: true })).toBe(1000);
});

it("is nothing for a database in memory", async () => {
  await writeLogInThread(opened(), () => undefined)();
});
