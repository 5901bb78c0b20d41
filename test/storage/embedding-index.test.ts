import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { EmbeddingIndex, forgetUnusedModels } from "../../src/storage/sqlite/memories/embedding-index.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { DOWN, embedAll, REFUSED, startWorker, TestEmbedder, untilEmbedded } from "./embeddings.ts";
import { opened, temporaryFolder } from "./support.ts";

const NOTES = ["notes"];
const { signal } = new AbortController();

const nearest = async (index: EmbeddingIndex, database: Database, query: string) => {
  const near = await index.nearest(NOTES, query, 10, signal);
  const key = database.prepare<[number], string>("SELECT key FROM store_items WHERE id = ?").pluck();
  return near.filter(({ likeness }) => likeness > 0.5).map(({ id }) => key.get(id));
};
const count = (database: Database, table: string) =>
  database.prepare(`SELECT count(*) FROM ${table}`).pluck().get();

describe("an index of embeddings", () => {
  it("has what was there before it, what was put later, and not what is gone", async () => {
    const database = opened();
    const store = createStore(database);
    await store.put(NOTES, "old", { content: "ships at the dock" });
    await store.put(NOTES, "left out", { content: "ships" }, false);
    await store.put(["others"], "foreign", { content: "ships" });
    expect(count(database, "store_unembedded")).toBe(0);
    const embedder = new TestEmbedder();
    const index = await embedAll(database, embedder);
    expect(embedder.asked.toSorted()).toEqual(["foreign\nships", "old\nships at the dock"]);
    await store.put(NOTES, "new", { content: "a port" });
    await store.put(NOTES, "tea", { content: "a beverage" });
    expect(await index.waiting(9)).toBe(2);
    await embedAll(database, embedder);
    expect((await nearest(index, database, "harbour")).toSorted()).toEqual(["new", "old"]);
    await store.put(NOTES, "old", { content: "the drink" });
    expect(await nearest(index, database, "harbour")).toEqual(["new"]);
    await embedAll(database, embedder);
    expect((await nearest(index, database, "coffee")).toSorted()).toEqual(["old", "tea"]);
    await store.delete(NOTES, "tea");
    await store.put(NOTES, "new", { content: "a port" }, false);
    expect([await index.waiting(9), count(database, "store_passages")]).toEqual([0, 2]);
    expect(embedder.asked).toHaveLength(5);
  });

  it("finds long items by any of their first passages", async () => {
    const database = opened();
    const store = createStore(database);
    const text = (word: string) => `${"filler ".repeat(2000)}\n\n${word}\n\n${"filler ".repeat(20_000)}`;
    await store.put(NOTES, "long", { content: text("rollout") });
    await store.put(NOTES, "bytes", { content: "aGFy", encoding: "base64" });
    const embedder = new TestEmbedder();
    const index = await embedAll(database, embedder);
    expect(embedder.asked).toHaveLength(41);
    expect(embedder.asked.every((one) => one.length < 1600)).toBe(true);
    const [hit] = await index.nearest(NOTES, "release", 1, signal);
    expect(embedder.asked.filter((one) => one.startsWith("long"))[hit?.number ?? -1]).toContain("rollout");
  });

  it("keeps models apart, and makes all vectors anew when a model gives other ones", async () => {
    const database = opened();
    const store = createStore(database);
    await store.put(NOTES, "a", { content: "ships" });
    const first = new TestEmbedder("test:one");
    const index = await embedAll(database, first);
    const second = new TestEmbedder("test:two");
    second.vectorOf = () => [1, 1];
    const other = await embedAll(database, second);
    expect([first.asked.length, second.asked.length]).toEqual([1, 1]);
    expect(count(database, "store_passages")).toBe(2);
    expect(await nearest(index, database, "harbour")).toEqual(["a"]);
    expect(await nearest(other, database, "anything")).toEqual(["a"]);
    first.vectorOf = (text) => Array.from({ length: 7 }, (_value, at) => text.length + at);
    expect(await nearest(index, database, "harbour")).toEqual([]);
    expect(await index.waiting(9)).toBe(1);
    await embedAll(database, first);
    expect(await nearest(index, database, "harbour")).toEqual(["a"]);
    expect(count(database, "store_passages")).toBe(2);
  });

  it("forgets models that were not used for long", async () => {
    const database = opened();
    const store = createStore(database);
    await store.put(NOTES, "a", { content: "ships" });
    await embedAll(database, new TestEmbedder("test:old"));
    await store.put(NOTES, "b", { content: "port" });
    await forgetUnusedModels(database, { usedBefore: Date.now() - 60_000, signal });
    expect([count(database, "store_models"), count(database, "store_unembedded")]).toEqual([1, 1]);
    await forgetUnusedModels(database, { usedBefore: Date.now() + 60_000, signal });
    for (const table of ["store_models", "store_passages", "store_unembedded"])
      expect(count(database, table)).toBe(0);
  });
});

