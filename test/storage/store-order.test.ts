import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createStore, type SqliteStore } from "../../src/storage/sqlite/memories/store.ts";
import type { VectorIndexConfig } from "../../src/storage/sqlite/memories/vectors.ts";
import { opened } from "./support.ts";
import { attempts } from "../support/effort.ts";

const HERE = ["memories"];
const KEYS = ["a", "b", "c"];

/** The characters of a text; null deletes the item. */
const size = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 20 }), fc.constant(300_000));
const write = fc.record({ key: fc.constantFrom(...KEYS), size });
/** Some at once or in one batch, none of them awaited. */
const step = fc.record({
  writes: fc.array(write, { minLength: 1, maxLength: 4 }),
  how: fc.constantFrom("one by one", "in one batch", "only if new"),
  turns: fc.nat(3),
});

/** Answers after a number of turns that has nothing to do with the order of questions. */
const slowIndex = (): VectorIndexConfig => ({
  dims: 1,
  embed: async (texts) => {
    const turns = texts.join("").length % 5;
    for (let turn = 0; turn < turns; turn += 1) await nextTurn();
    return texts.map(() => [1]);
  },
});

const contentOf = (size: number, mark: number): string => `${mark} ${"x".repeat(size)}`.slice(0, size);

describe.each([
  ["", undefined],
  [" with an index", slowIndex],
])("a store%s", (_name, index) => {
  const open = () => createStore(opened(), index === undefined ? {} : { index: index() });
  const final = async (store: SqliteStore) =>
    Object.fromEntries((await store.search(HERE)).map(({ key, value }) => [key, String(value["content"])]));

  it("keeps the last of writes that nobody awaits", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const store = open();
        const [wanted, pending]: [Map<string, string>, Promise<unknown>[]] = [new Map(), []];
        let mark = 0;
        for (const { writes, how, turns } of steps) {
          const puts = writes.map(({ key, size: length }) => {
            mark += 1;
            const content = length === null ? null : contentOf(length, mark);
            if (how === "only if new" && content !== null) {
              if (!wanted.has(key)) wanted.set(key, content);
            } else if (content === null) wanted.delete(key);
            else wanted.set(key, content);
            return { namespace: HERE, key, value: content === null ? null : { content } };
          });
          if (how === "in one batch") pending.push(store.batch(puts));
          for (const { key, value } of how === "in one batch" ? [] : puts) {
            if (value === null) pending.push(store.delete(HERE, key));
            else if (how === "only if new") pending.push(store.putIf(HERE, key, value, null));
            else pending.push(store.put(HERE, key, value));
          }
          for (let turn = 0; turn < turns; turn += 1) await nextTurn();
        }
        await Promise.all(pending);
        expect(await final(store)).toEqual(Object.fromEntries(wanted));
      }),
      attempts(60),
    );
  });
});

it("a write that fails stands in nobody's way", async () => {
  let isDown = true;
  const embed = async (texts: string[]): Promise<number[][]> => {
    const fails = isDown;
    isDown = false;
    await nextTurn();
    if (fails) throw new Error("the embedding model is down");
    return texts.map(() => [1]);
  };
  const store = createStore(opened(), { index: { dims: 1, embed } });
  const [failed, stored] = await Promise.allSettled([
    store.put(HERE, "a", { content: "first" }),
    store.put(HERE, "a", { content: "second" }),
  ]);
  expect([failed.status, stored.status]).toEqual(["rejected", "fulfilled"]);
  expect((await store.get(HERE, "a"))?.value).toEqual({ content: "second" });
});
