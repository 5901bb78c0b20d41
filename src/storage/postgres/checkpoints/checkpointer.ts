/** Checkpoints of LangGraph in Postgres, and the history of threads. */
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointTuple,
  DeltaChannelHistory,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { BaseCheckpointSaver, WRITES_IDX_MAP, copyCheckpoint } from "@langchain/langgraph-checkpoint";
import { mapAtMost } from "../../../core/concurrency.ts";
import { groupBy } from "../../../core/group-by.ts";
import type { Checkpoints, FencingToken, ThreadStep, WrittenMessages } from "../../../runs/thread-ports.ts";
import { FencedOffError } from "../../../runs/thread-ports.ts";
import type { Principal } from "../../../runs/run.ts";
import type { GraphAddress } from "../../checkpoints/address.ts";
import { readAddress, configAt, missingField, timeOfId } from "../../checkpoints/address.ts";
import { LargeValues } from "../../checkpoints/large-values.ts";
import { mentions, withBytes } from "../../checkpoints/serializer.ts";
import { type WriteRow, PASSING, PassingWrites, UNFINISHED_CHANNELS } from "../../checkpoints/writes.ts";
import { TaskResults, ObservedPromise, addSends, hasMetadata, revive } from "../../checkpoints/writes.ts";
import { change, first } from "../../../runs/sql/steps.ts";
import { type Access, postgresEngine, query, sendable, unhurried } from "../engine.ts";
import { postgresError } from "../errors.ts";
import { PARALLEL_READS, postgresBlobs } from "./blobs.ts";
import { sql } from "./queries.ts";
import { BYTES_IN_OBJECTS, type LargeObjects } from "./objects.ts";

interface CheckpointRow {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  seq: number;
  type: string;
  checkpoint: Uint8Array;
  metadata: Uint8Array;
}

/** A checkpoint of a thread's own graph, among those that led to another one. */
interface Link {
  id: string;
  parent: string | null;
  step: number;
  source: string;
  made_at: string;
}

/** A write, or a checkpoint that stores the value of a channel and has no write to it. */
type HistoryRow = Omit<WriteRow, "task_id"> & { id: string; found: boolean; task_id: string | null };

/** A query that stores something, unless the thread was taken with a token that this process does not hold. */
const ifHeld = (put: string): string =>
  `WITH ${sql("held")}, put AS (${put}) SELECT count(*) > 0 AS held FROM held`;
const ADD_WRITES = ifHeld(`${sql("put writes")} DO NOTHING`);
const REPLACE_WRITES = ifHeld(
  `${sql("put writes")} DO UPDATE SET channel = excluded.channel, type = excluded.type, value = excluded.value`,
);

/** Checkpoints go first: without them it does not count as a thread any more. */
const CHECKPOINT_TABLES = ["checkpoints", "checkpoint_writes", "checkpoint_blobs", "thread_fences"];

/** Checkpoints that one query of a list reads. */
const LIST_PAGE = 50;

/** The facts about threads that this process keeps. */
interface ProcessState {
  readonly held: Map<string, FencingToken>;
  readonly results: TaskResults;
  readonly passing: PassingWrites;
  /** All that is being stored. */
  readonly underWay: Set<Promise<unknown>>;
}

/**
 * Stores LangGraph's data with one statement per item. A step's checkpoint is stored after the results it was made of.
 * A thread that another process has taken since gets nothing.
 */
export class PostgresCheckpointer extends BaseCheckpointSaver implements Checkpoints {
  readonly #access: Access;
  readonly #objects: LargeObjects | undefined;
  readonly #large: LargeValues;
  readonly #state: ProcessState;

  /** With `objects`, large values are in S3. */
  constructor(
    access: Access,
    objects?: LargeObjects,
    state: ProcessState = {
      held: new Map(),
      results: new TaskResults(),
      passing: new PassingWrites(),
      underWay: new Set(),
    },
  ) {
    super();
    this.#access = access;
    this.#objects = objects;
    this.#state = state;
    this.serde = withBytes(this.serde, postgresError);
    this.#large = new LargeValues(postgresBlobs(access, objects), () => this.serde);
  }

