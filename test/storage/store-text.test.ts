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

describe("a search in any script", () => {
  it.each<[string, string, string[]]>([
    ["a word of two syllables before a particle", "배포", ["/ko1.md", "/ko2.md"]],
    ["a word inside another", "일정", ["/ko1.md"]],
    ["one syllable", "팀", ["/ko2.md"]],
    ["the last syllable of a word", "다", ["/ko1.md", "/ko2.md"]],
    ["a word whose letters the keyboard left apart", "배포".normalize("NFD"), ["/ko1.md", "/ko2.md"]],
    ["a word stored with its letters apart", "등대", ["/nfd.md"]],
    ["a longer word, also by its parts", "데이터베이스", ["/ko2.md"]],
    ["several words, more of them first", "배포 일정", ["/ko1.md", "/ko2.md"]],
    ["words over a border", "매주월", []],
    ["Chinese", "计划", ["/zh.md"]],
    ["one Chinese character", "划", ["/zh.md"]],
    ["Chinese without spaces, by its parts", "部署计划在哪里", ["/zh.md"]],
    ["Japanese in two scripts", "サーバーの設定", ["/ja.md"]],
    ["half-width Japanese", "ｻｰﾊﾞｰ", ["/ja.md"]],
    ["a picture", "🚀", ["/emoji.md"]],
    ["a letter whose accent the keyboard left apart", "чай".normalize("NFD"), ["/ru.md"]],
    ["a letter stored with its accent apart", "зелёный", ["/ru.md"]],
    ["Thai", "อากาศ", ["/th.md"]],
    ["Cyrillic in another case", "ЧАЙ", ["/ru.md"]],
    ["Greek with its accents", "άγκυρα", ["/el.md"]],
    ["Greek without its accents", "αγκυρα", ["/el.md"]],
    ["Devanagari", "दुनिया", ["/hi.md"]],
    ["nothing", "", []],
    ["no word", " \n\t", []],
    ["another script beside", "deploy 배포", ["/emoji.md", "/ko1.md", "/ko2.md"]],
  ])("finds %s", async (_kind, query, expected) => {
    const store = await storeOf({
      "/ko1.md": "배포는 매주 월요일입니다. 배포일정표를 봅니다",
      "/ko2.md": "우리 팀은 데이터베이스를 배포합니다",
      "/nfd.md": "항구의 등대는".normalize("NFD"),
      "/zh.md": "我们讨论了部署计划",
      "/ja.md": "サーバーの設定を変えました",
      "/emoji.md": "deploy went 🚀👍",
      "/ru.md": `чай и ${"зелёный".normalize("NFD")} сад`,
      "/th.md": "วันนี้อากาศดี",
      "/el.md": "Η άγκυρα του πλοίου",
      "/hi.md": "नमस्ते दुनिया",
      "/en.md": "nothing of that",
    });
    const keys = await found(store, query);
    expect(keys.toSorted()).toEqual(expected.toSorted());
    if (query === "배포 일정") expect(keys[0]).toBe("/ko1.md");
  });

  it("ranks a word above a part of one", async () => {
    const store = await storeOf({ "/ru.md": "Мой чай", "/el.md": "Η άγκυρα", "/ko.md": "항구의 등대" });
    for (const word of ["ЧАЙ", "άγκυρα", "등대"]) {
      expect((await store.searchText(MEMORIES, word, 1))[0]?.score).toBeGreaterThan(0);
    }
  });

  it("finds sentences of every script first by themselves", async () => {
    const store = createStore(opened());
    const sentences = ["这是中文", "これは日本語です", "이건 한국어야", "Это русский", "यह रूसी है"];
    for (const sentence of sentences) await store.put(MEMORIES, sentence, { text: sentence });
    for (const query of sentences) {
      expect((await store.search(MEMORIES, { query, limit: 1 })).map(({ key }) => key)).toEqual([query]);
    }
  });

  it("finds in many alike the newest first, the others on later pages, a rare word before all", async () => {
    const store = createStore(opened());
    const count = 1300;
    await store.batch(
      Array.from({ length: count }, (_, index) => {
        const content = `the user likes tea${index === 7 ? " and harbours" : ""}`;
        return { namespace: [index % 2 === 0 ? "even" : "odd"], key: `k${index}`, value: { content } };
      }),
    );
    const [newest] = await store.search([], { query: "user", limit: 1 });
    expect(Number(newest?.key.slice(1))).toBeGreaterThan(count / 2);
    expect((await store.search([], { query: "user likes harbours", limit: 1 }))[0]?.key).toBe("k7");
    for (const query of ["user", "user tea", "user harbours"]) {
      const keys: string[] = [];
      for (let offset = 0; offset < 700; offset += 100) {
        const page = await store.search(["odd"], { query, limit: 100, offset });
        keys.push(...page.map(({ key }) => key));
      }
      expect(keys).toHaveLength(count / 2);
      expect(new Set(keys).size).toBe(count / 2);
      const scores = (await store.search(["odd"], { query, limit: count })).map(({ score }) => score ?? 0);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    }
    const filtered = await store.search([], {
      query: "user",
      filter: { content: { $ne: "the user likes tea" } },
    });
    expect(filtered.map(({ key }) => key)).toEqual(["k7"]);
  });

  it("looks at the first 200,000 characters of an item, also after changes", async () => {
    const database = opened();
    const store = createStore(database);
    const content = `lighthouse ${"x ".repeat(100_000)} harbour 배포`;
    await store.put(MEMORIES, "long", { content });
    expect(await found(store, "lighthouse")).toEqual(["long"]);
    expect(await found(store, "harbour")).toEqual([]);
    checkIndex(database);
    await store.put(MEMORIES, "long", { content: `bridge ${content}` });
    expect(await found(store, "bridge")).toEqual(["long"]);
    await store.delete(MEMORIES, "long");
    expect(await found(store, "bridge")).toEqual([]);
    checkIndex(database);
  });
});

it("the text of a query may be anything", async () => {
  const store = await storeOf({ "/x.md": 'a AND b OR "c" 🚀 é', "/y.md": "*" });
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string({ unit: "binary" }), fc.string()), async (query) => {
      const hits = await store.searchText(MEMORIES, query, 5);
      expect(hits.length).toBeLessThanOrEqual(2);
    }),
    attempts(300),
  );
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
