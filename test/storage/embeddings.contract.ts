import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { type Embedder, EmbeddingFailure } from "../../src/core/embedder.ts";
import type { EmbeddingIndex } from "../../src/storage/memories/embedding-index.ts";
import { hybridSearch } from "../../src/storage/memories/hybrid-search.ts";
import type { StoredMemories } from "../../src/storage/memories/store.ts";
import { DOWN, embedAll, REFUSED, startWorker, TestEmbedder, untilEmbedded } from "./embeddings.ts";

/** A store with the vectors of its items. */
export interface KeptVectors {
  store: StoredMemories;
  indexOf(embedder: Embedder, clock?: Clock): EmbeddingIndex;
  forgetUnused(options: { usedBefore: number; signal: AbortSignal }): Promise<void>;
  /** The same, as another process has it. */
  again(): Promise<KeptVectors>;
  count(table: string): Promise<number>;
  keyOf(id: number): Promise<string>;
}

const NOTES = ["notes"];
const { signal } = new AbortController();

const nearest = async (index: EmbeddingIndex, kept: KeptVectors, query: string) => {
  const near = await index.nearest(NOTES, query, 10, signal);
  return Promise.all(near.filter(({ likeness }) => likeness > 0.5).map(({ id }) => kept.keyOf(id)));
};

