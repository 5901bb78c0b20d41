import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { LONG } from "../../src/storage/sqlite/memories/parts.ts";
import { opened, temporaryFolder } from "./support.ts";
import { attempts } from "../support/effort.ts";

function openStore(file?: string) {
  const database = opened(file);
  const store = createStore(database);
  const count = (table: string) =>
    database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();
  return { database, store, parts: () => [count("store_values"), count("store_parts")] };
}

const long = (letter: string, length = LONG) => letter.repeat(length);
const HERE = ["memories"];

/** Texts around the lengths at which they are stored apart and cut, whole characters or halves of them. */
const text = fc
  .record({
    unit: fc.oneof(fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", '"\n'), fc.string({ minLength: 1 })),
    length: fc.oneof(
      fc.integer({ min: 0, max: 20 }),
      fc.integer({ min: LONG - 3, max: LONG + 3 }),
      fc.integer({ min: 2 * LONG - 3, max: 2 * LONG + 3 }),
      fc.integer({ min: 5 * LONG, max: 6 * LONG }),
    ),
  })
  .map(({ unit, length }) => unit.repeat(Math.ceil(length / unit.length)).slice(0, length));

it("any value comes back as it was, whatever is long in it or looks like a reference", async () => {
  const lookalike = fc.tuple(fc.nat(9), fc.nat(9)).map(([a, b]) => `deepagent-parts:${a}-${b}`);
  const leaf = fc.oneof({ weight: 3, arbitrary: text }, lookalike, fc.jsonValue({ maxDepth: 1 }));
  const value = fc.dictionary(
    fc.string(),
    fc.oneof(leaf, fc.array(leaf, { maxLength: 3 }), fc.dictionary(fc.string(), leaf, { maxKeys: 3 })),
    { maxKeys: 4 },
  );
  const { store } = openStore();
  await fc.assert(
    fc.asyncProperty(value, async (written) => {
      // As JSON has it: no `-0`, and `__proto__` is a key like any other.
      const expected: unknown = JSON.parse(JSON.stringify(written));
      await store.put(HERE, "a", written);
      expect((await store.get(HERE, "a"))?.value).toEqual(expected);
      expect((await store.search(HERE))[0]?.value).toEqual(expected);
    }),
    attempts(60),
  );
});

it("what a long memory was goes when it is replaced, deleted or expired, and with nothing else", async () => {
  const { store, parts } = openStore();
  await store.put(HERE, "kept", { content: long("k", 5 * LONG), notes: [long("n")] });
  expect(parts()).toEqual([1, 4]);
  for (const value of [{ content: long("a") }, { content: long("b", 3 * LONG) }, { content: "short" }]) {
    await store.put(HERE, "changed", value);
    expect((await store.get(HERE, "changed"))?.value).toEqual(value);
  }
  expect(parts()).toEqual([1, 4]);
  await store.put(HERE, "deleted", { content: long("d") });
  await store.delete(HERE, "deleted");
  await store.put(HERE, "expired", { content: long("e") }, undefined, { ttl: 0 });
  await store.sweepExpiredItems();
  await store.put(HERE, "next", { content: "short" });
  expect(parts()).toEqual([1, 4]);
  expect((await store.get(HERE, "kept"))?.value).toEqual({
    content: long("k", 5 * LONG),
    notes: [long("n")],
  });
});

it("the event loop turns while a long memory is written and read, and others see it whole or not at all", async () => {
  const { store } = openStore();
  await store.put(HERE, "a", { content: "before" });
  const content = long("x", 40 * LONG);
  let turns = 0;
  const during = async (work: Promise<unknown>) => {
    const over = new AbortController();
    const done = work.finally(() => over.abort());
    for (turns = 0; !over.signal.aborted; turns += 1) await nextTurn();
    await done;
  };
  const put = store.put(HERE, "a", { content });
  await nextTurn();
  expect((await store.get(HERE, "a"))?.value).toEqual({ content: "before" });
  await during(put);
  expect(turns).toBeGreaterThan(5);
  await during(store.get(HERE, "a").then((item) => expect(item?.value).toEqual({ content })));
  expect(turns).toBeGreaterThan(5);
});

it("who reads while a memory is written anew gets one of the two", async () => {
  const { store } = openStore();
  const [first, second] = [long("1", 20 * LONG), long("2", 20 * LONG)];
  await store.put(HERE, "a", { content: first });
  const reads = Array.from({ length: 5 }, () => store.get(HERE, "a"));
  await store.put(HERE, "a", { content: second });
  for (const item of await Promise.all(reads)) expect([first, second]).toContain(item?.value["content"]);
  expect((await store.get(HERE, "a"))?.value).toEqual({ content: second });
});

it("of two who write the same version one wins, and the parts of the other go", async () => {
  const { store, parts } = openStore();
  const [one, other] = await Promise.all([
    store.putIf(HERE, "a", { content: long("1", 6 * LONG) }, null),
    store.putIf(HERE, "a", { content: long("2", 6 * LONG) }, null),
  ]);
  expect([one, other].filter((version) => version !== undefined)).toHaveLength(1);
  const letter = one === undefined ? "2" : "1";
  expect((await store.getVersioned(HERE, "a"))?.value).toEqual({ content: long(letter, 6 * LONG) });
  expect(parts()).toEqual([1, 3]);
});

it("filters see long texts whole, and searches find their words", async () => {
  const { store } = openStore();
  const content = `needle ${long("hay ", 2 * LONG)} end`;
  await store.put(HERE, "a", { content, kind: "long" });
  await store.put(HERE, "b", { content: "hay", kind: "short" });
  const keys = (items: { key: string }[]) => items.map(({ key }) => key);
  expect(keys(await store.search(HERE, { query: "needle" }))).toEqual(["a"]);
  expect(keys(await store.search(HERE, { filter: { content } }))).toEqual(["a"]);
  expect(keys(await store.search(HERE, { filter: { kind: "long" }, query: "hay" }))).toEqual(["a"]);
  const [hit] = await store.searchText(HERE, "needle", 1);
  expect(hit?.snippet).toMatch(/^needle hay hay/);
});

it("what a killed process had stored of a memory goes after an hour, and a part that is lost is told", async () => {
  const { database, store, parts } = openStore(join(temporaryFolder(), "agent.db"));
  database.exec(`INSERT INTO store_values (unused_since) VALUES (${Date.now() - 3_700_000}), (${Date.now()});
    INSERT INTO store_parts VALUES (1, 0, '"x"'), (2, 0, '"y"')`);
  await store.put(HERE, "a", { content: long("a") });
  expect(parts()).toEqual([2, 2]);
  database.exec("DELETE FROM store_parts");
  await expect(store.get(HERE, "a")).rejects.toThrow("The database agent.db lacks a part of a memory.");
});
