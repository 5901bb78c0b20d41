import { describe, expect, it } from "vitest";
import { createStore, type SqliteStore } from "../../src/storage/sqlite/memories/store.ts";
import { opened } from "./support.ts";

const file = (content: string) => ({ content, mimeType: "text/plain", created_at: "", modified_at: "" });
const MEMORIES = ["memories"];

const found = async (store: SqliteStore, query: string) =>
  (await store.searchText(MEMORIES, query, 10)).map(({ key }) => key);

const INDEX_CHECK = "INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)";

describe("a search", () => {
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
    ["another script beside", "deploy 배포", ["/emoji.md", "/ko1.md", "/ko2.md"]],
  ])("finds %s", async (_kind, query, expected) => {
    const store = createStore(opened());
    const files = {
      "/ko1.md": "배포는 매주 월요일입니다. 배포일정표를 봅니다",
      "/ko2.md": "우리 팀은 데이터베이스를 배포합니다",
      "/nfd.md": "항구의 등대는".normalize("NFD"),
      "/zh.md": "我们讨论了部署计划",
      "/ja.md": "サーバーの設定を変えました",
      "/emoji.md": "deploy went 🚀👍",
      "/ru.md": `чай и ${"зелёный".normalize("NFD")} сад`,
      "/en.md": "nothing of that",
    };
    for (const [path, content] of Object.entries(files)) await store.put(MEMORIES, path, file(content));
    const keys = await found(store, query);
    expect(keys.toSorted()).toEqual(expected.toSorted());
    if (query === "배포 일정") expect(keys[0]).toBe("/ko1.md");
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
    database.exec(INDEX_CHECK);
    await store.put(MEMORIES, "long", { content: `bridge ${content}` });
    expect(await found(store, "bridge")).toEqual(["long"]);
    await store.delete(MEMORIES, "long");
    expect(await found(store, "bridge")).toEqual([]);
    database.exec(INDEX_CHECK);
  });
});
