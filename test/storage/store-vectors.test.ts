import { InMemoryStore, type IndexConfig, type SearchItem } from "@langchain/langgraph-checkpoint";
import { Embeddings } from "@langchain/core/embeddings";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { opened } from "./support.ts";
import { attempts } from "../support/effort.ts";

/** How often each of a few letters occurs: texts of the same letters mean the same. */
class Letters extends Embeddings {
  asked: string[][] = [];

  constructor() {
    super({});
  }

  override async embedDocuments(texts: string[]): Promise<number[][]> {
    this.asked.push(texts);
    return texts.map((text) => ["a", "b", "c", "d"].map((letter) => text.split(letter).length - 1 + 0.01));
  }

  override async embedQuery(text: string): Promise<number[]> {
    return (await this.embedDocuments([text]))[0] ?? [];
  }
}

const index = (fields: string[] = ["text"], embeddings = new Letters()): IndexConfig => ({
  dims: 4,
  embeddings,
  fields,
});
const shown = (items: readonly SearchItem[]) =>
  items.map(({ key, score }) => [key, score === undefined ? undefined : Number(score.toFixed(4))]);

describe("a store with an embedding model", () => {
  it("finds what is most like the query first, what has no text last, and pages through all", async () => {
    const store = createStore(opened(), { index: index() });
    await store.put(["n"], "a", { text: "aaaa" });
    await store.put(["n"], "ab", { text: "aabb" });
    await store.put(["n"], "d", { text: "dddd" });
    await store.put(["n"], "none", { other: "aaaa" });
    await store.put(["n"], "left out", { text: "aaaa" }, false);
    await store.put(["m"], "elsewhere", { text: "aaaa" });
    const found = await store.search(["n"], { query: "a" });
    expect(found.map(({ key }) => key)).toEqual(["a", "ab", "d", "left out", "none"]);
    expect(found.map(({ score }) => score !== undefined)).toEqual([true, true, true, false, false]);
    expect(found[0]?.score).toBeGreaterThan(found[1]?.score ?? 1);
    const pages = await Promise.all(
      [0, 2, 4].map((offset) => store.search(["n"], { query: "a", limit: 2, offset })),
    );
    expect(pages.flat().map(({ key }) => key)).toEqual(found.map(({ key }) => key));
    const filtered = await store.search(["n"], { query: "a", filter: { text: { $ne: "aaaa" } }, limit: 2 });
    expect(filtered.map(({ key }) => key)).toEqual(["ab", "d"]);
  });

  it("forgets the vectors of what was replaced, deleted or has expired", async () => {
    const database = opened();
    const time = { now: 0 };
    const store = createStore(database, { index: index(), clock: () => time.now });
    await store.put(["n"], "k", { text: "aaaa" });
    await store.put(["n"], "k", { text: "dddd" });
    await store.put(["n"], "gone", { text: "aaaa" });
    await store.put(["n"], "short", { text: "aaaa" }, undefined, { ttl: 1 });
    await store.delete(["n"], "gone");
    time.now = 60_000;
    expect((await store.search(["n"], { query: "a" })).map(({ key }) => key)).toEqual(["k"]);
    await store.sweepExpiredItems();
    expect(database.prepare("SELECT count(*) FROM store_vectors").pluck().get()).toBe(1);
  });

  it("scores an item by the best of its fields, and embeds a text of a batch once", async () => {
    const embeddings = new Letters();
    const store = createStore(opened(), { index: index(["title", "parts[*].text"], embeddings) });
    await store.batch([
      { namespace: ["n"], key: "x", value: { title: "d", parts: [{ text: "b" }, { text: "a" }] } },
      { namespace: ["n"], key: "y", value: { title: "a" } },
      { namespace: ["n"], key: "z", value: { title: "c", other: "a" } },
    ]);
    expect(embeddings.asked).toEqual([["d", "b", "a", "c"]]);
    const [x, y, z] = await store.search(["n"], { query: "a" });
    expect([x?.key, y?.key, z?.key]).toEqual(["x", "y", "z"]);
    expect(x?.score).toBeCloseTo(1, 5);
    expect(y?.score).toBeCloseTo(1, 5);
  });

  it("takes a function for its model, and says when that gives vectors of another size", async () => {
    const letters = new Letters();
    const store = createStore(opened(), {
      index: { dims: 4, embed: (texts) => letters.embedDocuments(texts), fields: ["text"] },
    });
    await store.put(["n"], "k", { text: "ab" });
    expect((await store.search(["n"], { query: "ab" }))[0]?.score).toBeCloseTo(1, 5);
    const wrong = createStore(opened(), {
      index: { dims: 3, embed: (texts) => letters.embedDocuments(texts) },
    });
    await expect(wrong.put(["n"], "k", { text: "ab" })).rejects.toThrow("4 numbers instead of 3");
    expect(await wrong.get(["n"], "k")).toBeNull();
  });

  it("keeps vectors between connections, also beside a store without a model", async () => {
    const database = opened();
    await createStore(database, { index: index() }).put(["n"], "k", { text: "aaaa" });
    const words = createStore(database);
    expect((await words.search(["n"], { query: "aaaa" })).map(({ key }) => key)).toEqual(["k"]);
    expect(shown(await createStore(database, { index: index() }).search(["n"], { query: "d" }))).toEqual([
      ["k", expect.any(Number)],
    ]);
  });
});

