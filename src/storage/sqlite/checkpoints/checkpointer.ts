import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
  WRITES_IDX_MAP,
  copyCheckpoint,
} from "@langchain/langgraph-checkpoint";
import {
  FencedOffError,
  type FencingToken,
  type ThreadStep,
  type WrittenMessages,
} from "../../../runs/thread-ports.ts";
import { GroupCommit, flushLog, flushesItself } from "../commit.ts";
import {
  type GraphAddress,
  type WriteFields,
  addressOf,
  graphKey,
  keyOf,
  missing,
  threadOf,
} from "../../checkpoints/address.ts";
import {
  type Encoded,
  LargeValues,
  allOf,
  bytesOfWrites,
  encodeWrites,
} from "../../checkpoints/large-values.ts";
import { ObservedPromise, addSends, hasMetadata, revive } from "../../checkpoints/writes.ts";
import { type Database, usedBytes, whenUnlocked } from "../database.ts";
import { unreadable } from "../errors.ts";
import { deleteInPieces, returnSpace } from "../free-space.ts";
import { migrate } from "../migrations.ts";
import { Blobs } from "./blobs.ts";
import { CHANNELS_PER_QUERY, DeltaHistory } from "./delta-history.ts";
import { CheckpointIds } from "./ids.ts";
import { PackedCheckpoints } from "./packed-checkpoints.ts";
import {
  CHECKPOINT_MIGRATIONS,
  type CheckpointStatements,
  type FoundCheckpoint,
  type ReadCheckpoint,
  listCheckpoints,
  prepareRead,
  prepareStatements,
} from "./schema.ts";
import { ThreadChain, ThreadCopy, ThreadFences, ThreadSteps } from "./thread-history.ts";

/** Writes of one task on their way into the database. */
interface Result {
  encoded: WriteFields[] | Promise<WriteFields[]>;
  /** The error with which storing them failed. */
  failure?: unknown;
}

/** Makes a checkpointer over `database`, and its tables when they are missing. The caller closes the database. */
export function createCheckpointer(database: Database): SqliteCheckpointer {
  migrate(database, "checkpoints", CHECKPOINT_MIGRATIONS);
  return new SqliteCheckpointer(database);
}

/**
 * What LangGraph stores, on the tables of its `SqliteSaver`, with every statement prepared once, binary values kept
 * as they are, what comes in quick succession stored in one transaction, superseded checkpoints
 * packed, and the history of delta channels read by one query instead of one per ancestor.
 */
export class SqliteCheckpointer extends BaseCheckpointSaver {
  /** Results that are being stored or could not be, by checkpoint and task. */
  private readonly underWay = new Map<string, Map<string, Result>>();
  /** The connection; whoever opened it closes it. */
  readonly db: Database;
  private readonly commits: GroupCommit;
  /** How often something was stored, and how much of that outlives a power cut. */
  private changes = 0;
  private syncedChanges = 0;
  private readonly sql: CheckpointStatements;
  private readonly ids: CheckpointIds;
  private readonly fences: ThreadFences;
  private readonly threadSteps: ThreadSteps;
  private readonly threadCopy: ThreadCopy;
  private readonly packed: PackedCheckpoints;
  private readonly history: DeltaHistory;
  private readonly large: LargeValues;
  private readonly readOne: ReadCheckpoint;

