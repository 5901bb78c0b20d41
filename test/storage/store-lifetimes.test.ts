import type { PutOperation } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import type { Lifetime, TtlConfig } from "../../src/storage/memories/contracts.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { opened } from "./support.ts";

const MINUTE = 60_000;

function open(ttl?: TtlConfig) {
  const time = { now: 1_000 * MINUTE };
  const database = opened();
  const store = createStore(database, { clock: () => time.now, ...(ttl === undefined ? {} : { ttl }) });
  const stored = () => database.prepare("SELECT count(*) FROM store_items").pluck().get();
  return { store, time, database, stored };
}

describe("an item with a lifetime", () => {
  it("takes its namespace along", async () => {
    const { store, time } = open();
    await store.put(["a", "b"], "k", {}, undefined, { ttl: 1 });
    await store.put(["a", "c"], "k", {});
    time.now += MINUTE;
    expect(await store.listNamespaces()).toEqual([["a", "c"]]);
  });

  it.each([
    ["get", { refreshOnRead: true }, undefined, true],
    ["get", { refreshOnRead: false }, undefined, false],
    ["get", { refreshOnRead: true }, false, false],
    ["get", { refreshOnRead: false }, true, true],
    ["search", {}, undefined, true],
    ["search", { refreshOnRead: true }, false, false],
  ] as const)("lives again after %s with %j and refreshTtl %s: %s", async (way, ttl, refreshTtl, lives) => {
    const { store, time } = open(ttl);
    await store.put(["a"], "k", { n: 1 }, undefined, { ttl: 10 });
    time.now += 6 * MINUTE;
    const options = refreshTtl === undefined ? {} : { refreshTtl };
    if (way === "get") expect(await store.get(["a"], "k", options)).not.toBeNull();
    else expect(await store.search(["a"], options)).toHaveLength(1);
    time.now += 6 * MINUTE;
    expect((await store.get(["a"], "k", { refreshTtl: false })) !== null).toBe(lives);
  });

  it("gets its time from the store when put says nothing, and none when it says null", async () => {
    const { store, time } = open({ defaultTtl: 2, refreshOnRead: false });
    const puts: (PutOperation & Lifetime)[] = [
      { namespace: ["a"], key: "default", value: {} },
      { namespace: ["a"], key: "own", value: {}, ttl: 3 },
      { namespace: ["a"], key: "ever", value: {}, ttl: null },
    ];
    await store.batch(puts);
    const alive = async () => (await store.search(["a"])).map(({ key }) => key);
    time.now += 2 * MINUTE;
    expect(await alive()).toEqual(["ever", "own"]);
    time.now += MINUTE;
    expect(await alive()).toEqual(["ever"]);
    // A put without a lifetime takes an earlier one away.
    await store.put(["a"], "own", {}, undefined, { ttl: null });
    time.now += 1e6 * MINUTE;
    expect(await alive()).toEqual(["ever", "own"]);
  });

  it("is swept by a write, at most once in the interval", async () => {
    const { store, time, stored } = open({ sweepIntervalMinutes: 5 });
    await store.put(["a"], "first", {}, undefined, { ttl: 1 });
    time.now += 2 * MINUTE;
    await store.put(["a"], "second", {}, undefined, { ttl: 1 });
    expect(stored()).toBe(2);
    time.now += 4 * MINUTE;
    await store.put(["a"], "third", {});
    await expect.poll(stored).toBe(1);
  });

  it("is read also where its new time cannot be stored", async () => {
    const { store, database } = open();
    await store.put(["a"], "k", {}, undefined, { ttl: 1 });
    database.pragma("query_only = ON");
    expect((await store.get(["a"], "k"))?.key).toBe("k");
  });

  it("does not touch the full-text index when it is only read", async () => {
    const { store, database } = open();
    await store.put(["a"], "k", { content: "harbour" }, undefined, { ttl: 1 });
    const size = () => database.prepare("SELECT sum(length(block)) FROM store_text_data").pluck().get();
    const before = size();
    for (let read = 0; read < 20; read += 1) await store.get(["a"], "k");
    expect(size()).toBe(before);
    database.exec("INSERT INTO store_text (store_text) VALUES ('integrity-check')");
  });
});