/** What a store's vectors do, wherever they are. */
export function embeddingsContract(name: string, open: () => Promise<KeptVectors>): void {
  describe(name, () => {
    const searchOf = async (files: Record<string, string>, embeds = true) => {
      const kept = await open();
      for (const [key, content] of Object.entries(files)) await kept.store.put(NOTES, key, { content });
      const embedder = new TestEmbedder();
      const index = embeds ? await embedAll(kept, embedder) : kept.indexOf(embedder);
      const search = hybridSearch(() => kept.store, index);
      const found = async (query: string, limit = 10) => {
        const { hits, note } = await search(NOTES, query, limit, signal);
        return { keys: hits.map(({ key }) => key), hits, note };
      };
      return { embedder, found };
    };

    describe("an index of embeddings", () => {
      it("has what was there before it, what was put later, and not what is gone", async () => {
        const kept = await open();
        const { store } = kept;
        await store.put(NOTES, "old", { content: "ships at the dock" });
        await store.put(NOTES, "left out", { content: "ships" }, false);
        await store.put(["others"], "foreign", { content: "ships" });
        expect(await kept.count("store_unembedded")).toBe(0);
        const embedder = new TestEmbedder();
        const index = await embedAll(kept, embedder);
        expect(embedder.asked.toSorted()).toEqual(["foreign\nships", "old\nships at the dock"]);
        await store.put(NOTES, "new", { content: "a port" });
        await store.put(NOTES, "tea", { content: "a beverage" });
        expect(await index.waiting(9)).toBe(2);
        await embedAll(kept, embedder);
        expect((await nearest(index, kept, "harbour")).toSorted()).toEqual(["new", "old"]);
        await store.put(NOTES, "old", { content: "the drink" });
        expect(await nearest(index, kept, "harbour")).toEqual(["new"]);
        await embedAll(kept, embedder);
        expect((await nearest(index, kept, "coffee")).toSorted()).toEqual(["old", "tea"]);
        await store.delete(NOTES, "tea");
        await store.put(NOTES, "new", { content: "a port" }, false);
        expect([await index.waiting(9), await kept.count("store_passages")]).toEqual([0, 2]);
        expect(embedder.asked).toHaveLength(5);
      });

      it("finds long items by any of their first passages", async () => {
        const kept = await open();
        const { store } = kept;
        const text = (word: string) => `${"filler ".repeat(2000)}\n\n${word}\n\n${"filler ".repeat(20_000)}`;
        await store.put(NOTES, "long", { content: text("rollout") });
        await store.put(NOTES, "bytes", { content: "aGFy", encoding: "base64" });
        const embedder = new TestEmbedder();
        const index = await embedAll(kept, embedder);
        expect(embedder.asked).toHaveLength(41);
        expect(embedder.asked.every((one) => one.length < 1600)).toBe(true);
        const [hit] = await index.nearest(NOTES, "release", 1, signal);
        expect(embedder.asked.filter((one) => one.startsWith("long"))[hit?.number ?? -1]).toContain(
          "rollout",
        );
      });

      it("keeps models apart, and makes all vectors anew when a model gives other ones", async () => {
        const kept = await open();
        const { store } = kept;
        await store.put(NOTES, "a", { content: "ships" });
        const first = new TestEmbedder("test:one");
        const index = await embedAll(kept, first);
        const second = new TestEmbedder("test:two");
        second.vectorOf = () => [1, 1];
        const other = await embedAll(kept, second);
        expect([first.asked.length, second.asked.length]).toEqual([1, 1]);
        expect(await kept.count("store_passages")).toBe(2);
        expect(await nearest(index, kept, "harbour")).toEqual(["a"]);
        expect(await nearest(other, kept, "anything")).toEqual(["a"]);
        first.vectorOf = (text) => Array.from({ length: 7 }, (_value, at) => text.length + at);
        expect(await nearest(index, kept, "harbour")).toEqual([]);
        expect(await index.waiting(9)).toBe(1);
        await embedAll(kept, first);
        expect(await nearest(index, kept, "harbour")).toEqual(["a"]);
        expect(await kept.count("store_passages")).toBe(2);
      });

      it("forgets models that were not used for long", async () => {
        const kept = await open();
        const { store } = kept;
        await store.put(NOTES, "a", { content: "ships" });
        await embedAll(kept, new TestEmbedder("test:old"));
        await store.put(NOTES, "b", { content: "port" });
        await kept.forgetUnused({ usedBefore: Date.now() - 60_000, signal });
        expect([await kept.count("store_models"), await kept.count("store_unembedded")]).toEqual([1, 1]);
        await kept.forgetUnused({ usedBefore: Date.now() + 60_000, signal });
        for (const table of ["store_models", "store_passages", "store_unembedded"])
          expect(await kept.count(table)).toBe(0);
      });
    });

    describe("a worker", () => {
      it("loses nothing that is written while the service is down", async () => {
        const kept = await open();
        const { store } = kept;
        const embedder = new TestEmbedder();
        const index = kept.indexOf(embedder);
        let isDown = true;
        embedder.before = async () => {
          embedder.failure = isDown ? DOWN : undefined;
        };
        startWorker(index);
        await store.put(NOTES, "a", { content: "ships" });
        while (embedder.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
        await store.put(NOTES, "b", { content: "port" });
        expect(await index.waiting(9)).toBe(2);
        isDown = false;
        await untilEmbedded(index);
        expect((await nearest(index, kept, "harbour")).toSorted()).toEqual(["a", "b"]);
      });

      it("leaves out a text that is refused, and embeds the others", async () => {
        const kept = await open();
        const { store } = kept;
        for (const key of ["a", "bad", "c"]) await store.put(NOTES, key, { content: "ships" });
        const embedder = new TestEmbedder();
        embedder.before = async (texts) => {
          embedder.failure = texts.some((text) => text.startsWith("bad")) ? REFUSED : undefined;
        };
        const index = await embedAll(kept, embedder);
        expect((await nearest(index, kept, "port")).toSorted()).toEqual(["a", "c"]);
        await store.put(NOTES, "bad", { content: "dock" });
        expect(await index.waiting(9)).toBe(1);
      });

      it("gives nothing up to a service that refuses everything", async () => {
        const kept = await open();
        await kept.store.put(NOTES, "a", { content: "ships" });
        const embedder = new TestEmbedder();
        embedder.failure = REFUSED;
        const index = kept.indexOf(embedder);
        const worker = startWorker(index);
        while (!embedder.asked.includes("memory")) await new Promise((resolve) => setTimeout(resolve, 2));
        await worker.close();
        expect(await index.waiting(9)).toBe(1);
      });

      it("embeds again what was changed while its vector was made", async () => {
        const kept = await open();
        const { store } = kept;
        await store.put(NOTES, "a", { content: "ships" });
        const embedder = new TestEmbedder();
        embedder.before = async (texts) => {
          if (texts.includes("a\nships")) await store.put(NOTES, "a", { content: "tea" });
        };
        const index = await embedAll(kept, embedder);
        expect(embedder.asked).toEqual(["a\nships", "a\ntea"]);
        expect(await nearest(index, kept, "coffee")).toEqual(["a"]);
        expect(await nearest(index, kept, "harbour")).toEqual([]);
      });

      it("shares the work with other processes, and takes over that of one that ended", async () => {
        const kept = await open();
        const both = [kept, await kept.again()];
        await kept.store.batch(
          Array.from({ length: 200 }, (_, index) => ({
            namespace: NOTES,
            key: `k${index}`,
            value: { content: `ships ${index}` },
          })),
        );
        // One that took some and was killed.
        const time = { now: Date.now() };
        const dead = kept.indexOf(new TestEmbedder(), () => time.now);
        expect(await dead.claim(20)).toHaveLength(20);
        const embedders = [new TestEmbedder(), new TestEmbedder()];
        const indexes = embedders.map((embedder, at) => both[at]!.indexOf(embedder));
        const workers = indexes.map((index) => startWorker(index));
        while ((await indexes[0]!.waiting(99)) > 20) await new Promise((resolve) => setTimeout(resolve, 2));
        await Promise.all(workers.map((worker) => worker.close()));
        const asked = embedders.flatMap((embedder) => embedder.asked);
        expect([asked.length, new Set(asked).size]).toEqual([180, 180]);
        // Its time is over, also by a clock that went back meanwhile.
        for (const now of [time.now + 200_000, time.now - 3_600_000]) {
          const heir = both[1]!.indexOf(new TestEmbedder(), () => now);
          const taken = await heir.claim(99);
          expect(taken).toHaveLength(20);
          await dead.release(taken);
          expect(await dead.claim(99)).toHaveLength(20);
        }
      });
    });

    describe("a search by words and by meaning", () => {
      it("puts first what has both, and finds what has one", async () => {
        const { found } = await searchOf({
          "/both.md": "the harbour and its ships",
          "/word.md":
            "harbour street has shops, cafes and a lot of other things that are written of at length",
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
  });
}
