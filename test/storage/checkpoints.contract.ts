import { randomBytes } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type BaseCheckpointSaver,
  type Checkpoint,
  emptyCheckpoint,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type Checkpoints, FencedOffError } from "../../src/runs/thread-ports.ts";

/** What runs and LangGraph share: one object is both. */
type Saver = BaseCheckpointSaver & Checkpoints;

export interface CheckpointData {
  /** One more server on the same data. */
  connect(): Promise<Saver>;
  close(): Promise<void>;
}

const at = (thread: string, namespace = "", id?: string): RunnableConfig => ({
  configurable: {
    thread_id: thread,
    checkpoint_ns: namespace,
    ...(id === undefined ? {} : { checkpoint_id: id }),
  },
});
const idOf = (config: RunnableConfig): string => String(config.configurable?.["checkpoint_id"]);

/** What every driver of `Checkpoints` does, whatever it stores threads in. */
export function checkpointsContract(name: string, open: () => Promise<CheckpointData>): void {
  describe(`checkpoints in ${name}`, () => {
    let data: CheckpointData;
    let saver: Saver;

    beforeEach(async () => {
      data = await open();
      onTestFinished(() => data.close());
      saver = await data.connect();
    });

    /** Appends a checkpoint to the thread. */
    const put = async (step: number, parent: RunnableConfig, by = saver): Promise<RunnableConfig> => {
      const checkpoint: Checkpoint = {
        ...emptyCheckpoint(),
        id: uuid6(step),
        channel_values: { text: `text ${step}` },
      };
      return by.put(parent, checkpoint, { source: "loop", step, parents: {} }, {});
    };
    test("writes that pass are there until the next checkpoint, also for another server", async () => {
      const place = await put(0, at("t"));
      await saver.putWrites(place, [["__deepagent_program", { number: 1 }]], "task:1");
      await saver.putWrites(place, [["messages", ["kept"]]], "task");
      const written = async (by = saver) =>
        (await by.getTuple(place))?.pendingWrites?.map(([task, channel]) => [task, channel]).toSorted();
      const other = await data.connect();
      expect(await written(other)).toEqual([
        ["task", "messages"],
        ["task:1", "__deepagent_program"],
      ]);
      await put(1, place, other);
      expect(await written()).toEqual([["task", "messages"]]);
    });

    /** A thread of so many steps, each with a message; gives the place of each. */
    const fill = async (thread: string, steps: number): Promise<RunnableConfig[]> => {
      const places: RunnableConfig[] = [];
      for (let step = 0; step < steps; step += 1) {
        const place = await put(step, places.at(-1) ?? at(thread));
        await saver.putWrites(place, [["messages", [`message ${step}`]]], "task");
        places.push(place);
      }
      return places;
    };
    const textOf = async (config: RunnableConfig, by = saver): Promise<unknown> =>
      (await by.getTuple(config))?.checkpoint.channel_values["text"];

    test("what was stored is read by another server at once, after it was made durable too", async () => {
      await fill("t", 3);
      const other = await data.connect();
      expect(await textOf(at("t"), other)).toBe("text 2");
      await saver.sync();
      expect(await textOf(at("t"), other)).toBe("text 2");
    });

    test("threads are those that have a checkpoint", async () => {
      expect(await saver.threads()).toEqual([]);
      await fill("one", 1);
      await fill("two", 2);
      await saver.startOver("three", { run: 1, claim: 1 });
      expect((await saver.threads()).toSorted()).toEqual(["one", "two"]);
    });

    test("steps lead to the newest checkpoint, oldest first, each with what it added", async () => {
      const places = await fill("t", 4);
      await fill("other", 2);
      const steps = await saver.steps("t");
      expect(steps.map(({ checkpointId }) => checkpointId)).toEqual(places.map(idOf));
      expect(steps.map(({ number }) => number)).toEqual([0, 1, 2, 3]);
      expect(steps.every(({ time }) => Number.isFinite(time))).toBe(true);
      expect(steps.map(({ messages }) => messages)).toEqual([
        [],
        [["message 0"]],
        [["message 1"]],
        [["message 2"]],
      ]);
      expect(await saver.steps("unknown")).toEqual([]);
    });

    test("what was written is found by a text in it, in graphs inside the thread too", async () => {
      await fill("t", 3);
      await fill("other", 3);
      let inner = at("t", "tools:inner");
      for (let step = 0; step < 120; step += 1) {
        inner = await put(step, inner);
        await saver.putWrites(inner, [["messages", [`inside “${step}”`]]], "task");
      }
      const messagesWith = async (text: string, thread = "t"): Promise<unknown[]> =>
        (await saver.writtenWith(thread, text)).map(({ messages }) => messages);
      expect(await messagesWith("message 1")).toEqual([["message 1"]]);
      expect(await messagesWith("“119”")).toEqual([["inside “119”"]]);
      expect(await messagesWith("inside")).toHaveLength(120);
      expect(await messagesWith("nothing of the kind")).toEqual([]);
      expect(await messagesWith("message", "unknown")).toEqual([]);
      const token = { run: 1, claim: 1 };
      await fill("tidy", 40);
      await saver.startOver("tidy", token);
      await saver.tidyThread("tidy", token);
      expect(await messagesWith("message 7", "tidy")).toEqual([["message 7"]]);
      expect(await messagesWith("message", "tidy")).toHaveLength(40);
      const [found] = await saver.writtenWith("t", "“7”");
      expect(found).toMatchObject({ namespace: "tools:inner", time: expect.any(Number) });
      expect(Number.isFinite(found?.time)).toBe(true);
    });

    test("a deleted thread is gone with its results and the steps of its subagents; others are not", async () => {
      const [first] = await fill("t", 3);
      await put(9, at("t", "tools:inner"));
      await fill("other", 2);
      await saver.deleteThread("t");
      expect(await saver.threads()).toEqual(["other"]);
      expect(await saver.getTuple(first ?? at("t"))).toBeUndefined();
      expect(await saver.getTuple(at("t", "tools:inner"))).toBeUndefined();
      expect(await textOf(at("other"))).toBe("text 1");
    });

    test("a later token keeps servers with an earlier one from storing anything", async () => {
      const other = await data.connect();
      await saver.startOver("t", { run: 1, claim: 1 });
      const place = await put(0, at("t"));
      await other.startOver("t", { run: 1, claim: 2 });
      await expect(put(1, place)).rejects.toThrow(FencedOffError);
      await expect(saver.putWrites(place, [["messages", ["late"]]], "task")).rejects.toThrow(FencedOffError);
      expect(await textOf(at("t"), other)).toBe("text 0");
      await put(2, place, other);
      expect(await textOf(at("t"))).toBe("text 2");
    });

    test("what could not be stored may be awaited late, as LangGraph does", async () => {
      const other = await data.connect();
      await saver.startOver("t", { run: 1, claim: 1 });
      const place = await put(0, at("t"));
      await other.startOver("t", { run: 1, claim: 2 });
      const writing = saver.putWrites(place, [["messages", ["late"]]], "task");
      // A rejection that nobody handles yet would fail all tests of the file.
      const chained = [writing.then(() => undefined), writing.finally(() => undefined)];
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect((await Promise.allSettled(chained)).map(({ status }) => status)).toEqual([
        "rejected",
        "rejected",
      ]);
    });

    test("an earlier token is refused; the same one, and that of a later run, is not", async () => {
      await saver.startOver("t", { run: 2, claim: 5 });
      await expect(saver.startOver("t", { run: 2, claim: 4 })).rejects.toThrow(FencedOffError);
      await expect(saver.startOver("t", { run: 1, claim: 9 })).rejects.toThrow(FencedOffError);
      await saver.startOver("t", { run: 2, claim: 5 });
      await saver.startOver("t", { run: 3, claim: 1 });
      await saver.startOver("other", { run: 1, claim: 1 });
    });

    test("a tidied thread has only the messages of its subagents and reads as before", async () => {
      const token = { run: 1, claim: 1 };
      await saver.startOver("t", token);
      const inner = await put(0, at("t", "tools:inner"));
      const long = "long ".repeat(50_000);
      await saver.putWrites(inner, [["messages", ["inside", long]]], "task");
      const [before] = await saver.writtenWith("t", "inside");
      const places = await fill("t", 40);
      const steps = await saver.steps("t");
      await saver.tidyThread("t", token);
      expect(await saver.getTuple(at("t", "tools:inner"))).toBeUndefined();
      expect(before).toMatchObject({ messages: ["inside", long] });
      expect(await saver.writtenWith("t", "inside")).toEqual([before]);
      expect(await saver.steps("t")).toEqual(steps);
      expect(await textOf(at("t"))).toBe("text 39");
      expect(await textOf(places[7] ?? at("t"))).toBe("text 7");
    });

    test("a thread that was taken with a later token is not tidied", async () => {
      await saver.startOver("t", { run: 1, claim: 1 });
      const other = await data.connect();
      await other.startOver("t", { run: 1, claim: 2 });
      await put(0, at("t", "tools:inner"), other);
      await saver.tidyThread("t", { run: 1, claim: 1 });
      expect(await textOf(at("t", "tools:inner"))).toBe("text 0");
    });

    test("a copy is the thread as it was at a checkpoint, and both go on apart", async () => {
      const places = await fill("t", 5);
      const point = idOf(places[2] ?? {});
      expect(await saver.copyThread("t", "copy", point)).toBe(true);
      expect(await saver.copyThread("t", "copy", point)).toBe(true);
      expect(await textOf(at("copy"))).toBe("text 2");
      expect(await saver.steps("copy")).toHaveLength(3);
      await put(7, at("copy", "", point));
      await saver.deleteThread("t");
      expect(await textOf(at("copy"))).toBe("text 7");
    });

    test("there is no copy of a checkpoint that is gone", async () => {
      const [place] = await fill("t", 1);
      expect(await saver.copyThread("t", "copy", uuid6(99))).toBe(false);
      await saver.deleteThread("t");
      expect(await saver.copyThread("t", "copy", idOf(place ?? {}))).toBe(false);
      expect(await saver.threads()).toEqual([]);
    });

    test("deleted threads leave space that can be given back", async () => {
      const empty = await saver.usedBytes();
      const content = randomBytes(500_000).toString("base64");
      await saver.putWrites(await put(0, at("t")), [["files", content]], "task");
      expect(await saver.usedBytes()).toBeGreaterThan(empty + 400_000);
      await saver.deleteThread("t");
      expect(await saver.returnSpace(new AbortController().signal)).toBeGreaterThanOrEqual(0);
      expect(await saver.usedBytes()).toBeLessThan(empty + 200_000);
    });
  });
}
