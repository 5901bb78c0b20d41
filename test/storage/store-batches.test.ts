import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { createStore, type SqliteStore } from "../../src/storage/sqlite/memories/store.ts";
import { opened, temporaryFolder } from "./support.ts";

const KEYS = Array.from({ length: 30 }, (_, index) => `key ${index}`);
const puts = (value: string, keys = KEYS) =>
  keys.map((key) => ({ namespace: ["n"], key, value: { content: `${value} ${key}` } }));
const removals = KEYS.map((key) => ({ namespace: ["n"], key, value: null }));

/** The first word of each item, by one read of all and by a read of each; "none" where there is none. */
async function wordsOf(store: SqliteStore): Promise<string[]> {
  const words = new Set<string>();
  const listed = await store.search(["n"], { limit: 32 });
  for (const { value } of listed) words.add(String(value["content"]).split(" ")[0] ?? "");
  if (listed.length < KEYS.length) words.add(listed.length === 0 ? "none" : "some");
  return [...words];
}

/** Looks in every turn of the event loop until `work` is done. */
async function meanwhile(work: Promise<unknown>, look: () => Promise<void>): Promise<void> {
  const over = new AbortController();
  const watched = work.finally(() => over.abort());
  while (!over.signal.aborted) {
    await look();
    await nextTurn();
  }
  await watched;
}

/** How many items each transaction of the connection writes. */
function writesOf(database: Database): number[] {
  const writes: number[] = [];
  const [prepare, transaction] = [database.prepare.bind(database), database.transaction.bind(database)];
  Object.assign(database, {
    prepare: (sql: string) => {
      const statement = prepare(sql);
      const get = statement.get.bind(statement);
      const counted = (...args: unknown[]): unknown => {
        writes.push((writes.pop() ?? 0) + 1);
        return get(...args);
      };
      return sql.includes("INSERT INTO store_items") ? Object.assign(statement, { get: counted }) : statement;
    },
    transaction: (work: (...args: unknown[]) => unknown) =>
      transaction((...args: unknown[]) => (writes.push(0), work(...args))),
  });
  return writes;
}

it("is written some in each turn, and other connections see all of it or nothing", async () => {
  const file = join(temporaryFolder(), "agent.db");
  const database = opened(file);
  createStore(database);
  const writes = writesOf(database);
  const store = createStore(database);
  const other = createStore(opened(file));
  const seen: string[] = [];
  const look = async (): Promise<void> => {
    const words = [await wordsOf(other), await wordsOf(store)];
    seen.push(...words.map((one) => one.join(" and ")));
  };
  await meanwhile(store.batch(puts("first")), look);
  await meanwhile(store.batch(puts("second")), look);
  await meanwhile(store.batch(removals), look);
  expect([...new Set(seen)].toSorted()).toEqual(["first", "none", "second"]);
  expect(seen.length).toBeGreaterThan(10);
  // The other one put some of them, as it found them.
  expect(Math.max(...writes)).toBeLessThanOrEqual(4);
  expect(database.prepare("SELECT count(*) FROM store_batches").pluck().get()).toBe(0);
});

it("a process that is killed at any turn leaves all of it or nothing, and all once it is acknowledged", async () => {
  const folder = temporaryFolder();
  const file = join(folder, "agent.db");
  const store = createStore(opened(file));
  await store.batch(puts("first"));
  let copies = 0;
  const copy = (): SqliteStore => {
    copies += 1;
    const left = join(folder, `left-${copies}.db`);
    for (const part of ["", "-wal"]) if (existsSync(file + part)) copyFileSync(file + part, left + part);
    return createStore(opened(left));
  };
  const seen = new Set<string>();
  await meanwhile(
    store.batch(puts("second")),
    async () => void seen.add((await wordsOf(copy())).join(" and ")),
  );
  expect([...seen].toSorted()).toEqual(["first", "second"]);
  expect(await wordsOf(copy())).toEqual(["second"]);
  expect((await copy().search(["n"], { query: "second", limit: 50 })).length).toBe(KEYS.length);
  expect(await copy().search(["n"], { query: "first", limit: 50 })).toEqual([]);
});

