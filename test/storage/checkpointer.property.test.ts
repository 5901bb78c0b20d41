import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type CheckpointTuple,
  DeltaSnapshot,
  emptyCheckpoint,
  MemorySaver,
  type PendingWrite,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  createCheckpointer,
  type SqliteCheckpointer,
} from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { opened } from "./support.ts";
import { attempts } from "../support/effort.ts";

const thread = fc.constantFrom("a", "a", "a", "b");
const namespace = fc.constantFrom("", "", "", "", "tools:1", "tools:1|tools:2");
const CHANNELS = ["messages", "files"];
const large = fc.integer({ min: 0, max: 2 }).map((number) => `${"é🚀".repeat(1400)}${number}`);
const value = fc.oneof(
  fc.integer(),
  fc.string(),
  fc.constant(null),
  large,
  large.map((text) => ({ deep: [{ text }, text] })),
  large.map((text) => new DeltaSnapshot(Array.from({ length: 40 }, (_, index) => `${index}${text}`))),
);
const where = { thread, namespace, back: fc.nat(6), isNewest: fc.boolean() };
const operation = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record({
      do: fc.constant("put" as const),
      thread,
      namespace,
      /** 0 starts anew, 1 follows the newest, others branch off. */
      back: fc.nat(3),
      values: fc.dictionary(fc.constantFrom(...CHANNELS), value, { noNullPrototype: true }),
      source: fc.constantFrom("input" as const, "loop" as const, "update" as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      thread,
      namespace,
      back: fc.nat(3),
      task: fc.constantFrom("task-1", "task-2"),
      // A task writes either results, or what LangGraph keeps one of.
      writes: fc
        .constantFrom(CHANNELS, ["__error__", "__interrupt__", "__resume__"])
        .chain((channels) =>
          fc.array(fc.tuple(fc.constantFrom(...channels), value), { minLength: 1, maxLength: 3 }),
        ),
    }),
  },
  fc.record({ do: fc.constantFrom("get" as const, "history" as const), ...where }),
  fc.record({
    do: fc.constant("list" as const),
    thread: fc.option(thread),
    namespace: fc.option(namespace),
    source: fc.option(fc.constantFrom("input", "loop")),
    before: fc.option(fc.nat(9)),
    limit: fc.option(fc.integer({ min: 1, max: 4 })),
  }),
  fc.record({ do: fc.constantFrom("delete" as const, "copy" as const), thread }),
  fc.record({ do: fc.constant("reopen" as const) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

const configOf = (thread: string, namespace: string, id?: string): RunnableConfig => ({
  configurable: {
    thread_id: thread,
    checkpoint_ns: namespace,
    ...(id === undefined ? {} : { checkpoint_id: id }),
  },
});

/** What is compared of a tuple; results of tasks have no order among each other. */
const shown = (tuple: CheckpointTuple | undefined) =>
  tuple && {
    id: tuple.checkpoint.id,
    thread: tuple.config.configurable?.["thread_id"] as unknown,
    values: tuple.checkpoint.channel_values,
    metadata: tuple.metadata,
    parent: tuple.parentConfig?.configurable?.["checkpoint_id"] as unknown,
    writes: (tuple.pendingWrites ?? []).map((write) => JSON.stringify(write)).toSorted(),
  };

async function listed(saver: BaseCheckpointSaver, ...options: Parameters<BaseCheckpointSaver["list"]>) {
  const found = [];
  for await (const tuple of saver.list(...options)) found.push(shown(tuple));
  return found;
}

/** The saver and LangGraph's in memory, given the same. */
class Both {
  readonly database: Database = opened();
  readonly memory = new MemorySaver();
  saver: SqliteCheckpointer = createCheckpointer(this.database);
  /** Ids of the checkpoints of each thread and namespace, oldest first. */
  readonly #ids = new Map<string, string[]>();
  /** Copies of threads, with what they are to be however their sources fare. */
  readonly #copies: { target: string; whole: unknown }[] = [];
  #count = 0;

  async do(one: Operation): Promise<void> {
    switch (one.do) {
      case "put":
        return this.#put(one);
      case "write":
        return this.#write(one);
      case "get": {
        const config = this.#place(one);
        expect(shown(await this.saver.getTuple(config))).toEqual(shown(await this.memory.getTuple(config)));
        return;
      }
      case "history": {
        const options = { config: this.#place(one), channels: CHANNELS };
        const walk = BaseCheckpointSaver.prototype.getDeltaChannelHistory;
        expect(await this.saver.getDeltaChannelHistory(options)).toEqual(
          await walk.call(this.memory, options),
        );
        return;
      }
      case "list":
        return this.#list(one);
      case "delete":
        await this.memory.deleteThread(one.thread);
        for (const key of this.#ids.keys()) if (key.startsWith(`${one.thread}/`)) this.#ids.delete(key);
        return this.#delete(one.thread);
      case "copy": {
        const target = `copy-${this.#count++}`;
        const whole = await this.#whole(one.thread);
        if (await this.saver.copyThread(one.thread, target)) this.#copies.push({ target, whole });
        return;
      }
      case "reopen":
        this.saver = createCheckpointer(this.database);
    }
  }

  /** Copies are whole when their sources are gone, and nothing is left of what is deleted. */
  async end(): Promise<void> {
    for (const thread of ["a", "b"]) await this.#delete(thread);
    for (const { target, whole } of this.#copies) {
      expect(await this.#whole(target)).toEqual(whole);
      await this.#delete(target);
    }
    this.database.close();
  }

  async #put({ thread, namespace, back, values, source }: Extract<Operation, { do: "put" }>): Promise<void> {
    const key = `${thread}/${namespace}`;
    const ids = this.#ids.get(key) ?? [];
    const parent = back === 0 ? undefined : ids.at(-back);
    const id = uuid6(this.#count++);
    const channel_versions = Object.fromEntries(Object.keys(values).map((channel) => [channel, 1]));
    const checkpoint = { ...emptyCheckpoint(), id, channel_values: values, channel_versions };
    for (const saver of [this.memory, this.saver]) {
      await saver.put(configOf(thread, namespace, parent), checkpoint, { source, step: 0, parents: {} });
    }
    this.#ids.set(key, [...ids, id]);
  }

  async #write({
    thread,
    namespace,
    back,
    task,
    writes,
  }: Extract<Operation, { do: "write" }>): Promise<void> {
    const id = this.#ids.get(`${thread}/${namespace}`)?.at(-1 - back);
    if (id === undefined) return;
    for (const saver of [this.memory, this.saver]) {
      await saver.putWrites(configOf(thread, namespace, id), writes satisfies PendingWrite[], task);
    }
  }

  async #list({
    thread,
    namespace,
    source,
    before,
    limit,
  }: Extract<Operation, { do: "list" }>): Promise<void> {
    const known = [...this.#ids.values()].flat();
    const config =
      thread === null
        ? { configurable: {} }
        : namespace === null
          ? { configurable: { thread_id: thread } }
          : configOf(thread, namespace);
    const isOrdered = thread !== null && namespace !== null;
    const options = {
      ...(source === null ? {} : { filter: { source } }),
      ...(before === null || known.length === 0
        ? {}
        : { before: { configurable: { checkpoint_id: known[before % known.length] } } }),
      // Of several lists each saver gives another first.
      ...(limit === null || !isOrdered ? {} : { limit }),
    };
    const [own, expected] = [
      await listed(this.saver, config, options),
      await listed(this.memory, config, options),
    ];
    const isCopy = (tuple: (typeof own)[number]) => String(tuple?.thread).startsWith("copy-");
    const byId = (some: typeof own) =>
      isOrdered ? some : some.toSorted((a, b) => (String(a?.id) < String(b?.id) ? -1 : 1));
    expect(byId(own.filter((tuple) => !isCopy(tuple)))).toEqual(byId(expected));
  }

  #place({
    thread,
    namespace,
    back,
    isNewest,
  }: {
    thread: string;
    namespace: string;
    back: number;
    isNewest: boolean;
  }) {
    const id = this.#ids.get(`${thread}/${namespace}`)?.at(-1 - back);
    return configOf(thread, namespace, isNewest ? undefined : id);
  }

  /** The thread's newest checkpoint with the history behind it. */
  async #whole(thread: string): Promise<unknown> {
    const config = configOf(thread, "");
    const { id, values } = shown(await this.saver.getTuple(config)) ?? {};
    return { id, values, history: await this.saver.getDeltaChannelHistory({ config, channels: CHANNELS }) };
  }

  async #delete(thread: string): Promise<void> {
    await this.saver.deleteThread(thread);
    for (const table of TABLES)
      expect([table, this.#rows(table, "thread_id = ?", thread)]).toEqual([table, 0]);
  }

  #rows(table: string, where: string, ...values: string[]): unknown {
    return this.database
      .prepare(`SELECT count(*) FROM ${table} WHERE ${where}`)
      .pluck()
      .get(...values);
  }
}

const TABLES = ["checkpoints", "writes", "thread_fences"];

it("does what LangGraph's saver in memory does, and keeps copies apart from their sources", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 40, maxLength: 140 }), async (operations) => {
      const both = new Both();
      for (const one of operations) await both.do(one);
      await both.end();
    }),
    attempts(25),
  );
});
