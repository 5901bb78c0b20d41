import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { beforeEach, describe, expect, it } from "vitest";

const ALL_ITEMS = ["item-0", "item-1", "item-2", "item-3", "item-4"];

/** What LangGraph expects of a store, its own and ours. */
export function storeContract(name: string, create: () => BaseStore | Promise<BaseStore>): void {
  describe(name, () => {
    let store: BaseStore;
    beforeEach(async () => {
      store = await create();
    });

    const keys = async (...options: Parameters<BaseStore["search"]>) =>
      (await store.search(...options)).map(({ key }) => key).toSorted();

    describe("get, put, delete", () => {
      it("gives back what was put, with its times", async () => {
        const before = Date.now();
        const value = { text: "Grüße", deep: { list: [1, null, "x", true], number: 1.5 } };
        await store.put(["users", "ada"], "note", value);
        const item = await store.get(["users", "ada"], "note");
        expect(item).toMatchObject({ namespace: ["users", "ada"], key: "note", value });
        expect(item?.createdAt).toBeInstanceOf(Date);
        expect(item?.createdAt.getTime()).toBeGreaterThanOrEqual(before);
        expect(item?.updatedAt).toEqual(item?.createdAt);
      });

      it("gives null for what is not there", async () => {
        await store.put(["users"], "note", { a: 1 });
        expect(await store.get(["users"], "other")).toBeNull();
        expect(await store.get(["other"], "note")).toBeNull();
        expect(await store.get(["users", "ada"], "note")).toBeNull();
      });

      it("replaces the value and keeps the time of creation", async () => {
        await store.put(["users"], "note", { a: 1, b: 2 });
        const first = await store.get(["users"], "note");
        await store.put(["users"], "note", { a: 3 });
        const second = await store.get(["users"], "note");
        expect(second?.value).toEqual({ a: 3 });
        expect(second?.createdAt).toEqual(first?.createdAt);
      });

      it("deletes one item", async () => {
        await store.put(["users"], "a", { n: 1 });
        await store.put(["users"], "b", { n: 2 });
        await store.delete(["users"], "a");
        await store.delete(["users"], "absent");
        await store.delete(["absent"], "a");
        expect(await keys(["users"])).toEqual(["b"]);
      });

      it("keeps the same key in different namespaces apart", async () => {
        await store.put(["a"], "k", { n: 1 });
        await store.put(["a", "b"], "k", { n: 2 });
        await store.put(["b"], "k", { n: 3 });
        await store.delete(["a", "b"], "k");
        expect((await store.get(["a"], "k"))?.value).toEqual({ n: 1 });
        expect((await store.get(["b"], "k"))?.value).toEqual({ n: 3 });
      });

      it("leaves namespaces of LangGraph itself to batch", async () => {
        const value = { n: 1 };
        await store.batch([{ namespace: ["langgraph", "a"], key: "k", value }]);
        await store.put(["a", "langgraph"], "k", value);
        expect((await store.get(["langgraph", "a"], "k"))?.value).toEqual(value);
        expect(await keys(["langgraph", "a"])).toEqual(["k"]);
        await store.delete(["langgraph", "a"], "k");
        expect(await keys([])).toEqual(["k"]);
      });

      it("keeps keys and values of any script and any depth", async () => {
        const value = {
          이름: "이건 한국어야",
          "a'b\"; DROP TABLE store_items; --": ["这是中文", { "": [[], {}, false, 1e100, -0.5] }],
          "with-hyphen.and.dots": null,
          long: "x".repeat(1_000_000),
        };
        const names = ["日本語", "with spaces", "new\nline\n", "100%_*?[x]", "user@x+1", "🚀"];
        for (const name of names) await store.put([name, "a"], name, value);
        for (const name of names) expect((await store.get([name, "a"], name))?.value).toEqual(value);
        expect(await keys([], { limit: 20 })).toEqual(names.toSorted());
      });

      it.each([[[]], [["a", ""]], [["langgraph", "a"]]])("refuses the namespace %j", async (namespace) => {
        await expect(store.put(namespace, "k", { n: 1 })).rejects.toThrow(
          expect.objectContaining({ name: "InvalidNamespaceError" }),
        );
      });
    });

    describe("search", () => {
      beforeEach(async () => {
        for (const [index, color] of ["red", "green", "blue", "red", "green"].entries()) {
          await store.put(["shop", index % 2 === 0 ? "even" : "odd"], `item-${index}`, {
            color,
            size: index,
          });
        }
        await store.put(["other"], "item-9", { color: "red" });
      });

      it("finds everything at and below a prefix", async () => {
        await store.put(["shop"], "top", { size: 0 });
        expect(await keys(["shop"])).toEqual(["item-0", "item-1", "item-2", "item-3", "item-4", "top"]);
        expect(await keys(["shop", "even"])).toEqual(["item-0", "item-2", "item-4"]);
        expect(await keys([])).toHaveLength(7);
        expect(await keys(["nowhere"])).toEqual([]);
      });

      it.each<[string, Record<string, unknown>, string[]]>([
        ["a value", { color: "red" }, ["item-0", "item-3"]],
        ["several values", { color: "green", size: 4 }, ["item-4"]],
        ["$eq", { color: { $eq: "blue" } }, ["item-2"]],
        ["$ne", { color: { $ne: "red" } }, ["item-1", "item-2", "item-4"]],
        ["$gt", { size: { $gt: 3 } }, ["item-4"]],
        ["$gte", { size: { $gte: 3 } }, ["item-3", "item-4"]],
        ["$lt", { size: { $lt: 1 } }, ["item-0"]],
        ["$lte", { size: { $lte: 1 } }, ["item-0", "item-1"]],
        ["a range", { size: { $gt: 0, $lt: 3 } }, ["item-1", "item-2"]],
        ["$in", { color: { $in: ["blue", "red"] } }, ["item-0", "item-2", "item-3"]],
        ["$nin", { color: { $nin: ["blue", "red"] } }, ["item-1", "item-4"]],
        ["$gt without end", { size: { $gt: -Infinity } }, ALL_ITEMS],
        ["$lt without end", { size: { $lt: Infinity } }, ALL_ITEMS],
        ["$lt of a huge number", { size: { $lt: 1e100 } }, ALL_ITEMS],
        ["zero with a sign", { size: -0 }, ["item-0"]],
        ["$in with a signed zero", { size: { $in: [-0] } }, ["item-0"]],
        ["what is no number", { size: { $eq: NaN } }, []],
        ["a list that is no list", { color: { $in: "red" } }, []],
        ["an operator that nobody knows", { color: { $like: "red" } }, []],
        ["a boolean", { size: true }, []],
        ["null", { color: null }, []],
        ["what looks like SQL", { "color' OR 1=1 --": "red", color: "' OR ''='" }, []],
        ["a field that every object has", { toString: { $ne: 1 } }, ALL_ITEMS],
        ["a field that is missing", { weight: 1 }, []],
        ["$ne of a field that is missing", { weight: { $ne: 1 } }, ALL_ITEMS],
        ["a text against a number", { size: "3" }, []],
        ["numbers against a text", { color: { $gt: 1 } }, []],
      ])("filters by %s", async (_kind, filter, expected) => {
        expect(await keys(["shop"], { filter })).toEqual(expected);
      });

      it("pages without loss or repetition, with and without a filter", async () => {
        for (const filter of [undefined, { size: { $gte: 0 } }]) {
          const pages: string[] = [];
          for (let offset = 0; offset < 6; offset += 2) {
            const page = await store.search(["shop"], { limit: 2, offset, ...(filter && { filter }) });
            pages.push(...page.map(({ key }) => key));
          }
          expect(pages.toSorted()).toEqual(ALL_ITEMS);
        }
      });

      it("gives ten items unless told otherwise", async () => {
        for (let index = 0; index < 15; index += 1) await store.put(["many"], `k${index}`, { index });
        expect(await store.search(["many"])).toHaveLength(10);
        expect(await store.search(["many"], { limit: 12 })).toHaveLength(12);
        expect(await store.search(["many"], { limit: 100, offset: 12 })).toHaveLength(3);
        expect(await store.search(["many"], { limit: 0 })).toEqual([]);
      });
    });

    describe("listNamespaces", () => {
      beforeEach(async () => {
        for (const namespace of ["a/b/c", "a/b/d", "a/x/c", "b/c", "z"].map((path) => path.split("/"))) {
          await store.put(namespace, "one", { n: 1 });
          await store.put(namespace, "two", { n: 2 });
        }
      });

      it.each<[string, Parameters<BaseStore["listNamespaces"]>[0], string[]]>([
        ["all", {}, ["a/b/c", "a/b/d", "a/x/c", "b/c", "z"]],
        ["a prefix", { prefix: ["a", "b"] }, ["a/b/c", "a/b/d"]],
        ["a suffix", { suffix: ["c"] }, ["a/b/c", "a/x/c", "b/c"]],
        ["both", { prefix: ["a"], suffix: ["c"] }, ["a/b/c", "a/x/c"]],
        ["a prefix with any part", { prefix: ["a", "*", "c"] }, ["a/b/c", "a/x/c"]],
        ["a suffix with any part", { suffix: ["*", "c"] }, ["a/b/c", "a/x/c", "b/c"]],
        ["a depth", { maxDepth: 1 }, ["a", "b", "z"]],
        ["a depth below a prefix", { prefix: ["a"], maxDepth: 2 }, ["a/b", "a/x"]],
        ["a page", { limit: 2, offset: 1 }, ["a/b/d", "a/x/c"]],
        ["nothing", { prefix: ["nowhere"] }, []],
      ])("lists %s", async (_kind, options, expected) => {
        const listed = await store.listNamespaces(options);
        expect(listed.map((parts) => parts.join("/"))).toEqual(expected);
      });
    });

    describe("batch", () => {
      it("answers each operation in its place; reads see what was there before", async () => {
        await store.put(["a"], "old", { n: 1 });
        const [, item, found, , namespaces] = await store.batch([
          { namespace: ["a"], key: "new", value: { n: 2 } },
          { namespace: ["a"], key: "new" },
          { namespacePrefix: ["a"], limit: 5 },
          { namespace: ["a"], key: "old", value: null },
          { matchConditions: [{ matchType: "prefix", path: ["a"] }], limit: 5, offset: 0 },
        ]);
        expect(item).toBeNull();
        expect(found).toMatchObject([{ key: "old" }]);
        expect(namespaces).toEqual([["a"]]);
        expect(await keys(["a"])).toEqual(["new"]);
      });

      it("gives null for an item that is not there, and the same item twice", async () => {
        await store.put(["a"], "k", { n: 1 });
        const found = await store.batch([
          { namespace: ["a"], key: "k" },
          { namespace: ["a"], key: "none" },
          { namespace: ["a"], key: "k" },
        ]);
        expect(found.map((item) => item?.key ?? null)).toEqual(["k", null, "k"]);
        await store.batch([
          { namespace: ["a"], key: "k", value: null },
          { namespace: ["a"], key: "none", value: null },
        ]);
        expect(await keys([])).toEqual([]);
      });

      it("lets the last of several writes of one item win", async () => {
        await store.batch([
          { namespace: ["a"], key: "k", value: { n: 1 } },
          { namespace: ["a"], key: "k", value: { n: 2 } },
        ]);
        expect((await store.get(["a"], "k"))?.value).toEqual({ n: 2 });
      });
    });
  });
}