  /** Returns the checkpointer for threads of one principal; both share the writes under way. */
  of(principal: Principal): PostgresCheckpointer {
    return new PostgresCheckpointer(this.#access.of(principal), this.#objects, this.#state);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId: thread, namespace, checkpointId: id } = readAddress(config);
    if (thread === undefined) return undefined;
    await this.#settled();
    const values = { thread, namespace };
    const [row] = await (id === undefined
      ? query<CheckpointRow>(this.#access, sql("newest checkpoint"), values)
      : query<CheckpointRow>(this.#access, sql("checkpoint"), { ...values, id }));
    return row && this.#tuple(row, id === undefined ? undefined : config);
  }

  async #tuple(row: CheckpointRow, config?: RunnableConfig): Promise<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: namespace, parent_checkpoint_id: parent } = row;
    const graph = { thread, namespace };
    const writes = await query<WriteRow>(this.#access, sql("writes"), { ...graph, id: row.checkpoint_id });
    const pendingWrites = await revive(writes, this.#large, PARALLEL_READS);
    this.#state.passing.note(graph, row.checkpoint_id, pendingWrites);
    const checkpoint = await this.#large.loadsCheckpoint(row.type, row.checkpoint);
    if (checkpoint.v < 4 && parent !== null) {
      const before = await query<WriteRow>(this.#access, sql("writes"), { ...graph, id: parent });
      const sends = await revive(before, this.#large, PARALLEL_READS);
      addSends(checkpoint, sends, () => this.getNextVersion(undefined));
    }
    return {
      checkpoint,
      metadata: await this.#large.loadsMetadata(row.type, row.metadata),
      config: config ?? configAt(graph, row.checkpoint_id),
      pendingWrites,
      ...(parent === null ? {} : { parentConfig: configAt(graph, parent) }),
    };
  }

  override async *list(
    config: RunnableConfig,
    { limit = Infinity, before, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { threadId: thread, checkpointId: id } = readAddress(config);
    const namespace = config.configurable?.["checkpoint_ns"] as unknown;
    const given = { thread: thread ?? null, namespace: typeof namespace === "string" ? namespace : null };
    await this.#settled();
    let below = before === undefined ? Number.MAX_SAFE_INTEGER : await this.#seqOf(before);
    for (let left = limit; left > 0;) {
      const values = { ...given, id: id ?? null, below, limit: LIST_PAGE };
      const rows = await query<CheckpointRow>(this.#access, sql("list of checkpoints"), values);
      for (const row of rows) {
        below = row.seq;
        const tuple = await this.#tuple(row);
        if (!hasMetadata(tuple, filter)) continue;
        yield tuple;
        left -= 1;
        if (left <= 0) return;
      }
      if (rows.length < LIST_PAGE) return;
    }
  }

  async #seqOf(config: RunnableConfig): Promise<number> {
    const { threadId: thread, namespace, checkpointId: id } = readAddress(config);
    const [row] = await query<CheckpointRow>(this.#access, sql("checkpoint"), { thread, namespace, id });
    return row?.seq ?? 0;
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    return this.#watched(this.#putCheckpoint(config, checkpoint, metadata));
  }

  async #putCheckpoint(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
    const { threadId: thread, namespace, checkpointId: parent } = readAddress(config);
    if (thread === undefined) throw missingField("thread_id");
    const graph = { thread, namespace };
    const token = this.#tokenOf(thread);
    const copy = copyCheckpoint(checkpoint);
    const [type, state, facts] = await this.#large.dumpsCheckpoint(copy, metadata, graph);
    // LangGraph starts to store a checkpoint while results it was made from are still on their way.
    for (const result of this.#state.results.of(graph, parent)) await result;
    await this.#store(ifHeld(sql("put checkpoint")), thread, {
      ...token,
      ...graph,
      id: checkpoint.id,
      parent: parent ?? null,
      step: metadata.step,
      source: metadata.source,
      madeAt: checkpoint.ts,
      channels: Object.keys(checkpoint.channel_values),
      type,
      checkpoint: state,
      metadata: facts,
    });
    if (this.#state.passing.take(graph, parent))
      await query(this.#access, sql("passed"), { ...graph, id: parent, passing: PASSING });
    return configAt(graph, checkpoint.id);
  }

  /** Stores the writes of a task. LangGraph awaits this at the end of the step only. */
  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId: thread, namespace, checkpointId: id } = readAddress(config);
    if (thread === undefined) throw missingField("thread_id");
    if (id === undefined) throw missingField("checkpoint_id");
    this.#state.passing.note({ thread, namespace }, id, writes);
    const stored = this.#watched(this.#putResults({ thread, namespace, id, task: taskId }, writes));
    this.#state.results.add({ thread, namespace }, id, taskId, stored);
    return stored;
  }

  async #putResults(place: GraphAddress & { id: string; task: string }, writes: readonly PendingWrite[]) {
    const token = this.#tokenOf(place.thread);
    const encoded = await Promise.all(writes.map(([, value]) => this.#large.dumpsTyped(value, place)));
    // A task's own results are written once; errors, interrupts and answers replace the earlier ones.
    const replaces = writes.every(([channel]) => channel in WRITES_IDX_MAP);
    await this.#store(replaces ? REPLACE_WRITES : ADD_WRITES, place.thread, {
      ...token,
      ...place,
      indexes: writes.map(([channel], index) => WRITES_IDX_MAP[channel] ?? index),
      names: writes.map(([channel]) => channel),
      types: encoded.map(([type]) => type),
      values: encoded.map(([, data]) => sendable(data)),
    });
  }

  async #store(put: string, thread: string, values: Record<string, unknown>): Promise<void> {
    const [row] = await query<{ held: boolean }>(this.#access, put, values);
    if (row?.held !== true) throw new FencedOffError(thread);
  }

  #tokenOf(thread: string): { run: number | null; claim: number | null } {
    return this.#state.held.get(thread) ?? { run: null, claim: null };
  }

  /** Waits for pending writes, so that a read finds them. */
  async #settled(): Promise<void> {
    await Promise.allSettled(this.#state.underWay);
  }

  #watched<T>(work: Promise<T>): ObservedPromise<T> {
    const observed = ObservedPromise.of(work);
    this.#state.underWay.add(observed);
    const forget = (): void => void this.#state.underWay.delete(observed);
    observed.then(forget, forget);
    return observed;
  }

  async sync(): Promise<void> {
    await this.#settled();
    // A small commit that is on the disk, and with it all commits before.
    await query(
      this.#access,
      "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'deepagent', '')",
    );
  }

  async startOver(threadId: string, token: FencingToken): Promise<void> {
    const taken = await query(this.#access, sql("take"), { thread: threadId, ...token });
    if (taken.length === 0) throw new FencedOffError(threadId);
    this.#state.held.set(threadId, token);
    this.#state.results.startOver(threadId);
  }

  async tidyThread(threadId: string, token: FencingToken): Promise<void> {
    await this.#settled();
    const held = this.#state.held.get(threadId);
    if (held?.run === token.run && held.claim === token.claim) this.#state.held.delete(threadId);
    await postgresEngine(this.#access).note(function* () {
      if ((yield* first(sql("hold"), { thread: threadId, ...token })) === undefined) return;
      for (const rows of ["checkpoints", "writes", "blobs"])
        yield* change(sql(`delete nested ${rows}`), { thread: threadId });
    });
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#settled();
    await postgresEngine(this.#access).note(function* () {
      for (const table of CHECKPOINT_TABLES)
        yield* change(`DELETE FROM ${table} WHERE thread_id = @id`, { id: threadId });
    });
  }

  async usedBytes(): Promise<number> {
    const sizes = CHECKPOINT_TABLES.map((table) => `pg_total_relation_size('${table}')`).join(" + ");
    const sum = `SELECT ${sizes} + ${BYTES_IN_OBJECTS} AS bytes`;
    const [row] = await query<{ bytes: number }>(this.#access, sum);
    return row?.bytes ?? 0;
  }

  async returnSpace(): Promise<number> {
    const before = await this.usedBytes();
    for (const table of CHECKPOINT_TABLES) await this.#access.pool.query(unhurried(`VACUUM ${table}`));
    return Math.max(0, before - (await this.usedBytes()));
  }

  async threads(): Promise<string[]> {
    await this.#settled();
    return (await query<{ id: string }>(this.#access, sql("threads"))).map(({ id }) => id);
  }

  async steps(thread: string): Promise<ThreadStep[]> {
    await this.#settled();
    const way = `${sql("chain")} SELECT * FROM chain ORDER BY depth DESC`;
    const chain = await query<Link>(this.#access, way, { thread, id: null });
    type Written = { id: string; type: string; value: Uint8Array };
    const written = groupBy(await query<Written>(this.#access, sql("messages"), { thread }), ({ id }) => id);
    const messagesAt = (checkpoint: string): Promise<unknown[]> =>
      Promise.all(
        (written.get(checkpoint) ?? []).map(({ type, value }) => this.#large.loadsTyped(type, value)),
      );
    // A checkpoint of input alone has nothing in the channels yet.
    const made = chain.filter(({ source }) => source !== "input");
    return mapAtMost(PARALLEL_READS, made, async ({ id, parent, step, made_at }) => {
      // The writes at the checkpoint before make the step.
      const messages = parent === null ? [] : await messagesAt(parent);
      return { number: step, checkpointId: id, time: Date.parse(made_at), messages };
    });
  }

  /** Finds the messages that hold `text`, in graphs inside the thread too. */
  async writtenWith(thread: string, text: string): Promise<WrittenMessages[]> {
    await this.#settled();
    type Written = { namespace: string; id: string; type: string; value: Uint8Array };
    const rows = await query<Written>(this.#access, sql("written with"), { thread, text });
    const found = await mapAtMost(PARALLEL_READS, rows, async ({ namespace, id, type, value }) => {
      if (!mentions(await this.#large.whole(type, value), text)) return [];
      return [{ namespace, time: timeOfId(id), messages: await this.#large.loadsTyped(type, value) }];
    });
    return found.flat();
  }

  async copyThread(thread: string, target: string, checkpointId: string | null = null): Promise<boolean> {
    await this.#settled();
    const place = { thread, target };
    return postgresEngine(this.#access).write(function* () {
      const last = `${sql("chain")} SELECT * FROM chain ORDER BY depth LIMIT 1`;
      const begin = yield* first<Link>(last, { thread, id: checkpointId });
      if (begin === undefined) return false;
      const newest = yield* first<{ id: string }>(sql("newest id"), { thread });
      yield* change(sql("copy blobs"), place);
      yield* change(`${sql("chain")}\n${sql("copy checkpoints")}`, { ...place, id: begin.id });
      yield* change(`${sql("chain")}\n${sql("copy writes")}`, {
        ...place,
        id: begin.id,
        isNewest: newest?.id === begin.id ? 1 : 0,
        unfinished: JSON.stringify(UNFINISHED_CHANNELS),
      });
      return true;
    });
  }

  /** Returns histories without the writes at the checkpoint itself, which is the newest one by default. */
  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { threadId: thread, namespace, checkpointId: id = null } = readAddress(options.config);
    const channels = [...new Set(options.channels)];
    const histories = new Map(channels.map((name): [string, DeltaChannelHistory] => [name, { writes: [] }]));
    if (thread === undefined) return Object.fromEntries(histories);
    await this.#settled();
    const place = { thread, namespace };
    const rows = await query<HistoryRow>(this.#access, sql("history"), { ...place, id, channels });
    const seeds = groupBy(
      rows.filter(({ found }) => found),
      (row) => row.id,
    );
    type Seed = { id: string; type: string; checkpoint: Uint8Array };
    const ids = [...seeds.keys()];
    for (const row of await query<Seed>(this.#access, sql("seeds"), { ...place, ids })) {
      const wanted = (seeds.get(row.id) ?? []).map(({ channel }) => channel);
      const { channel_values: values } = await this.#large.loadsCheckpoint(row.type, row.checkpoint, wanted);
      for (const channel of wanted) {
        const history = histories.get(channel);
        if (history !== undefined) history.seed = values[channel];
      }
    }
    const isWrite = (row: HistoryRow): row is HistoryRow & WriteRow => row.task_id !== null;
    for (const write of await revive(rows.filter(isWrite), this.#large, PARALLEL_READS))
      histories.get(write[1])?.writes.push(write);
    return Object.fromEntries(histories);
  }
}
