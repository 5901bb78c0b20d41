import { join } from "node:path";
import { HumanMessage } from "@langchain/core/messages";
import { DeltaSnapshot, emptyCheckpoint, MemorySaver, uuid6 } from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { describe, expect, it } from "vitest";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { type Migration, migrate, migrateInTurns } from "../../src/storage/sqlite/migrations.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { encodeNamespace } from "../../src/storage/sqlite/memories/namespaces.ts";
import { STORE_MIGRATIONS } from "../../src/storage/sqlite/memories/schema.ts";
import { opened, temporaryFolder } from "./support.ts";

const bring = (database: Database, component: string, steps: readonly Migration[]): Promise<void> =>
  migrateInTurns(database, component, steps, () => undefined);

const LONG = `${"a text, \ud83d\ude80 é \\ud83d ".repeat(60_000)}end`;
const longest = (database: Database, table: string, column: string): unknown =>
  database.prepare(`SELECT max(length(${column})) FROM ${table}`).pluck().get();

/** What an older version, and LangGraph's own saver, would store whole. */
const OLD_VALUES: Record<string, unknown> = {
  files: { "/large.txt": { content: LONG, size: LONG.length }, __proto__: null },
  messages: [new HumanMessage({ content: LONG, id: "m" }), new HumanMessage("short")],
  snapshot: new DeltaSnapshot(
    Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`/${i}`, { content: `${i} `.repeat(3000) }])),
  ),
  list: new DeltaSnapshot(Array.from({ length: 100 }, (_, i) => `${i} `.repeat(7000))),
  reference: [`deepagent-blobs:text:${"A".repeat(43)}`, LONG],
  map: new Map([["key", LONG]]),
};

async function fillAsBefore(database: Database): Promise<void> {
  migrate(database, "checkpoints", CHECKPOINT_MIGRATIONS.slice(0, 4));
  // The stock saver stores every value whole.
  const stock = new SqliteSaver(database);
  const checkpoint = { ...emptyCheckpoint(), id: uuid6(0), channel_values: OLD_VALUES };
  const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const at = await stock.put(config, checkpoint, { source: "loop", step: 0, parents: {} });
  const writes = Object.entries(OLD_VALUES).map(([name, value]): [string, unknown] => [name, value]);
  await stock.putWrites(at, writes, "task");
}

describe("large values of an older version, divided by a thread", () => {
  it("of threads: everything is read as it was, and nothing is in one large row", async () => {
    const database = opened(join(temporaryFolder(), "checkpoints.db"));
    await fillAsBefore(database);
    const before = await new SqliteSaver(database).getTuple({ configurable: { thread_id: "t" } });
    await bring(database, "checkpoints", CHECKPOINT_MIGRATIONS);
    const saver = createCheckpointer(database);
    const after = await saver.getTuple({ configurable: { thread_id: "t" } });
    expect(after?.checkpoint.channel_values).toEqual(before?.checkpoint.channel_values);
    expect(after?.pendingWrites).toEqual(before?.pendingWrites);
    expect(longest(database, "checkpoint_blobs", "text")).toBeLessThan(400_000);
    // A map stays whole: what its constructor gets is not looked into.
    const others = database.prepare("SELECT max(length(value)) FROM writes WHERE channel <> 'map'").pluck();
    expect(others.get()).toBeLessThan(100_000);
    await saver.deleteThread("t");
    expect(database.prepare("SELECT count(*) FROM checkpoint_blobs").pluck().get()).toBe(0);
  });

  it("of packs", async () => {
    const database = opened(join(temporaryFolder(), "checkpoints.db"));
    migrate(database, "checkpoints", CHECKPOINT_MIGRATIONS.slice(0, 4));
    const node = await import("node:zlib");
    const [, written] = await new MemorySaver().serde.dumpsTyped({ "/large.txt": { content: LONG } });
    const ids = [uuid6(0), uuid6(1)];
    const steps = ids.map((id, index) => ({
      id,
      parent: ids[index - 1] ?? null,
      checkpoint: JSON.stringify({ ...emptyCheckpoint(), id }),
      metadata: JSON.stringify({ source: "loop", step: index, parents: {} }),
      writes: [["task", 0, "files", "json", Buffer.from(written).toString()]],
    }));
    database
      .prepare("INSERT INTO packed_checkpoints (thread_id, first_id, last_id, pack) VALUES ('t', ?, ?, ?)")
      .run(ids[0], ids[1], node.deflateRawSync(JSON.stringify(steps)));
    database.exec("CREATE TABLE large (x); INSERT INTO large VALUES (zeroblob(2000000))");
    await bring(database, "checkpoints", CHECKPOINT_MIGRATIONS);
    const pack = database.prepare<[], Buffer>("SELECT pack FROM packed_checkpoints").pluck().get();
    expect(node.inflateRawSync(pack ?? "").length).toBeLessThan(20_000);
    const config = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: ids[1] } };
    const tuple = await createCheckpointer(database).getTuple(config);
    expect(tuple?.pendingWrites).toEqual([["task", "files", { "/large.txt": { content: LONG } }]]);
  });

  it("of memories: they are read, found, replaced and deleted as before", async () => {
    const database = opened(join(temporaryFolder(), "agent.db"));
    migrate(database, "store", STORE_MIGRATIONS.slice(0, 4));
    const put = database.prepare(`
INSERT INTO store_items (namespace, key, value, text, indexed, version, created_at, updated_at)
VALUES ('${encodeNamespace(["n"])}', ?, ?, ?, 1, 3, 1, 1)`);
    const values: Record<string, Record<string, unknown>> = {
      content: { content: `needle ${LONG}` },
      fields: { title: "hay", parts: [{ text: LONG }, "deepagent-parts:0-1"] },
      bytes: { content: "A".repeat(1_500_000), encoding: "base64" },
      short: { content: "a needle, too" },
    };
    const texts: Record<string, string | null> = { fields: `hay ${LONG}`, bytes: "" };
    for (const [key, value] of Object.entries(values)) {
      put.run(key, JSON.stringify(value), texts[key] ?? null);
    }
    await bring(database, "store", STORE_MIGRATIONS);
    const store = createStore(database);
    for (const [key, value] of Object.entries(values)) {
      expect(await store.getVersioned(["n"], key)).toMatchObject({
        value,
        version: expect.stringMatching(/\.3$/),
      });
    }
    const found = async (query: string) =>
      (await store.search(["n"], { query })).map(({ key }) => key).toSorted();
    expect(await found("needle")).toEqual(["content", "short"]);
    expect(await found("hay")).toEqual(["fields"]);
    expect(longest(database, "store_items", "value")).toBeLessThan(1000);
    expect(longest(database, "store_parts", "text")).toBeLessThan(400_000);
    database.exec("INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)");
    await store.put(["n"], "content", { content: "other" });
    await store.delete(["n"], "fields");
    await store.delete(["n"], "bytes");
    expect([await found("needle"), await found("hay")]).toEqual([["short"], []]);
    expect(database.prepare("SELECT count(*) FROM store_parts").pluck().get()).toBe(0);
    database.exec("INSERT INTO store_text (store_text, rank) VALUES ('integrity-check', 1)");
  });
});