const part = fc.constantFrom("x", "y", "z");
const namespace = fc.array(part, { minLength: 1, maxLength: 3 });
const key = fc.constantFrom("k1", "k2", "k3");
const value = fc.record(
  {
    text: fc.string({ unit: fc.constantFrom("a", "b", "c", "d", " "), minLength: 1, maxLength: 6 }),
    n: fc.integer({ min: 0, max: 3 }),
  },
  { requiredKeys: ["text"] },
);
const filter = fc.oneof(
  fc.record({ n: fc.integer({ min: 0, max: 3 }) }),
  fc
    .tuple(fc.constantFrom("$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), fc.integer({ min: 0, max: 3 }))
    .map(([operator, operand]) => ({ n: { [operator]: operand } })),
  fc.constant(undefined),
);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("put" as const), namespace, key, value }) },
  fc.record({ kind: fc.constant("delete" as const), namespace, key }),
  fc.record({ kind: fc.constant("get" as const), namespace, key }),
  fc.record({
    kind: fc.constant("search" as const),
    namespace: fc.array(part, { maxLength: 2 }),
    filter,
    query: fc.option(fc.constantFrom("a", "bd", "cab"), { nil: undefined }),
    limit: fc.integer({ min: 1, max: 4 }),
  }),
  fc.record({
    kind: fc.constant("namespaces" as const),
    prefix: fc.option(fc.array(fc.oneof(part, fc.constant("*")), { minLength: 1, maxLength: 2 }), {
      nil: undefined,
    }),
    suffix: fc.option(fc.array(fc.oneof(part, fc.constant("*")), { minLength: 1, maxLength: 2 }), {
      nil: undefined,
    }),
    maxDepth: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    limit: fc.integer({ min: 1, max: 4 }),
  }),
);

const plain = (
  items: readonly { namespace: string[]; key: string; value: object; score?: number | undefined }[],
) =>
  items
    .map((item) => [item.namespace.join("/"), item.key, item.value, item.score?.toFixed(4) ?? "none"])
    .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
const given = (options: object) =>
  Object.fromEntries(Object.entries(options).filter(([, one]) => one !== undefined));

async function paged<T>(
  limit: number,
  read: (page: { limit: number; offset: number }) => Promise<T[]>,
): Promise<T[]> {
  const all: T[] = [];
  for (;;) {
    const page = await read({ limit, offset: all.length });
    all.push(...page);
    if (page.length < limit) return all;
  }
}

it("the same operations have the same answers as in LangGraph's store in memory", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const memory = new InMemoryStore({ index: index() });
      const store = createStore(opened(), { index: index() });
      for (const one of steps) {
        if (one.kind === "put") {
          // LangGraph's keeps vectors of fields that are there no more: a new item has none.
          await memory.delete(one.namespace, one.key);
          await memory.put(one.namespace, one.key, one.value);
          await store.put(one.namespace, one.key, one.value);
        } else if (one.kind === "delete") {
          await memory.delete(one.namespace, one.key);
          await store.delete(one.namespace, one.key);
        } else if (one.kind === "get") {
          const expected = await memory.get(one.namespace, one.key);
          expect((await store.get(one.namespace, one.key))?.value).toEqual(expected?.value);
        } else if (one.kind === "search") {
          const options = given({ filter: one.filter, query: one.query, limit: 1000 });
          const found = await store.search(one.namespace, options);
          expect(plain(found)).toEqual(plain(await memory.search(one.namespace, options)));
          const pages = await paged(one.limit, (page) =>
            store.search(one.namespace, { ...options, ...page }),
          );
          expect(pages).toEqual(found);
          const scores = found.map(({ score }) => score ?? -1);
          expect(scores).toEqual(scores.toSorted((a, b) => b - a));
        } else {
          // LangGraph's lists namespaces that are empty again, too.
          const live = new Set(
            (await memory.search([], { limit: 1000 })).map((item) => item.namespace.join("/")),
          );
          const ends = given({ prefix: one.prefix, suffix: one.suffix });
          const listed = await memory.listNamespaces(ends);
          const expected = listed.map((path) => path.join("/")).filter((path) => live.has(path));
          const cut = expected.map((path) => path.split("/").slice(0, one.maxDepth).join("/"));
          const options = { ...ends, ...given({ maxDepth: one.maxDepth }) };
          const own = await paged(one.limit, (page) => store.listNamespaces({ ...options, ...page }));
          expect(own.map((path) => path.join("/")).toSorted()).toEqual([...new Set(cut)].toSorted());
        }
      }
    }),
    attempts(60),
  );
});