describe("a worker", () => {
  it("loses nothing that is written while the service is down", async () => {
    const database = opened();
    const store = createStore(database);
    const embedder = new TestEmbedder();
    const index = new EmbeddingIndex(database, embedder);
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
    expect((await nearest(index, database, "harbour")).toSorted()).toEqual(["a", "b"]);
  });

  it("leaves out a text that is refused, and embeds the others", async () => {
    const database = opened();
    const store = createStore(database);
    for (const key of ["a", "bad", "c"]) await store.put(NOTES, key, { content: "ships" });
    const embedder = new TestEmbedder();
    embedder.before = async (texts) => {
      embedder.failure = texts.some((text) => text.startsWith("bad")) ? REFUSED : undefined;
    };
    const index = await embedAll(database, embedder);
    expect((await nearest(index, database, "port")).toSorted()).toEqual(["a", "c"]);
    await store.put(NOTES, "bad", { content: "dock" });
    expect(await index.waiting(9)).toBe(1);
  });

  it("gives nothing up to a service that refuses everything", async () => {
    const database = opened();
    await createStore(database).put(NOTES, "a", { content: "ships" });
    const embedder = new TestEmbedder();
    embedder.failure = REFUSED;
    const index = new EmbeddingIndex(database, embedder);
    const worker = startWorker(index);
    while (!embedder.asked.includes("memory")) await new Promise((resolve) => setTimeout(resolve, 2));
    await worker.close();
    expect(await index.waiting(9)).toBe(1);
  });

  it("embeds again what was changed while its vector was made", async () => {
    const database = opened();
    const store = createStore(database);
    await store.put(NOTES, "a", { content: "ships" });
    const embedder = new TestEmbedder();
    embedder.before = async (texts) => {
      if (texts.includes("a\nships")) await store.put(NOTES, "a", { content: "tea" });
    };
    const index = await embedAll(database, embedder);
    expect(embedder.asked).toEqual(["a\nships", "a\ntea"]);
    expect(await nearest(index, database, "coffee")).toEqual(["a"]);
    expect(await nearest(index, database, "harbour")).toEqual([]);
  });

  it("shares the work with other processes, and takes over that of one that ended", async () => {
    const file = join(temporaryFolder(), "store.db");
    const databases = [opened(file), opened(file)];
    const store = createStore(databases[0]!);
    await store.batch(
      Array.from({ length: 200 }, (_, index) => ({
        namespace: NOTES,
        key: `k${index}`,
        value: { content: `ships ${index}` },
      })),
    );
    // One that took some and was killed.
    const time = { now: Date.now() };
    const dead = new EmbeddingIndex(databases[0]!, new TestEmbedder(), () => time.now);
    expect(await dead.claim(20)).toHaveLength(20);
    const embedders = [new TestEmbedder(), new TestEmbedder()];
    const indexes = embedders.map((embedder, at) => new EmbeddingIndex(databases[at]!, embedder));
    const workers = indexes.map((index) => startWorker(index));
    while ((await indexes[0]!.waiting(99)) > 20) await new Promise((resolve) => setTimeout(resolve, 2));
    await Promise.all(workers.map((worker) => worker.close()));
    const asked = embedders.flatMap((embedder) => embedder.asked);
    expect([asked.length, new Set(asked).size]).toEqual([180, 180]);
    // Its time is over, also by a clock that went back meanwhile.
    for (const now of [time.now + 200_000, time.now - 3_600_000]) {
      const heir = new EmbeddingIndex(databases[1]!, new TestEmbedder(), () => now);
      const taken = await heir.claim(99);
      expect(taken).toHaveLength(20);
      await dead.release(taken);
      expect(await dead.claim(99)).toHaveLength(20);
    }
  });
});
