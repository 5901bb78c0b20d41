import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, uuid6, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { deferred } from "../support/harness-deferred.ts";
import { opened } from "./support.ts";

const METADATA = { source: "loop" as const, step: 0, parents: {} };
const at = (id?: string): RunnableConfig => ({
  configurable: { thread_id: "t", checkpoint_ns: "", ...(id === undefined ? {} : { checkpoint_id: id }) },
});
const checkpoint = (step: number) => ({ ...emptyCheckpoint(), id: uuid6(step) });

/** Encodes the text `slow` only when it may. */
function slowly(serde: SerializerProtocol, whenever: () => Promise<void>): SerializerProtocol {
  return {
    loadsTyped: (type, data) => serde.loadsTyped(type, data),
    dumpsTyped: async (value) => {
      if (value === "slow") await whenever();
      return serde.dumpsTyped(value);
    },
  };
}

it("a checkpoint is stored after the results it was made from, however long those take", async () => {
  const saver = createCheckpointer(opened());
  const may = deferred();
  saver.serde = slowly(saver.serde, () => may.promise);
  const [first, second] = [checkpoint(1), checkpoint(2)];
  await saver.put(at(), first, METADATA);
  const order: string[] = [];
  const results = saver
    .putWrites(at(first.id), [["messages", "slow"]], "task")
    .then(() => order.push("results"));
  const next = saver.put(at(first.id), second, METADATA).then(() => order.push("checkpoint"));
  // Results of other tasks and threads do not wait for it.
  await saver.putWrites(at(first.id), [["messages", "quick"]], "other");
  await saver.put({ configurable: { thread_id: "u", checkpoint_ns: "" } }, first, METADATA);
  expect((await saver.getTuple(at()))?.checkpoint.id).toBe(first.id);
  may.resolve();
  await Promise.all([results, next]);
  expect(order).toEqual(["results", "checkpoint"]);
});

it("no checkpoint is stored whose results could not be, until they are", async () => {
  const saver = createCheckpointer(opened());
  const serde = saver.serde;
  saver.serde = slowly(serde, () => Promise.reject(new Error("disk full")));
  const [first, second] = [checkpoint(1), checkpoint(2)];
  await saver.put(at(), first, METADATA);
  const write = () => saver.putWrites(at(first.id), [["messages", "slow"]], "task");
  await expect(write()).rejects.toThrow("disk full");
  await expect(saver.put(at(first.id), second, METADATA)).rejects.toThrow("disk full");
  expect((await saver.getTuple(at()))?.checkpoint.id).toBe(first.id);
  saver.serde = serde;
  await write();
  await saver.put(at(first.id), second, METADATA);
  expect((await saver.getTuple(at()))?.checkpoint.id).toBe(second.id);
});

describe("a clock that is set back", () => {
  const MINUTE = 60_000;
  const inside = (namespace: string, id?: string): RunnableConfig => ({
    configurable: {
      thread_id: "t",
      checkpoint_ns: namespace,
      ...(id === undefined ? {} : { checkpoint_id: id }),
    },
  });
  /** Made `agoMs` before now, as LangGraph makes them. */
  const made = (agoMs: number) => {
    vi.spyOn(Date, "now").mockReturnValue(1_800_000_000_000 - agoMs);
    return checkpoint(1);
  };
  afterEach(() => vi.restoreAllMocks());

  it("makes no later checkpoint an earlier one, nor loses its results, here and for whoever goes on", async () => {
    const database = opened();
    const saver = createCheckpointer(database);
    const before = made(0);
    await saver.put(at(), before, METADATA);
    const [second, third] = [made(MINUTE), made(MINUTE)];
    // LangGraph stores results while their checkpoint is still on its way.
    await saver.putWrites(at(second.id), [["messages", "of the second"]], "task");
    await saver.put(at(before.id), second, METADATA);
    expect(await saver.getTuple(at())).toMatchObject({
      checkpoint: { id: second.id },
      parentConfig: at(before.id),
      pendingWrites: [["task", "messages", "of the second"]],
    });
    await saver.put(at(second.id), third, METADATA);
    for (const reader of [saver, createCheckpointer(database)]) {
      const newest = await reader.getTuple(at());
      expect(newest?.checkpoint.id).toBe(third.id);
      const parent = newest?.parentConfig && (await reader.getTuple(newest.parentConfig));
      expect(parent?.checkpoint.id).toBe(second.id);
      const listed: string[] = [];
      for await (const tuple of reader.list(at())) listed.push(tuple.checkpoint.id);
      // Lists have the order of ids, which the saver and its users share.
      expect(listed).toEqual([before.id, third.id, second.id]);
    }
    const next = createCheckpointer(database);
    await next.getTuple(at());
    await next.putWrites(at(third.id), [["messages", "of the third"]], "task");
    expect((await next.getTuple(at()))?.pendingWrites).toEqual([["task", "messages", "of the third"]]);
    // What was stored before keeps its place.
    await next.putWrites(at(before.id), [["messages", "of the first"]], "task");
    expect((await next.getTuple(at(before.id)))?.pendingWrites).toEqual([
      ["task", "messages", "of the first"],
    ]);
  });

  it("makes none of a graph inside an earlier one than those of the step it belongs to", async () => {
    const saver = createCheckpointer(opened());
    const outer = made(0);
    await saver.put(at(), outer, METADATA);
    const inner = made(MINUTE);
    await saver.put(inside("tools:1"), inner, METADATA);
    await saver.tidyThread("t");
    expect((await saver.getTuple(inside("tools:1")))?.checkpoint.id).toBe(inner.id);
    await saver.put(at(outer.id), made(MINUTE), METADATA);
    await saver.tidyThread("t");
    expect(await saver.getTuple(inside("tools:1"))).toBeUndefined();
  });

  it("makes the checkpoint that was stored last the newest, whatever its id", async () => {
    const saver = createCheckpointer(opened());
    await saver.put(at(), { ...made(0), id: "2" }, METADATA);
    await saver.put(at("2"), { ...made(0), id: "1" }, METADATA);
    expect((await saver.getTuple(at()))?.config).toEqual(at("1"));
  });

  it("puts no checkpoint that is stored again behind others", async () => {
    const saver = createCheckpointer(opened());
    const [first, second] = [made(0), made(-MINUTE)];
    await saver.put(at(), first, METADATA);
    await saver.put(at(first.id), second, METADATA);
    await saver.startOver("t", { run: 1, claim: 1 });
    await saver.put(at(), first, METADATA);
    expect((await saver.getTuple(at()))?.config).toEqual(at(second.id));
  });
});
