import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, uuid6, type SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { expect, it } from "vitest";
import { createCheckpointer } from "../../src/storage/checkpointer.ts";
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
