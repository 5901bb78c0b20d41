import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type BaseCheckpointSaver,
  emptyCheckpoint,
  MemorySaver,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import { expect, it } from "vitest";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { opened, temporaryFolder } from "./support.ts";

/** A file that an earlier version wrote, and what that version read from it. */
const FIXTURE = join(import.meta.dirname, "fixtures/checkpoints-v1");
const fixture = (end: string): Buffer => gunzipSync(readFileSync(`${FIXTURE}.${end}.gz`));

interface Expected {
  threads: Record<string, { state: unknown; steps: unknown }>;
  found: Record<string, unknown>;
}

const at = (thread: string): RunnableConfig => ({ configurable: { thread_id: thread, checkpoint_ns: "" } });

/** The JSON that LangGraph's serialiser makes of it. */
async function asJson(value: unknown): Promise<unknown> {
  const [, data] = await new MemorySaver().serde.dumpsTyped(value);
  return JSON.parse(Buffer.from(data).toString());
}

async function stateOf(saver: BaseCheckpointSaver, config: RunnableConfig): Promise<unknown> {
  const tuple = await saver.getTuple(config);
  const parent = tuple?.parentConfig && (await saver.getTuple(tuple.parentConfig));
  return asJson({
    id: tuple?.checkpoint.id,
    values: tuple?.checkpoint.channel_values,
    metadata: tuple?.metadata,
    writes: tuple?.pendingWrites,
    parent: parent?.checkpoint.id,
    history: await saver.getDeltaChannelHistory({ config, channels: ["messages", "files", "note"] }),
  });
}

const stepsOf = async (saver: SqliteCheckpointer, thread: string): Promise<unknown> =>
  asJson((await saver.steps(thread)).map(({ number, time, messages }) => ({ number, time, messages })));

const foundBy = async (saver: SqliteCheckpointer, text: string): Promise<unknown> => {
  const found = await saver.writtenWith("long", text);
  return asJson(found.map(({ namespace, messages }) => ({ namespace, messages })));
};

it("what an earlier version stored is read as before: packed, in pieces, with bytes, forked, after a clock was set back", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  writeFileSync(file, fixture("db"));
  const expected = JSON.parse(fixture("json").toString()) as Expected;
  const database = opened(file);
  const saver = createCheckpointer(database);
  expect((await saver.threads()).toSorted()).toEqual(Object.keys(expected.threads).toSorted());
  for (const [thread, { state, steps }] of Object.entries(expected.threads)) {
    expect(await stateOf(saver, at(thread))).toEqual(state);
    expect(await stepsOf(saver, thread)).toEqual(steps);
  }
  for (const [text, messages] of Object.entries(expected.found))
    expect(new Set((await foundBy(saver, text)) as unknown[])).toEqual(new Set(messages as unknown[]));
  // Nothing of the earlier tables is left, and a copy of the file is beside it.
  const tables = database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .pluck()
    .all();
  expect(tables.toSorted()).toEqual(["checkpoints", "schema_versions", "thread_fences", "writes"]);
  const backup = opened(`${file}.checkpoints-v1.backup`);
  expect(backup.prepare("SELECT count(*) FROM packed_checkpoints").pluck().get()).toBe(2);
});

it("a thread of an earlier version goes on, and its fence holds", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  writeFileSync(file, fixture("db"));
  const saver = createCheckpointer(opened(file));
  await expect(saver.startOver("long", { run: 3, claim: 1 })).rejects.toThrow(
    "Another server works on thread long",
  );
  await saver.startOver("long", { run: 3, claim: 3 });
  const newest = await saver.getTuple(at("long"));
  const next = { ...emptyCheckpoint(), id: uuid6(1) };
  await saver.put(newest?.config ?? {}, next, { source: "loop", step: 99, parents: {} });
  expect((await saver.steps("long")).at(-1)).toMatchObject({ number: 99, checkpointId: next.id });
});

it("a damaged row of an earlier version is carried over as it is, and told as damage by its readers", async () => {
  const file = join(temporaryFolder(), "checkpoints.db");
  writeFileSync(file, fixture("db"));
  const earlier = opened(file);
  earlier.exec(
    `UPDATE checkpoints SET checkpoint = CAST('{"deepagent-blobs:' AS BLOB) WHERE thread_id = 'clock'`,
  );
  const saver = createCheckpointer(earlier);
  await expect(saver.getTuple(at("clock"))).rejects.toThrow(/^A row of .* is damaged/);
  expect(await saver.getTuple(at("fork"))).toBeDefined();
});
