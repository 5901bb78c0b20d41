import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
  WRITES_IDX_MAP,
  copyCheckpoint,
} from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import type { Statement } from "better-sqlite3";
import { FencedOffError, type FencingToken, type ThreadStep } from "../../../runs/ports.ts";
import { GroupCommit, flushLog, flushesItself } from "../commit.ts";
import {
  type Address,
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
import { ObservedPromise, revive } from "../../checkpoints/writes.ts";
import { type Database, usedBytes, whenUnlocked } from "../database.ts";
import { unreadable } from "../errors.ts";
import { deleteInPieces, returnSpace } from "../free-space.ts";
import { migrate } from "../migrations.ts";
import { Blobs } from "./blobs.ts";
import { CHANNELS_PER_QUERY, DeltaHistory } from "./delta-history.ts";
import { PackedCheckpoints } from "./packed-checkpoints.ts";
import {
  CHECKPOINT_MIGRATIONS,
  type CheckpointStatements,
  type ReadCheckpoint,
  prepareRead,
  prepareStatements,
} from "./schema.ts";
import { ThreadChain, ThreadCopy, ThreadFences, ThreadSteps } from "./thread-history.ts";

/** How many of the newest ids are remembered of each thread, and of how many threads. */
const IDS_PER_THREAD = 500;
const THREADS = 10_000;

/** What this process remembers of a thread that it works on. */
interface Known {
  /** The id under which a checkpoint is stored, by namespace and LangGraph's id. */
  places: Map<string, string>;
  /** The places before those; dropping old ones one by one would take too long. */
  olderPlaces: Map<string, string>;
  /** Newest id of each namespace. */
  readonly newest: Map<string, string>;
  /** Newest id that was given in the place of another, in any namespace. */
  given: string;
}

/**
 * The ids under which checkpoints are stored: LangGraph's, as long as each is later than those before it.
 * It makes them of the time, and the newest checkpoint of a thread is the one with the last id. So where the
 * clock was set back, or a server with another clock went on, a checkpoint gets the next id after the newest
 * instead. The checkpoint itself keeps LangGraph's: ids of tasks follow from it.
 */
export class CheckpointIds {
  readonly #threads = new Map<string, Known>();
  readonly #newest: Statement<[string, string], string | null>;
  readonly #exists: Statement<[string, string, string], number>;
  readonly #packed: Statement<[string, string, string], number>;

  constructor(database: Database) {
    this.#newest = database
      .prepare<[string, string], string | null>(
        "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?",
      )
      .pluck();
    this.#exists = database
      .prepare<[string, string, string], number>(
        "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
      )
      .pluck();
    this.#packed = database
      .prepare<[string, string, string], number>(
        "SELECT 1 FROM packed_checkpoints WHERE thread_id = ? AND first_id <= ? AND last_id >= ?",
      )
      .pluck();
  }

  /** The rows that a configuration of LangGraph points to. */
  addressOf(config: RunnableConfig): Address {
    const { checkpointId: id, ...address } = addressOf(config);
    const { threadId: thread, namespace } = address;
    if (id === undefined || thread === undefined) return address;
    const known = this.#threads.get(thread);
    const place = known && placeOf(known, keyOf(thread, namespace, id));
    return { ...address, checkpointId: place ?? id };
  }

  /** Gives the id under which a checkpoint is or will be stored. */
  place(thread: string, namespace: string, id: string): string {
    const known = this.#known(thread);
    const key = keyOf(thread, namespace, id);
    const before = placeOf(known, key);
    if (before !== undefined) return before;
    const newest = this.#newestOf(thread, namespace, known);
    const isNext = id > newest || !isOfTime(id) || !isOfTime(newest) || this.#isStored(thread, namespace, id);
    const place = isNext ? id : after(newest, id, namespace === "" ? STEP_TICKS : 1n);
    if (!isNext) known.given = place;
    if (place > (known.newest.get(namespace) ?? "")) known.newest.set(namespace, place);
    remember(known, key, place);
    return place;
  }

  /** A checkpoint was read: LangGraph stores what follows from it under its id. */
  remember(thread: string, namespace: string, id: string, place: string): void {
    if (id !== place) remember(this.#known(thread), keyOf(thread, namespace, id), place);
  }

  /** Forgets the thread, because another process may have stored more of it. */
  forget(thread: string): void {
    this.#threads.delete(thread);
  }

  #known(thread: string): Known {
    const before = this.#threads.get(thread);
    if (before) return before;
    const known = { places: new Map(), olderPlaces: new Map(), newest: new Map(), given: "" };
    this.#threads.set(thread, known);
    if (this.#threads.size > THREADS) dropFirst(this.#threads);
    return known;
  }

  /** The newer of two ids: that of the namespace, and that of the thread's own graph, whose steps hold those of the namespace. */
  #newestOf(thread: string, namespace: string, known: Known): string {
    let newest = known.given;
    for (const name of new Set(["", namespace])) {
      let id = known.newest.get(name);
      if (id === undefined) known.newest.set(name, (id = this.#newest.get(thread, name) ?? ""));
      if (id > newest) newest = id;
    }
    return newest;
  }

  #isStored(thread: string, namespace: string, id: string): boolean {
    return (
      this.#exists.get(thread, namespace, id) !== undefined ||
      (namespace === "" && this.#packed.get(thread, id, id) !== undefined)
    );
  }
}

const TIME_ID = /^([\da-f]{8})-([\da-f]{4})-6([\da-f]{3})(-[\da-f]{4}-[\da-f]{12})$/;

/** Whether ids of this kind are in the order of the times they were made at: UUIDs of version 6. */
const isOfTime = (id: string): boolean => TIME_ID.test(id);

/** Between two of a thread's own graph, in units of 100 ns: there is room for those of graphs inside a step. */
const STEP_TICKS = 10_000n;

/** The id of a moment after `newest` that is otherwise like `id`. */
function after(newest: string, id: string, ticks: bigint): string {
  const [, high = "", middle = "", low = ""] = TIME_ID.exec(newest) ?? [];
  const time = (BigInt(`0x${high}${middle}${low}`) + ticks).toString(16).padStart(15, "0");
  return `${time.slice(0, 8)}-${time.slice(8, 12)}-6${time.slice(12)}${id.slice(18)}`;
}

const placeOf = ({ places, olderPlaces }: Known, key: string): string | undefined =>
  places.get(key) ?? olderPlaces.get(key);

function remember(known: Known, key: string, place: string): void {
  known.places.set(key, place);
  if (known.places.size < IDS_PER_THREAD) return;
  known.olderPlaces = known.places;
  known.places = new Map();
}

/** Removes the entry that was added first. */
function dropFirst<Key>(map: Map<Key, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}

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
 * LangGraph's `SqliteSaver` on the same tables, with every statement prepared once, binary values kept
 * as they are, what comes in quick succession stored in one transaction, superseded checkpoints
 * packed, and the history of delta channels read by one query instead of one per ancestor.
 */
export class SqliteCheckpointer extends SqliteSaver {
  /** Results that are being stored or could not be, by checkpoint and task. */
  private readonly underWay = new Map<string, Map<string, Result>>();
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
    super(database);
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
    this.isSetup = true;
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
    const { row, writes } = found;
    const checkpoint: Checkpoint = await this.serde.loadsTyped(row.type ?? "json", row.checkpoint);
    this.ids.remember(threadId, namespace, checkpoint.id, row.checkpoint_id);
    if (checkpoint.v < 4 && row.parent_checkpoint_id !== null) {
      await this.migratePendingSends(checkpoint, threadId, row.parent_checkpoint_id);
    }
    const metadata: CheckpointMetadata = await this.serde.loadsTyped(row.type ?? "json", row.metadata);
    const at = (id: string): RunnableConfig => ({
      configurable: { thread_id: threadId, checkpoint_ns: namespace, checkpoint_id: id },
    });
    return {
      checkpoint,
      config: checkpointId === undefined ? at(row.checkpoint_id) : config,
      metadata,
      pendingWrites: await revive(writes, this.serde),
      ...(row.parent_checkpoint_id === null ? {} : { parentConfig: at(row.parent_checkpoint_id) }),
    };
  }

  override put(...checkpoint: Parameters<SqliteSaver["put"]>): Promise<RunnableConfig> {
    return ObservedPromise.of(this.putCheckpoint(...checkpoint));
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
   * Makes a thread small whose graph has ended. Deletes the checkpoints of graphs inside it, except those of a step
   * at work, and packs superseded ones. Does nothing when the thread was taken with a later token than `token`,
   * because blobs that its new owner is about to refer to look like unused ones.
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

  override async *list(...args: Parameters<SqliteSaver["list"]>): ReturnType<SqliteSaver["list"]> {
    await this.flushed();
    const { threadId } = addressOf(args[0]);
    if (threadId === undefined) await this.packed.unpackAll();
    else await this.packed.unpack(threadId);
    yield* super.list(...args);
  }

  /** Does nothing, because `createCheckpointer` makes the tables. */
  protected override setup(): void {}
}
