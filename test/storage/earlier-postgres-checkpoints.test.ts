import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { RunnableConfig } from "@langchain/core/runnables";
import { MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { describe, expect, test } from "vitest";
import { PostgresCheckpointer } from "../../src/storage/postgres/checkpoints/checkpointer.ts";
import { openPool } from "../../src/storage/postgres/pool.ts";
import { postgresSuite } from "./postgres-suite.ts";

type Value = string | number | null | string[] | { base64: string };

/** The rows of an earlier version, which stored large values in pieces, and what that version read from them. */
const { rows, expected } = JSON.parse(
  gunzipSync(readFileSync(join(import.meta.dirname, "fixtures/postgres-checkpoints-v2.json.gz"))).toString(),
) as {
  rows: Record<string, Record<string, Value>[]>;
  expected: Record<string, { states: unknown[]; steps: unknown; found: unknown; inside: unknown }>;
};

/** The JSON that LangGraph's serialiser makes of it. */
async function asJson(value: unknown): Promise<unknown> {
  const [, data] = await new MemorySaver().serde.dumpsTyped(value);
  return JSON.parse(Buffer.from(data).toString());
}

const at = (thread: string, id?: string): RunnableConfig => ({
  configurable: { thread_id: thread, checkpoint_ns: "", ...(id === undefined ? {} : { checkpoint_id: id }) },
});

describe("values that an earlier version stored in pieces in Postgres", { tags: "postgres" }, () => {
  const { url, newSchema, closeAtEnd } = postgresSuite();

  const open = async () => {
    const { access } = await openPool({ url: url(), schema: newSchema(), connections: 3 });
    closeAtEnd(() => access.pool.end());
    for (const [table, all] of Object.entries(rows)) {
      for (const row of all) {
        // In the order of `seq`, which is given anew.
        const entries = Object.entries(row).filter(([name]) => name !== "seq");
        const values = entries.map(([, value]) =>
          typeof value === "object" && value !== null && "base64" in value
            ? Buffer.from(value.base64, "base64")
            : value,
        );
        const places = values.map((_, index) => `$${index + 1}`).join(", ");
        const names = entries.map(([name]) => name).join(", ");
        await access.pool.query(`INSERT INTO ${table} (${names}) VALUES (${places})`, values);
      }
    }
    return { pool: access.pool, saver: new PostgresCheckpointer(access) };
  };

  test("are read as before: texts, bytes, snapshots, what looks like a reference, forks and ended subagents", async () => {
    const { saver } = await open();
    for (const [thread, before] of Object.entries(expected)) {
      const states: unknown[] = [];
      for (const { checkpointId } of await saver.steps(thread)) {
        const config = at(thread, checkpointId);
        const tuple = await saver.getTuple(config);
        const history = await saver.getDeltaChannelHistory({
          config,
          channels: ["messages", "files", "note"],
        });
        const { checkpoint, metadata, pendingWrites: writes, parentConfig: parent } = tuple!;
        states.push(await asJson({ values: checkpoint.channel_values, metadata, writes, parent, history }));
      }
      expect(states).toEqual(before.states);
      expect(await asJson(await saver.steps(thread))).toEqual(before.steps);
      expect(await asJson(await saver.writtenWith(thread, "call_write"))).toEqual(before.found);
      expect(await asJson(await saver.writtenWith(thread, "inside"))).toEqual(before.inside);
    }
  });

  test("stay when the thread goes on, is tidied and copied, and go with it", async () => {
    const { pool, saver } = await open();
    const token = { run: 2, claim: 1 };
    await saver.startOver("t", token);
    const newest = await saver.getTuple(at("t"));
    const note = "new ".repeat(50_000);
    const next = { ...emptyCheckpoint(), id: uuid6(1), channel_values: { note } };
    await saver.put(newest!.config, next, { source: "loop", step: 3, parents: {} });
    await saver.tidyThread("t", token);
    expect(await asJson(await saver.writtenWith("t", "inside"))).toEqual(expected["t"]?.inside);
    expect((await saver.getTuple(at("t")))?.checkpoint.channel_values).toEqual({ note });
    await saver.copyThread("t", "copy");
    await saver.deleteThread("t");
    await saver.deleteThread("fork");
    const copied = await saver.steps("copy");
    expect(await asJson(copied.slice(0, -1))).toEqual(expected["t"]?.steps);
    await saver.deleteThread("copy");
    expect((await pool.query("SELECT 1 FROM checkpoint_blobs")).rows).toEqual([]);
  });
});
