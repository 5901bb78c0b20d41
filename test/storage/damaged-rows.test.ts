import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { expect, it } from "vitest";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { opened, temporaryFolder, thrownBy } from "./support.ts";

/** Where the pages of the file are in order, and a text in them is not. */
const DAMAGED = expect.objectContaining({
  code: "storage_corrupt",
  message: expect.stringMatching(/^A row of .* is damaged and cannot be read\. .*restore a backup copy/),
});

it("a memory that is damaged is told as damage, and others are read", async () => {
  const path = join(temporaryFolder(), "memories.db");
  const whole = opened(path);
  for (const key of ["a", "b"]) await createStore(whole).put(["m"], key, { content: `text of ${key}` });
  whole.close();
  const bytes = readFileSync(path);
  bytes.write("....", bytes.indexOf('text of a"}') + "text of".length);
  writeFileSync(path, bytes);
  const store = createStore(opened(path));
  await expect(store.get(["m"], "a")).rejects.toEqual(DAMAGED);
  await expect(store.search(["m"], { query: "text" })).rejects.toEqual(DAMAGED);
  await expect(store.searchText(["m"], "text", 5)).rejects.toEqual(DAMAGED);
  expect((await store.get(["m"], "b"))?.value).toEqual({ content: "text of b" });
});

it("a checkpoint that is damaged is told as damage", async () => {
  const database = opened();
  const saver = createCheckpointer(database);
  const configs: RunnableConfig[] = [{ configurable: { thread_id: "thread", checkpoint_ns: "" } }];
  for (let step = 0; step < 20; step += 1) {
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(step) };
    const metadata = { source: "loop" as const, step, parents: {} };
    configs.push(await saver.put(configs.at(-1) ?? {}, checkpoint, metadata));
  }
  database.exec("UPDATE checkpoints SET checkpoint = CAST(substr(checkpoint, 1, 40) AS BLOB)");
  const config = configs.at(-1) ?? {};
  await expect(saver.getTuple(config)).rejects.toEqual(DAMAGED);
  await expect(saver.getDeltaChannelHistory({ config, channels: ["messages"] })).rejects.toEqual(DAMAGED);
  await expect(saver.steps("thread")).rejects.toEqual(DAMAGED);
});

it("a version of the tables that no program wrote is told as damage", async () => {
  const database = opened();
  createStore(database);
  database.exec("UPDATE schema_versions SET version = -1");
  const damaged = expect.objectContaining({ code: "storage_corrupt" });
  expect(thrownBy(() => createStore(database))).toEqual(damaged);
});
