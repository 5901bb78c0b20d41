import { describe, expect, it } from "vitest";
import { EmbeddingFailure } from "../../src/core/embedder.ts";
import { EmbeddingIndex } from "../../src/storage/sqlite/memories/embedding-index.ts";
import { HybridSearch } from "../../src/storage/sqlite/memories/hybrid-search.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { DOWN, embedAll, TestEmbedder } from "./embeddings.ts";
import { opened } from "./support.ts";

const NOTES = ["notes"];
const { signal } = new AbortController();

async function searchOf(files: Record<string, string>, embeds = true) {
  const database = opened();
  const store = createStore(database);
  for (const [key, content] of Object.entries(files)) await store.put(NOTES, key, { content });
  const embedder = new TestEmbedder();
  const index = embeds ? await embedAll(database, embedder) : new EmbeddingIndex(database, embedder);
  const search = new HybridSearch(store, index);
  const found = async (query: string, limit = 10) => {
    const { hits, note } = await search.search(NOTES, query, limit, signal);
    return { keys: hits.map(({ key }) => key), hits, note };
  };
  return { store, embedder, found };
}

describe("a search by words and by meaning", () => {
  it("puts first what has both, and finds what has one", async () => {
    const { found } = await searchOf({
      "/both.md": "the harbour and its ships",
      "/word.md": "harbour street has shops, cafes and a lot of other things that are written of at length",
      "/meaning.md": "ships at the dock",
      "/other.md": "a beverage",
    });
    const { keys, hits, note } = await found("harbour");
    expect(keys[0]).toBe("/both.md");
    expect(keys.slice(0, 3).toSorted()).toEqual(["/both.md", "/meaning.md", "/word.md"]);
    expect(note).toBeUndefined();
    const scores = hits.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect((await found("harbour", 1)).keys).toEqual(["/both.md"]);
  });

  it("shows the passage that means the same where no word is found", async () => {
    const content = `${"filler ".repeat(200)}\n\nThe rollout is on Monday. ${"It is late. ".repeat(20)}`;
    const { found } = await searchOf({ "/a.md": content });
    const { hits } = await found("배포");
    expect(hits[0]?.snippet).toMatch(/^The rollout is on Monday\. It is late/);
  });

  it("says what is not embedded yet, and finds it by its words", async () => {
    const { found } = await searchOf({ "/a.md": "ships", "/b.md": "port" }, false);
    expect(await found("ships")).toMatchObject({
      keys: ["/a.md"],
      note: "Memories not yet embedded, which are searched by words only: 2.",
    });
  });

  it("finds words while the service is down, says why, and does not ask again at once", async () => {
    const { embedder, found } = await searchOf({ "/a.md": "ships", "/b.md": "port" });
    let queries = 0;
    embedder.before = async (_texts, purpose) => {
      if (purpose === "query") queries += 1;
    };
    embedder.failure = DOWN;
    for (let time = 0; time < 2; time += 1) {
      expect(await found("ships")).toMatchObject({
        keys: ["/a.md"],
        note: "Searched by words only, not by meaning: The service is down.",
      });
    }
    expect(queries).toBe(1);
  });

  it("asks again after a query that was refused", async () => {
    const { embedder, found } = await searchOf({ "/a.md": "ships", "/b.md": "port" });
    embedder.failure = new EmbeddingFailure("model_error", "Too long.", { refusesTexts: true });
    expect((await found("ships")).note).toContain("Too long.");
    embedder.failure = undefined;
    expect((await found("dock")).keys.toSorted()).toEqual(["/a.md", "/b.md"]);
  });
});
