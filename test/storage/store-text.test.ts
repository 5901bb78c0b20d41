import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { createStore, type SqliteStore } from "../../src/storage/sqlite/memories/store.ts";
import { fold } from "../../src/storage/memories/text-query.ts";
import { opened } from "./support.ts";
import { attempts } from "../support/effort.ts";

const file = (content: string) => ({ content, mimeType: "text/plain", created_at: "", modified_at: "" });
const MEMORIES = ["memories"];

async function storeOf(files: Record<string, string>): Promise<SqliteStore> {
  const store = createStore(opened());
  for (const [path, content] of Object.entries(files)) await store.put(MEMORIES, path, file(content));
  return store;
}

const found = async (store: SqliteStore, query: string, limit = 10) =>
  (await store.searchText(MEMORIES, query, limit)).map(({ key }) => key);

/** Throws when the index does not agree with the items. */
const checkIndex = (database: Database) =>
  database.exec("INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)");

describe("a search for words", () => {
  it("finds them in the text and in the key, whatever their case and accents", async () => {
    const store = await storeOf({
      "/deploy.md": "How the service goes live.",
      "/towns.md": "Zürich, Köln and ÅRHUS",
      "/notes.md": "Remember the milk.",
    });
    expect(await found(store, "LIVE")).toEqual(["/deploy.md"]);
    expect(await found(store, "deploy")).toEqual(["/deploy.md"]);
    expect(await found(store, "koln")).toEqual(["/towns.md"]);
    expect(await found(store, "århus")).toEqual(["/towns.md"]);
    expect(await found(store, "ZURICH")).toEqual(["/towns.md"]);
  });

  it("puts the best first: more of the words, rarer words, the key before the text", async () => {
    const store = await storeOf({
      "/one.md": "kafka and other things we talked about at length",
      "/both.md": "kafka consumer settings",
      "/consumer.md": "settings of many kinds, of one service and another",
      "/none.md": "entirely different",
      "/more.md": "also different",
      "/last.md": "and this as well",
    });
    const hits = await store.searchText(MEMORIES, "kafka consumer", 10);
    expect(hits[0]?.key).toBe("/both.md");
    expect(hits.map(({ key }) => key).toSorted()).toEqual(["/both.md", "/consumer.md", "/one.md"]);
    const scores = hits.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(Math.min(...scores)).toBeGreaterThan(0);
    expect(await found(store, "kafka consumer", 1)).toEqual(["/both.md"]);
  });

  it("finds words of one and two characters, and longer ones by their beginning", async () => {
    const store = await storeOf({ "/a.md": "Go 7 is on CI", "/b.md": "deployment goes on", "/c.md": "x" });
    expect(await found(store, "go")).toEqual(["/a.md"]);
    expect(await found(store, "7")).toEqual(["/a.md"]);
    expect(await found(store, "x")).toEqual(["/c.md"]);
    expect(await found(store, "deploy")).toEqual(["/b.md"]);
  });

  it("finds other alphabets, with their accents and without", async () => {
    const store = await storeOf({
      "/ru.md": "Мой любимый чай",
      "/el.md": "Η άγκυρα του πλοίου",
      "/hi.md": "नमस्ते दुनिया",
      "/ko.md": "항구의 등대",
    });
    expect(await found(store, "мой")).toEqual(["/ru.md"]);
    expect(await found(store, "ЧАЙ")).toEqual(["/ru.md"]);
    expect(await found(store, "άγκυρα")).toEqual(["/el.md"]);
    expect(await found(store, "αγκυρα")).toEqual(["/el.md"]);
    // A word found as it is written outranks one found as a part.
    for (const word of ["ЧАЙ", "άγκυρα", "दुनिया", "등대"]) {
      const [hit] = await store.searchText(MEMORIES, word, 1);
      expect(hit?.score).toBeGreaterThan(0);
    }
    expect(await found(store, "दुनिया")).toEqual(["/hi.md"]);
    expect(await found(store, "등대")).toEqual(["/ko.md"]);
    expect(await found(store, "구의")).toEqual(["/ko.md"]);
  });

  it("finds scripts that are written without spaces", async () => {
    const store = await storeOf({
      "/ja.md": "明日の東京の天気は晴れです",
      "/zh.md": "我们讨论了部署计划",
      "/th.md": "วันนี้อากาศดี",
      "/en.md": "the weather in Tokyo",
    });
    expect(await found(store, "天気")).toEqual(["/ja.md"]);
    expect(await found(store, "部署")).toEqual(["/zh.md"]);
    expect(await found(store, "อากาศ")).toEqual(["/th.md"]);
    expect(await found(store, "東京 tokyo")).toEqual(["/en.md", "/ja.md"]);
  });

  it("looks for parts of words when it finds no word", async () => {
    const store = await storeOf({ "/a.md": "reconfigured 🚀", "/b.md": "nothing" });
    expect(await store.searchText(MEMORIES, "config", 5)).toMatchObject([{ key: "/a.md", score: 0 }]);
    expect(await found(store, "config nowhere")).toEqual([]);
  });

  it("stays below the prefix", async () => {
    const store = createStore(opened());
    await store.put(["users", "ada"], "/a.md", file("secret harbour"));
    await store.put(["users", "adam"], "/b.md", file("secret harbour"));
    await store.put(["users", "ada", "work"], "/c.md", file("secret harbour"));
    const namespaces = async (query: string) =>
      (await store.searchText(["users", "ada"], query, 10))
        .map(({ namespace }) => namespace.join("/"))
        .toSorted();
    expect(await namespaces("harbour")).toEqual(["users/ada", "users/ada/work"]);
    expect(await namespaces("arbou")).toEqual(["users/ada", "users/ada/work"]);
  });

  it("is what search does with a query, with filter, limit and offset", async () => {
    const store = createStore(opened());
    for (let index = 0; index < 8; index += 1) {
      await store.put(MEMORIES, `k${index}`, {
        content: "harbour ".repeat(index + 1),
        even: index % 2 === 0,
      });
    }
    const all = await store.search(MEMORIES, { query: "harbour" });
    expect(all).toHaveLength(8);
    expect(all.every(({ score }) => typeof score === "number")).toBe(true);
    const keys = all.map(({ key }) => key);
    const page = await store.search(MEMORIES, { query: "harbour", limit: 3, offset: 2 });
    expect(page.map(({ key }) => key)).toEqual(keys.slice(2, 5));
    const even = await store.search(MEMORIES, {
      query: "harbour",
      filter: { even: true },
      limit: 2,
      offset: 1,
    });
    expect(even.map(({ key }) => key)).toEqual(
      keys.filter((key) => Number(key.slice(1)) % 2 === 0).slice(1, 3),
    );
    expect(await store.search(MEMORIES, { query: "nowhere" })).toEqual([]);
  });
});

