/** Checkpoints of LangGraph in Postgres. */
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
import type { Checkpoints, FencingToken, ThreadStep, WrittenMessages } from "../../../runs/thread-ports.ts";
import { FencedOffError } from "../../../runs/thread-ports.ts";
import type { Principal } from "../../../runs/run.ts";
import { type GraphAddress, readAddress, configAt, missingField } from "../../checkpoints/address.ts";
import { LargeValues } from "../../checkpoints/large-values.ts";
import { withBytes } from "../../checkpoints/serializer.ts";
import { type WriteRow, PASSING, PassingWrites } from "../../checkpoints/writes.ts";
import { TaskResults, ObservedPromise, addSends, hasMetadata, revive } from "../../checkpoints/writes.ts";
import { change, first } from "../../../runs/sql/steps.ts";
import { type Access, postgresEngine, query, sendable, unhurried } from "../engine.ts";
import { postgresError } from "../errors.ts";
import { PARALLEL_READS, postgresBlobs } from "./blobs.ts";
import { sql } from "./queries.ts";
import { deltaHistories, copyThread, threadSteps, listThreads, writtenWith } from "./thread-history.ts";
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
    return listThreads(this.#access);
  }

  async steps(threadId: string): Promise<ThreadStep[]> {
    await this.#settled();
    return threadSteps(this.#access, this.#large, threadId);
  }

  async writtenWith(threadId: string, text: string): Promise<WrittenMessages[]> {
    await this.#settled();
    return writtenWith(this.#access, this.#large, { thread: threadId, text });
  }

  async copyThread(source: string, target: string, checkpointId?: string): Promise<boolean> {
    await this.#settled();
    return copyThread(this.#access, { thread: source, target }, checkpointId ?? null);
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { threadId: thread, namespace, checkpointId: id } = readAddress(options.config);
    const channels = [...new Set(options.channels)];
    if (thread === undefined) return Object.fromEntries(channels.map((name) => [name, { writes: [] }]));
    await this.#settled();
    return deltaHistories(this.#access, this.#large, { thread, namespace, id: id ?? null }, channels);
  }
}