  constructor(database: Database) {
    super();
    this.db = database;
    const sql = prepareStatements(database);
    this.sql = sql;
    this.ids = new CheckpointIds(database);
    this.fences = new ThreadFences(database);
    this.commits = new GroupCommit(database);
    this.large = new LargeValues(new Blobs(database, this.commits), this.serde, (thrown) =>
      unreadable(thrown, "the database of checkpoints"),
    );
    this.serde = this.large;
    this.packed = new PackedCheckpoints(database);
    const chain = new ThreadChain(database, this.packed);
    this.threadSteps = new ThreadSteps(database, this.serde, chain);
    this.threadCopy = new ThreadCopy(database, chain, this.packed);
    this.history = new DeltaHistory(database, this.packed);
    this.readOne = prepareRead(database, sql);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId, namespace, checkpointId } = this.ids.addressOf(config);
    if (threadId === undefined) return undefined;
    await this.flushed();
    let found = this.readOne(threadId, namespace, checkpointId);
    if (found === undefined && checkpointId !== undefined && (await this.packed.unpack(threadId))) {
      found = this.readOne(threadId, namespace, checkpointId);
    }
    if (found === undefined) return undefined;
    return this.tuple(
      { thread: threadId, namespace },
      found,
      checkpointId === undefined ? undefined : config,
    );
  }

  private async tuple(
    { thread, namespace }: GraphAddress,
    { row, writes }: FoundCheckpoint,
    config?: RunnableConfig,
  ): Promise<CheckpointTuple> {
    const { checkpoint_id: id, parent_checkpoint_id: parent } = row;
    const checkpoint: Checkpoint = await this.serde.loadsTyped(row.type ?? "json", row.checkpoint);
    this.ids.remember(thread, namespace, checkpoint.id, id);
    if (checkpoint.v < 4 && parent !== null) {
      const before = await revive(this.sql.writes.all(thread, namespace, parent), this.serde);
      addSends(checkpoint, before, () => this.getNextVersion(undefined));
    }
    const metadata: CheckpointMetadata = await this.serde.loadsTyped(row.type ?? "json", row.metadata);
    const at = (checkpointId: string): RunnableConfig => ({
      configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: checkpointId },
    });
    return {
      checkpoint,
      config: config ?? at(id),
      metadata,
      pendingWrites: await revive(writes, this.serde),
      ...(parent === null ? {} : { parentConfig: at(parent) }),
    };
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    return ObservedPromise.of(this.putCheckpoint(config, checkpoint, metadata));
  }

  private async putCheckpoint(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    const { threadId, namespace, checkpointId: parent } = this.ids.addressOf(config);
    if (threadId === undefined) throw missing("thread_id");
    const id = this.ids.place(threadId, namespace, checkpoint.id);
    const assertHeld = this.fences.guard(threadId);
    const owner = { thread: threadId, namespace };
    const encoded = allOf([
      this.dumped(copyCheckpoint(checkpoint), owner),
      this.dumped(metadata, owner),
    ] as const);
    const [[type, state], [factsType, facts]] = encoded instanceof Promise ? await encoded : encoded;
    if (type !== factsType) throw new Error("A checkpoint and its metadata must have the same encoding.");
    // LangGraph starts to store a checkpoint while results it was made from are still on their way.
    const before = keyOf(threadId, namespace, parent);
    const results = this.underWay.get(before);
    const late = allOf([...(results?.values() ?? [])].map(({ encoded: rows }) => rows));
    if (late instanceof Promise) await late;
    await this.commits.run({ bytes: state.length, source: graphKey(threadId, namespace) }, () => {
      assertHeld();
      for (const { failure } of results?.values() ?? []) if (failure !== undefined) throw failure;
      this.sql.putCheckpoint.run(threadId, namespace, id, parent ?? null, type, state, facts);
    });
    this.underWay.delete(before);
    this.changes += 1;
    if (namespace === "") this.packed.packSometimes(threadId);
    return { configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: id } };
  }

  /** Stores the writes of a task. LangGraph awaits this at the end of the step only. */
  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    return ObservedPromise.of(this.putResults(config, writes, taskId));
  }

  private async putResults(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, namespace, checkpointId: named } = addressOf(config);
    if (threadId === undefined) throw missing("thread_id");
    if (named === undefined) throw missing("checkpoint_id");
    const checkpointId = this.ids.place(threadId, namespace, named);
    const address = [threadId, namespace, checkpointId, taskId] as const;
    const owner = { thread: threadId, namespace };
    const result: Result = { encoded: encodeWrites((value) => this.dumped(value, owner), address, writes) };
    const assertHeld = this.fences.guard(threadId);
    const key = keyOf(threadId, namespace, checkpointId);
    const tasks = this.underWay.get(key) ?? new Map<string, Result>();
    this.underWay.set(key, tasks.set(taskId, result));
    // A task's own results are written once; errors, interrupts and answers replace the earlier ones.
    const replaces = writes.every(([channel]) => channel in WRITES_IDX_MAP);
    const put = replaces ? this.sql.replaceWrite : this.sql.addWrite;
    try {
      const rows = result.encoded instanceof Promise ? await result.encoded : result.encoded;
      await this.commits.run({ bytes: bytesOfWrites(rows), source: graphKey(threadId, namespace) }, () => {
        assertHeld();
        for (const row of rows) put.run(...row);
      });
    } catch (thrown) {
      // The failure is remembered until a retry, because no checkpoint may follow that lacks these writes.
      result.failure = thrown;
      throw thrown;
    }
    this.changes += 1;
    if (tasks.get(taskId) === result) tasks.delete(taskId);
    if (tasks.size === 0) this.underWay.delete(key);
  }

  /** Commits what waits, so that a read finds it. */
  private flushed(): Promise<void> {
    return whenUnlocked(this.db, () => this.commits.flush());
  }

  /** Serialises a value after storing its large parts; a serialiser that replaced ours gets the value whole. */
  private dumped(value: unknown, owner: GraphAddress): Encoded | Promise<Encoded> {
    return this.serde === this.large ? this.large.dumps(value, owner) : this.serde.dumpsTyped(value);
  }

  /**
   * Makes what was stored outlive a power cut, unless every commit of the connection does. Must be awaited before
   * anything is acknowledged that relies on it.
   */
  async sync(): Promise<void> {
    await this.flushed();
    const { changes } = this;
    if (this.syncedChanges === changes || flushesItself(this.db)) return;
    await flushLog(this.db);
    this.syncedChanges = Math.max(this.syncedChanges, changes);
  }

  /**
   * Begins again at what is stored. Forgets results of the thread that could not be stored, which otherwise block
   * its next checkpoint. Keeps processes with an earlier token from storing anything in the thread. Throws
   * `FencedOffError` when there is a later token.
   */
  async startOver(threadId: string, token: FencingToken): Promise<void> {
    await whenUnlocked(this.db, () => this.fences.take(threadId, token));
    this.ids.forget(threadId);
    for (const key of this.underWay.keys()) {
      if (threadOf(key) === threadId) this.underWay.delete(key);
    }
  }

  /**
   * Makes a thread small whose graph has ended. Of graphs inside it, except those of a step at work, it keeps the
   * messages alone, and it packs superseded checkpoints. Does nothing when the thread was taken with a later token
   * than `token`, because blobs that its new owner is about to refer to look like unused ones.
   */
  async tidyThread(threadId: string, token?: FencingToken): Promise<void> {
    await this.flushed();
    const assertHeld = this.fences.guard(threadId, token);
    this.fences.leave(threadId, token);
    try {
      await deleteInPieces(this.sql.deleteNested, threadId, assertHeld);
    } catch (error) {
      if (error instanceof FencedOffError) return;
      throw error;
    }
    this.ids.forget(threadId);
    await this.packed.packAll(threadId);
  }

  /** Lists the stored steps that lead to the thread's newest checkpoint, oldest first. */
  async steps(threadId: string): Promise<ThreadStep[]> {
    await this.flushed();
    return this.threadSteps.of(threadId);
  }

  /** Finds the messages that hold `text` as they are serialised, in graphs inside the thread too. */
  async writtenWith(threadId: string, text: string): Promise<WrittenMessages[]> {
    await this.flushed();
    return this.threadSteps.with(threadId, text);
  }

  /** The messages of graphs inside the thread, with the checkpoint and the task of each. */
  async *nestedMessages(threadId: string): AsyncGenerator<[RunnableConfig, task: string, unknown]> {
    await this.flushed();
    for await (const { namespace, id, task, messages } of this.threadSteps.storedWith(threadId, "")) {
      if (namespace === "") continue;
      const place = { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: id };
      yield [{ configurable: place }, task, messages];
    }
  }

  /**
   * Makes the new thread `target` of `source` as it was at `checkpointId` (default: its newest), without
   * requests that wait for an answer. False when there is no such checkpoint. Repeated, it changes nothing.
   */
  async copyThread(source: string, target: string, checkpointId?: string): Promise<boolean> {
    await this.flushed();
    const isCopied = await this.threadCopy.make({ thread: source, target }, checkpointId);
    this.changes += 1;
    return isCopied;
  }

  /** Lists every thread that has a checkpoint. */
  async threads(): Promise<string[]> {
    await this.flushed();
    return this.threadSteps.threads();
  }

  /** Bytes of the file that are in use. */
  async usedBytes(): Promise<number> {
    return usedBytes(this.db);
  }

  /** Returns free space of the file to the file system; gives its bytes. */
  readonly returnSpace = (signal: AbortSignal): Promise<number> => returnSpace(this.db, signal);

  override async deleteThread(threadId: string): Promise<void> {
    await this.flushed();
    this.packed.forget(threadId);
    this.ids.forget(threadId);
    await deleteInPieces(this.sql.deleteThread, threadId);
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const channels = [...new Set(options.channels)];
    if (channels.length === 0) return {};
    // One query cannot follow so many channels, so the inherited method walks the checkpoints one by one.
    if (channels.length > CHANNELS_PER_QUERY) return super.getDeltaChannelHistory(options);
    const { threadId, namespace, checkpointId } = this.ids.addressOf(options.config);
    const empty = (): Record<string, DeltaChannelHistory> =>
      Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]));
    if (threadId === undefined) return empty();
    await this.flushed();
    const target = { thread: threadId, namespace, checkpoint: checkpointId ?? null };
    const read = () => this.history.of(target, channels, this.serde);
    return (await read()) ?? ((await this.packed.unpack(threadId)) ? await read() : undefined) ?? empty();
  }

  override async *list(
    config: RunnableConfig,
    { limit = Infinity, before, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    await this.flushed();
    const { threadId: thread } = addressOf(config);
    const namespace: unknown = config.configurable?.["checkpoint_ns"];
    await (thread === undefined ? this.packed.unpackAll() : this.packed.unpack(thread));
    const places = listCheckpoints(this.db, {
      thread,
      namespace: typeof namespace === "string" ? namespace : undefined,
      before:
        before &&
        this.ids.addressOf({ configurable: { ...config.configurable, ...before.configurable } }).checkpointId,
    });
    let left = limit;
    for (const place of places) {
      if (left <= 0) return;
      const found = this.readOne(place.thread, place.namespace, place.checkpoint);
      // It was deleted or packed since.
      if (found === undefined) continue;
      const tuple = await this.tuple(place, found);
      if (!hasMetadata(tuple, filter)) continue;
      yield tuple;
      left -= 1;
    }
  }
}