describe("the text of a query", () => {
  it.each([
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
    "(",
    "'",
    "a\u0000b",
    "%",
    "_",
  ])("%j is no syntax", async (query) => {
    const store = await storeOf({ "/x.md": "a text" });
    await expect(store.searchText(MEMORIES, query, 5)).resolves.toBeInstanceOf(Array);
  });

  it("may be anything", async () => {
    const store = await storeOf({ "/x.md": 'a AND b OR "c" 🚀 é', "/y.md": "*" });
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: "binary" }), fc.string()), async (query) => {
        const hits = await store.searchText(MEMORIES, query, 5);
        expect(hits.length).toBeLessThanOrEqual(2);
      }),
      attempts(300),
    );
  });

  it("without a word finds nothing", async () => {
    const store = await storeOf({ "/x.md": "text" });
    expect(await found(store, "")).toEqual([]);
    expect(await found(store, " \n\t")).toEqual([]);
  });
});

describe("the snippet", () => {
  it("shows the text around the match on one line, whole when it is short", async () => {
    const store = await storeOf({
      "/short.md": "the harbour\nat night",
      "/long.md": `${"before ".repeat(200)}the big Ponté bridge${" after".repeat(200)}`,
    });
    const [short] = await store.searchText(MEMORIES, "harbour", 1);
    expect(short?.snippet).toBe("the harbour at night");
    const [long] = await store.searchText(MEMORIES, "ponte", 1);
    expect(long?.snippet).toContain("the big Ponté bridge after");
    expect(long?.snippet).toMatch(/^….*…$/);
    expect(long?.snippet.length).toBeLessThanOrEqual(240);
  });

  it("is where the word stands, not where it is a part of another", async () => {
    const store = await storeOf({ "/a.md": `${"category ".repeat(100)} my cat sleeps` });
    const [hit] = await store.searchText(MEMORIES, "cat", 1);
    expect(hit?.snippet).toContain("my cat sleeps");
  });

  it("folds characters in their places", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => fold(text).length === text.length));
    expect(fold("Ärger İstanbul ΆΛΦΑ 한국 が")).toBe("arger istanbul αλφα 한국 が");
  });
});