it("writes that are asked for later count, whoever asks", async () => {
  const file = join(temporaryFolder(), "agent.db");
  const [store, other] = [createStore(opened(file)), createStore(opened(file))];
  await store.batch(puts("first"));
  const written = store.batch(puts("second"));
  // It is whole, and hardly begun to be put.
  while ((await other.get(["n"], "key 29"))?.value["content"] !== "second key 29") await nextTurn();
  await other.put(["n"], "key 7", { content: "third" });
  await written;
  expect((await store.get(["n"], "key 7"))?.value).toEqual({ content: "third" });
  const version = (await store.getVersioned(["n"], "key 8"))?.version ?? null;
  const again = store.batch(puts("fourth"));
  expect(await other.putIf(["n"], "key 8", { content: "late" }, `${version}x`)).toBeUndefined();
  await again;
  expect(await wordsOf(other)).toEqual(["fourth"]);
});

it("keeps long values, lifetimes, vectors and deletions", async () => {
  let now = 0;
  const embed = async (texts: string[]): Promise<number[][]> => texts.map((one) => [one.length, 1]);
  const store = createStore(opened(), { clock: () => now, index: { dims: 2, embed } });
  const long = "long ".repeat(100_000);
  await store.put(["n"], "gone", { content: "there" });
  await store.batch([
    ...puts("first"),
    { namespace: ["n"], key: "long", value: { content: long } },
    { namespace: ["n"], key: "gone", value: null },
    { namespace: ["n"], key: "short-lived", value: { content: "x" }, ttl: 1, index: false as const },
  ]);
  expect((await store.get(["n"], "long"))?.value["content"]).toBe(long);
  expect(await store.get(["n"], "gone")).toBeNull();
  const [nearest] = await store.search(["n"], { query: "x".repeat(500_000), limit: 1 });
  expect(nearest).toMatchObject({ key: "long" });
  now = 30_000;
  expect(await store.get(["n"], "short-lived", { refreshTtl: false })).not.toBeNull();
  now = 60_000;
  expect(await store.get(["n"], "short-lived")).toBeNull();
});

it("what was prepared by a process that ended is deleted an hour later, and not before", async () => {
  const database = opened();
  const store = createStore(database);
  const begin = database.prepare("INSERT INTO store_batches (begun_at) VALUES (?)");
  const add = database.prepare("INSERT INTO store_batch_puts (batch, number, put) VALUES (?, ?, '{}')");
  const hourAgo = Date.now() - 3_600_000;
  for (const begun of [hourAgo, hourAgo + 60_000]) {
    const { lastInsertRowid } = begin.run(begun);
    for (let number = 0; number < 10; number += 1) add.run(lastInsertRowid, number);
  }
  await store.put(["n"], "key", { content: "x" });
  expect(database.prepare("SELECT id FROM store_batches").pluck().all()).toEqual([2]);
  expect(database.prepare("SELECT count(*) FROM store_batch_puts").pluck().get()).toBe(10);
});

it("a listing of any length is read some at a time", async () => {
  const store = createStore(opened());
  const keys = Array.from({ length: 100 }, (_, index) => String(index).padStart(3, "0"));
  await store.batch(puts("first", keys));
  const read = await store.itemsBetween(["n"], { from: "001", to: "098", limit: 90 });
  expect(read.map(({ key }) => key)).toEqual(keys.slice(1, 91));
  const listed = await store.search(["n"], { limit: 70, offset: 20 });
  expect(listed.map(({ key }) => key)).toEqual(keys.slice(20, 90));
  expect(await store.search(["n"], { limit: 100, offset: 99 })).toHaveLength(1);
});
