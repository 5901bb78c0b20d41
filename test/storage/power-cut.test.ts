import { copyFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { withoutWaiting } from "../../src/storage/sqlite/commit.ts";
import { opened, temporaryFolder } from "./support.ts";
import { attempts } from "../support/effort.ts";

/** What a disk may hold of a file's end after a power cut: less of it, or something else. */
interface Damage {
  kept: number;
  /** Bytes after those kept: what the disk made of blocks it had not written. */
  garbage: Uint8Array;
}

const damage: fc.Arbitrary<Damage> = fc.record({
  // 0: all that was written later is gone; 1: nothing is.
  kept: fc.double({ min: 0, max: 1, noNaN: true }),
  garbage: fc.oneof(
    fc.constant(new Uint8Array()),
    fc.uint8Array({ minLength: 1, maxLength: 9000 }),
    fc.integer({ min: 1, max: 9000 }).map((length) => new Uint8Array(length)),
  ),
});

/** A commit of this many rows, waiting for the disk or not. */
const commit = fc.record({ rows: fc.integer({ min: 1, max: 40 }), waits: fc.boolean() });

/** As a power cut leaves the files: all that was synced, and any part of what was not. */
function afterPowerCut(file: string, synced: number, { kept, garbage }: Damage): string {
  const copy = join(temporaryFolder(), "agent.db");
  copyFileSync(file, copy);
  const log = readFileSync(`${file}-wal`);
  const length = synced + Math.floor((log.length - synced) * kept);
  writeFileSync(`${copy}-wal`, Buffer.concat([log.subarray(0, length), garbage]));
  return copy;
}

describe("after a power cut", () => {
  it("everything is there that a commit waited for, in order, and the file is sound", () => {
    fc.assert(
      fc.property(fc.array(commit, { minLength: 1, maxLength: 12 }), damage, (commits, cut) => {
        const file = join(temporaryFolder(), "agent.db");
        const database = opened(file);
        // A checkpoint of SQLite's would move what was synced into the file, and hide what is tested.
        database.exec(
          "PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (id INTEGER PRIMARY KEY, x BLOB) STRICT",
        );
        const insert = database.prepare("INSERT INTO t (x) VALUES (zeroblob(700))");
        const sizeOfLog = () => statSync(`${file}-wal`).size;
        let [rows, acknowledged, synced] = [0, 0, sizeOfLog()];
        for (const { rows: more, waits } of commits) {
          const write = database.transaction(() => {
            for (let row = 0; row < more; row += 1) insert.run();
          });
          if (waits) write();
          else withoutWaiting(database, write);
          rows += more;
          if (waits) [acknowledged, synced] = [rows, sizeOfLog()];
        }
        const copy = afterPowerCut(file, synced, cut);
        const found = openDatabase(copy);
        const ids = found.prepare<[], number>("SELECT id FROM t ORDER BY id").pluck().all();
        expect(ids.length).toBeGreaterThanOrEqual(acknowledged);
        expect(ids).toEqual(ids.map((_, index) => index + 1));
        // Whole commits only.
        const ends = commits.map((_, index) =>
          commits.slice(0, index + 1).reduce((sum, one) => sum + one.rows, 0),
        );
        expect([0, ...ends]).toContain(ids.length);
        expect(integrityProblems(found)).toEqual([]);
        found.exec("INSERT INTO t (x) VALUES (zeroblob(1))");
        found.close();
        database.close();
      }),
      attempts(60),
    );
  });

  it("checkpoints are there that were synced before something was told that relies on them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 0, max: 6 }),
        damage,
        async (before, after, cut) => {
          const file = join(temporaryFolder(), "agent.db");
          const database = opened(file, { synchronous: "NORMAL" });
          const checkpointer = createCheckpointer(database);
          database.pragma("wal_autocheckpoint = 0");
          const put = async (number: number) => {
            const id = `1f0e5e16-32f1-6bb0-8000-00000000000${number.toString(16)}`;
            await checkpointer.put(
              { configurable: { thread_id: "t" } },
              { v: 4, id, ts: "", channel_values: { n: number }, channel_versions: {}, versions_seen: {} },
              { source: "loop", step: number, parents: {} },
            );
          };
          for (let number = 1; number <= before; number += 1) await put(number);
          await checkpointer.sync();
          const synced = statSync(`${file}-wal`).size;
          for (let number = before + 1; number <= before + after; number += 1) await put(number);
          const copy = afterPowerCut(file, synced, cut);
          const found = openDatabase(copy, { synchronous: "NORMAL" });
          const tuple = await createCheckpointer(found).getTuple({ configurable: { thread_id: "t" } });
          expect(tuple?.metadata?.step).toBeGreaterThanOrEqual(before);
          expect(integrityProblems(found)).toEqual([]);
          found.close();
          database.close();
        },
      ),
      attempts(25),
    );
  });

  it("a log that was lost whole leaves the file as it was at its last checkpoint", () => {
    const file = join(temporaryFolder(), "agent.db");
    const database = opened(file);
    database.exec("CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    database.pragma("wal_checkpoint(TRUNCATE)");
    database.exec("INSERT INTO t VALUES (2)");
    const copy = join(temporaryFolder(), "agent.db");
    copyFileSync(file, copy);
    expect(existsSync(`${copy}-wal`)).toBe(false);
    const found = opened(copy);
    expect(found.prepare("SELECT x FROM t").pluck().all()).toEqual([1]);
    expect(integrityProblems(found)).toEqual([]);
  });
});

it("a commit that is acknowledged waits for the disk on every connection that is not told otherwise", () => {
  const level = (database: ReturnType<typeof opened>) => database.pragma("synchronous", { simple: true });
  const journal = (database: ReturnType<typeof opened>) => database.pragma("journal_mode", { simple: true });
  const file = join(temporaryFolder(), "agent.db");
  const [first, second] = [opened(file), opened(file)];
  expect([level(first), level(second), journal(first)]).toEqual([2, 2, "wal"]);
  const within = withoutWaiting(first, () => level(first));
  expect([within, level(first), level(second)]).toEqual([1, 2, 2]);
  expect(() =>
    withoutWaiting(first, () => {
      throw new Error("x");
    }),
  ).toThrow("x");
  expect(level(first)).toBe(2);
});
