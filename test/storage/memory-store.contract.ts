import type { BaseStore } from "@langchain/langgraph-checkpoint";
import { beforeEach, describe, expect, test } from "vitest";
import type { MemoryStore, TtlConfig } from "../../src/storage/memories/contracts.ts";
import type { SqliteStore } from "../../src/storage/sqlite/memories/store.ts";

/** What a driver of memories has beyond LangGraph's interface. */
type StoredMemories = MemoryStore &
  Pick<SqliteStore, "getVersioned" | "putIf" | "itemsBetween" | "put" | "get">;

/** Opens an empty store. */
export type OpenMemories = (options: {
  clock: () => number;
  ttl?: TtlConfig;
}) => StoredMemories | Promise<StoredMemories>;

const MINUTE = 60_000;

/** What memories need of whatever stores them. */
export function memoryStoreContract(name: string, open: OpenMemories): void {
  describe(`memories in ${name}`, () => {
    let store: StoredMemories;
    let now: number;
    const reopen = async (ttl?: TtlConfig): Promise<void> => {
      store = await open({ clock: () => now, ...(ttl === undefined ? {} : { ttl }) });
    };
    beforeEach(async () => {
      now = 1000 * MINUTE;
      await reopen();
    });

    const found = async (query: string, prefix: string[] = []): Promise<string[]> =>
      (await store.searchText(prefix, query, 10)).map(({ key }) => key);

    test("a version is that of one state, and is not used again", async () => {
      const first = await store.putIf(["a"], "k", { n: 1 }, null);
      expect(first).toEqual(expect.any(String));
      expect(await store.putIf(["a"], "k", { n: 2 }, null)).toBeUndefined();
      expect(await store.getVersioned(["a"], "k")).toMatchObject({ value: { n: 1 }, version: first });
      const second = await store.putIf(["a"], "k", { n: 2 }, first ?? "");
      expect(await store.putIf(["a"], "k", { n: 3 }, first ?? "")).toBeUndefined();
      expect((await store.get(["a"], "k"))?.value).toEqual({ n: 2 });
      await store.delete(["a"], "k");
      expect(await store.putIf(["a"], "k", { n: 4 }, second ?? "")).toBeUndefined();
      const again = await store.putIf(["a"], "k", { n: 1 }, null);
      expect(new Set([first, second, again]).size).toBe(3);
    });

    test("of many who put over the same state one does", async () => {
      const first = (await store.putIf(["a"], "k", { n: 0 }, null)) ?? "";
      const tries = await Promise.all(
        Array.from({ length: 10 }, (_, n) => store.putIf(["a"], "k", { n }, first)),
      );
      expect(tries.filter((version) => version !== undefined)).toHaveLength(1);
    });

    test("of puts that nobody awaits the last counts", async () => {
      const puts = Array.from({ length: 20 }, (_, n) => store.put(["a"], "k", { n }));
      await Promise.all(puts);
      expect((await store.get(["a"], "k"))?.value).toEqual({ n: 19 });
    });

    test("items between two keys come in the order of their code units", async () => {
      for (const key of ["b", "a", "é", "B", "a/x", "a-x"]) await store.put(["n"], key, { key });
      await store.put(["n", "below"], "a", {});
      const between = async (from: string, to: string, limit = 99) =>
        (await store.itemsBetween(["n"], { from, to, limit })).map(({ key }) => key);
      expect(await between("", "\uffff")).toEqual(["B", "a", "a-x", "a/x", "b", "é"]);
      expect(await between("a", "b")).toEqual(["a", "a-x", "a/x"]);
      expect(await between("a", "b", 2)).toEqual(["a", "a-x"]);
    });

    test("words are found as they begin, in any case, with or without accents, and best first", async () => {
      await store.put(["u"], "/cafe.md", { content: "We met at the Café de la Gare, twice." });
      await store.put(["u"], "/harbour.md", { content: "harbour harbour harbour" });
      await store.put(["u"], "/other.md", { content: "The harbour was empty. Path: src/config/file.ts" });
      expect(await found("CAFE")).toEqual(["/cafe.md"]);
      expect(await found("harb")).toEqual(["/harbour.md", "/other.md"]);
      expect(await found("config")).toEqual(["/other.md"]);
      expect(await found("nothing of it", ["elsewhere"])).toEqual([]);
      const [hit] = await store.searchText(["u"], "gare", 1);
      expect(hit).toMatchObject({ namespace: ["u"], snippet: expect.stringContaining("Café de la Gare") });
      expect(hit?.score).toBeGreaterThan(0);
    });

    test("scripts without spaces are found by parts, and parts of words where nothing else is", async () => {
      await store.put(["u"], "/ko.md", { content: "데이터베이스를 새로 만들었다" });
      await store.put(["u"], "/ja.md", { content: "東京都に住んでいます" });
      await store.put(["u"], "/en.md", { content: "photosynthesis" });
      expect(await found("데이터베이스")).toEqual(["/ko.md"]);
      expect(await found("京都")).toEqual(["/ja.md"]);
      expect(await store.searchText([], "synth", 5)).toMatchObject([{ key: "/en.md", score: 0 }]);
    });

    test("nothing in a query is syntax", async () => {
      await store.put(["u"], "/a.md", { content: "it's a b:c & d | e ! (f) <-> \\ \" ' * :* g" });
      for (const query of [
        "'",
        "\\",
        "a & !b",
        "it's",
        "b:c",
        ":*",
        "(",
        "<->",
        "\0",
        "g",
        '"',
        '""',
        "*",
        "a*",
        "NEAR(a b)",
        "key:a",
        "-a",
        "^a",
        "{body} : a",
        "a AND",
        "OR",
        "NOT a",
        "%",
        "_",
      ]) {
        await expect(store.searchText([], query, 5)).resolves.toBeDefined();
      }
      expect(await found("it's")).toEqual(["/a.md"]);
    });

    test("what is put with index false is listed and never found", async () => {
      await store.put(["u"], "k", { content: "harbour" }, false);
      expect(await found("harbour")).toEqual([]);
      expect(await store.search(["u"])).toHaveLength(1);
    });

    test("an item whose time is over is in no answer, swept or not", async () => {
      await reopen({ refreshOnRead: false, sweepIntervalMinutes: 1e9 });
      await store.put(["a"], "short", { content: "harbour" }, undefined, { ttl: 1 });
      await store.put(["a"], "long", { content: "harbour" });
      const answers = async () => [
        (await store.get(["a"], "short"))?.key,
        (await store.getVersioned(["a"], "short"))?.key,
        (await store.search(["a"])).map(({ key }) => key),
        (await store.search(["a"], { filter: { content: "harbour" } })).map(({ key }) => key),
        (await store.search(["a"], { query: "harbour" })).map(({ key }) => key).toSorted(),
        (await found("harb")).toSorted(),
        (await store.itemsBetween(["a"], { from: "a", to: "z", limit: 9 })).map(({ key }) => key),
      ];
      const both = ["long", "short"];
      now += MINUTE - 1;
      expect(await answers()).toEqual(["short", "short", both, both, both, both, both]);
      now += 1;
      const one = ["long"];
      expect(await answers()).toEqual([undefined, undefined, one, one, one, one, one]);
      expect(await store.sweepExpiredItems()).toBe(1);
      expect(await store.sweepExpiredItems()).toBe(0);
    });

    test("an item that is read lives as long again, and can be put anew when its time is over", async () => {
      await store.put(["a"], "k", { n: 1 }, undefined, { ttl: 2 });
      const version = (await store.getVersioned(["a"], "k"))?.version;
      now += MINUTE;
      await store.get(["a"], "k");
      now += MINUTE + 1;
      expect(await store.get(["a"], "k", { refreshTtl: false })).not.toBeNull();
      now += MINUTE;
      expect(await store.putIf(["a"], "k", { n: 2 }, version ?? "")).toBeUndefined();
      expect(await store.putIf(["a"], "k", { n: 2 }, null)).not.toBe(version);
      expect(await store.get(["a"], "k")).toMatchObject({ value: { n: 2 }, createdAt: new Date(now) });
    });

    test("writes of one batch happen together or not at all", async () => {
      const cyclic: Record<string, unknown> = {};
      cyclic["self"] = cyclic;
      const batch: Parameters<BaseStore["batch"]>[0] = [
        { namespace: ["a"], key: "good", value: { n: 1 } },
        { namespace: ["a"], key: "bad", value: cyclic },
      ];
      await expect(store.batch(batch)).rejects.toThrow();
      expect(await store.get(["a"], "good")).toBeNull();
    });
  });
}