describe("what is searched of a value", () => {
  it("is its text, the lines of old files, all texts of other values, and nothing of bytes", async () => {
    const store = createStore(opened());
    await store.put(MEMORIES, "v1", {
      content: ["first line", "second line"],
      created_at: "",
      modified_at: "",
    });
    await store.put(MEMORIES, "bytes", { content: "aGFyYm91cg", encoding: "base64", mimeType: "image/png" });
    await store.put(MEMORIES, "other", { name: { first: "Ada" }, tags: ["engine", 1815] });
    expect(await found(store, "second")).toEqual(["v1"]);
    expect(await found(store, "agfyym91cg")).toEqual([]);
    expect(await found(store, "bytes")).toEqual(["bytes"]);
    expect(await found(store, "engine")).toEqual(["other"]);
    expect(await found(store, "1815")).toEqual(["other"]);
    expect(await found(store, "first")).toEqual(["v1"]);
  });

  it("can be named by put, or left out", async () => {
    const store = createStore(opened());
    const value = {
      title: "Harbour",
      hidden: "bridge",
      parts: [{ text: "lighthouse" }, { text: "pier", by: "ada" }],
      more: { by: "grace", at: "sea" },
      tags: { first: "sand", second: ["wind"] },
    };
    await store.put(MEMORIES, "named", value, [
      "title",
      "parts[*].text",
      "parts[1].by",
      "absent.path",
      "{absent,more.by}",
      "tags.*",
      "title.deep",
    ]);
    await store.put(MEMORIES, "left-out", value, false);
    for (const query of ["harbour", "lighthouse", "ada", "grace", "sand", "wind"])
      expect(await found(store, query)).toEqual(["named"]);
    expect(await found(store, "bridge sea")).toEqual([]);
    expect(await found(store, "left")).toEqual([]);
  });

  it("follows every change of any value", async () => {
    const database = opened();
    const store = createStore(database);
    const content = fc.oneof(
      fc.string({ unit: "binary" }).map((text): Record<string, unknown> => ({ content: text })),
      fc.array(fc.string()).map((lines) => ({ content: lines })),
      fc.dictionary(fc.string(), fc.jsonValue()),
    );
    const change = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      value: fc.option(content),
      index: fc.constantFrom(undefined, false as const, ["content"]),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 10 }), async (changes) => {
        for (const { key, value, index } of changes) {
          if (value === null) await store.delete(MEMORIES, key);
          else await store.put(MEMORIES, key, value, index);
        }
        checkIndex(database);
      }),
      attempts(100),
    );
  });

  it("is gone with the item", async () => {
    const store = await storeOf({ "/a.md": "harbour", "/b.md": "harbour" });
    await store.delete(MEMORIES, "/a.md");
    await store.put(MEMORIES, "/b.md", file("bridge"));
    expect(await found(store, "harbour")).toEqual([]);
    expect(await found(store, "bridge")).toEqual(["/b.md"]);
  });
});
