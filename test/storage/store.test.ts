import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createStore, type SqliteStore } from "../../src/storage/sqlite/memories/store.ts";
import { encodeNamespace } from "../../src/storage/memories/namespaces.ts";
import { opened, temporaryFolder } from "./support.ts";
import { attempts } from "../support/effort.ts";

const file = (content: string) => ({ content, mimeType: "text/plain", created_at: "", modified_at: "" });
const keysOf = (items: readonly { key: string }[]) => items.map(({ key }) => key);

describe("SqliteStore", () => {
  it("keeps items and their index across connections", async () => {
    const path = join(temporaryFolder(), "agent.db");
    const first = opened(path);
    await createStore(first).put(["memories"], "/a.md", file("the harbour at night"));
    first.close();
    const store = createStore(opened(path));
    expect((await store.get(["memories"], "/a.md"))?.value).toEqual(file("the harbour at night"));
    expect(keysOf(await store.searchText(["memories"], "harbour", 5))).toEqual(["/a.md"]);
  });

  it("takes its times from the clock", async () => {
    let now = 1000;
    const store = createStore(opened(), { clock: () => now });
    await store.put(["a"], "k", {});
    now = 2000;
    await store.put(["a"], "k", {});
    expect(await store.get(["a"], "k")).toMatchObject({
      createdAt: new Date(1000),
      updatedAt: new Date(2000),
    });
  });

  it("lists by namespace and key, in one order on every page", async () => {
    const store = createStore(opened());
    const keys = Array.from({ length: 700 }, (_, index) => `k${String(index * 7919).slice(-4)}-${index}`);
    await store.batch(keys.map((key) => ({ namespace: ["a", key.slice(-1)], key, value: {} })));
    const listed = await store.search([], { limit: 1000 });
    expect(listed).toHaveLength(700);
    const order = listed.map(({ namespace, key }) => `${namespace[1]} ${key}`);
    expect(order).toEqual(order.toSorted());
    expect(keysOf(await store.search([], { limit: 1000, filter: { absent: { $ne: 1 } } }))).toEqual(
      keysOf(listed),
    );
    expect(keysOf(await store.search([], { limit: 5, offset: 600, filter: {} }))).toEqual(
      keysOf(listed).slice(600, 605),
    );
  });

  it("takes the parts of a namespace whole, their case and all their characters as they are", async () => {
    const store = createStore(opened());
    const others = ["User", "us%", "us_r", "us*", "user\n", "us.er"];
    const all = [["user", "a"], ...["user", "user1", ...others].map((label) => [label])];
    for (const namespace of all) await store.put(namespace, "k", { namespace });
    const below = async (...prefix: string[]) =>
      (await store.search(prefix)).map(({ namespace }) => namespace);
    expect(await below("user")).toEqual([["user"], ["user", "a"]]);
    for (const label of others) expect(await below(label)).toEqual([[label]]);
    expect(await below()).toHaveLength(all.length);
    expect(await store.listNamespaces({ prefix: ["user"] })).toEqual([["user"], ["user", "a"]]);
    expect(await store.listNamespaces({ suffix: ["a"] })).toEqual([["user", "a"]]);
    expect(await store.listNamespaces({ prefix: ["us%"] })).toEqual([["us%"]]);
    expect(await store.listNamespaces({ maxDepth: 1, limit: 2, offset: 1 })).toHaveLength(2);
  });

  it("refuses keys that are not text", async () => {
    await expect(createStore(opened()).put(["a"], "half \ud83d", {})).rejects.toThrow("well-formed Unicode");
  });

  it("touches one row for one item, whatever else the namespace holds", () => {
    const database = opened();
    createStore(database);
    const plan = (sql: string) => database.prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all();
    for (const sql of [
      "SELECT value FROM store_items WHERE namespace = 'a' AND key = 'b'",
      "DELETE FROM store_items WHERE namespace = 'a' AND key = 'b'",
      "SELECT id FROM store_items WHERE (namespace, key) > ('a', 'b') AND namespace < 'c' ORDER BY namespace, key",
    ]) {
      const [{ detail } = { detail: "" }] = plan(sql);
      expect(detail).toMatch(/^SEARCH store_items USING .*INDEX/);
    }
  });
});

describe("namespaces of any text", () => {
  const part = fc.oneof(
    fc.constantFrom(...`a a.b % _ " ' , \\ * "," a:b \u0000 é e\u0301 \ud800`.split(" ")),
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 4 }),
  );
  const namespace = fc.array(part, { minLength: 1, maxLength: 3 }).filter(([root]) => root !== "langgraph");

  it("never run into each other", async () => {
    const below = (one: string[], prefix: string[]) => prefix.every((text, index) => text === one[index]);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(namespace, { selector: encodeNamespace, maxLength: 8 }),
        namespace,
        async (all, other) => {
          const store = createStore(opened());
          for (const one of all) await store.put(one, "key", { one });
          for (const prefix of [...all, other, ...all.map((one) => one.slice(0, -1))]) {
            const found = await store.search(prefix, { limit: 100 });
            expect(found.map((item) => item.namespace).toSorted()).toEqual(
              all.filter((one) => below(one, prefix)).toSorted(),
            );
            if (!prefix.includes("*")) {
              expect(await store.listNamespaces({ prefix })).toHaveLength(found.length);
            }
          }
          for (const one of all) expect((await store.get(one, "key"))?.value).toEqual({ one });
          for (const one of all) await store.delete(one, "key");
          expect(await store.search([], { limit: 100 })).toEqual([]);
        },
      ),
      attempts(100),
    );
  });
});

it("putIf compares between connections", async () => {
  const path = join(temporaryFolder(), "agent.db");
  const stores = [createStore(opened(path)), createStore(opened(path))];
  await stores[0]?.put(["a"], "count", { n: 0 });
  const increment = async (store: SqliteStore): Promise<void> => {
    for (;;) {
      const item = await store.getVersioned(["a"], "count");
      const next = { n: Number(item?.value["n"]) + 1 };
      if ((await store.putIf(["a"], "count", next, item?.version ?? null)) !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: 20 }, (_, index) => increment(stores[index % 2]!)));
  expect((await stores[1]?.get(["a"], "count"))?.value).toEqual({ n: 20 });
});
