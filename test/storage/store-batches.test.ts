import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
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

it("is seen whole or not at all by other connections", async () => {
  const file = join(temporaryFolder(), "agent.db");
  const store = createStore(opened(file));
  const other = createStore(opened(file));
  const seen: string[] = [];
  const look = async (): Promise<void> => {
    const words = [await wordsOf(other), await wordsOf(store)];
    seen.push(...words.map((one) => one.join(" and ")));
  };
  await meanwhile(store.batch(puts("first")), look);
  await meanwhile(store.batch(puts("second")), look);
  await meanwhile(store.batch(removals), look);
  await look();
  expect([...new Set(seen)].toSorted()).toEqual(["first", "none", "second"]);
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
  for (const word of seen) expect(["first", "second"]).toContain(word);
  expect(await wordsOf(copy())).toEqual(["second"]);
  expect((await copy().search(["n"], { query: "second", limit: 50 })).length).toBe(KEYS.length);
  expect(await copy().search(["n"], { query: "first", limit: 50 })).toEqual([]);
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
