/** LangGraph's saver for SQLite, with the additions that durable runs need. */
import type { RunnableConfig } from "@langchain/core/runnables";
import type {
  Checkpoint,
  CheckpointMetadata,
  CheckpointTuple,
  DeltaChannelHistory,
  PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { byValue } from "../../../core/by-identity.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import type { Checkpoints, FencingToken, ThreadStep, WrittenMessages } from "../../../runs/thread-ports.ts";
import { FencedOffError } from "../../../runs/thread-ports.ts";
import type { GraphAddress } from "../../checkpoints/address.ts";
import { readAddress, configAt, missingField, timeOfId } from "../../checkpoints/address.ts";
import { withBytes } from "../../checkpoints/serializer.ts";
import { type WriteRow, PASSING, PassingWrites } from "../../checkpoints/writes.ts";
import { TaskResults, ObservedPromise, UNFINISHED_CHANNELS, revive } from "../../checkpoints/writes.ts";
import type { Statement } from "../api.ts";
import { GroupCommit, flushLog, flushesItself, inTransaction } from "../commit.ts";
import { type Database, usedBytes, whenUnlocked } from "../database.ts";
import { unreadable } from "../errors.ts";
import { deleteInPieces, preparePiece, returnSpace } from "../free-space.ts";
import { ENDED_GRAPHS, FENCED_OFF, WHOLE_THREAD, sql } from "./schema.ts";

/** Steps, and written values, that are read between two turns of the event loop. */
const STEPS_PER_TURN = 16;
const WRITES_PER_TURN = 100;

type Thread = { thread: string };
type CheckpointPlace = Thread & { id: string };
type Copied = Thread & { target: string; last: string; ids: string; unfinished: string };
type WrittenRow = { namespace: string; id: string; task: string; idx: number };
const prepareStatements = (database: Database) => ({
  take: database.prepare<Thread & FencingToken>(sql("take")),
  hold: database.prepare<Thread & FencingToken>(sql("hold")),
  leave: database.prepare<Thread & FencingToken>(sql("leave")),
  holds: database.prepare<Thread & FencingToken>(sql("holds")),
  newest: database.prepare<Thread & { namespace: string }, string>(sql("newest")).pluck(),
  history: database.prepare<
    CheckpointPlace & { namespace: string; channels: string },
    Omit<WriteRow, "task_id"> & { task_id: string | null }
  >(sql("history")),
  way: database.prepare<CheckpointPlace, { id: string; parent: string | null }>(sql("way")),
  step: database.prepare<CheckpointPlace, { number: number; source: string; time: string }>(sql("step")),
  messagesAt: database.prepare<CheckpointPlace, WriteRow>(sql("messages at")),
  written: database.prepare<
    Thread & WrittenRow & { text: Uint8Array; limit: number },
    WrittenRow & Pick<WriteRow, "type" | "value">
  >(sql("written")),
  threads: database.prepare<[], string>(sql("threads")).pluck(),
  copyCheckpoints: database.prepare<Copied>(sql("copy checkpoints")),
  copyWrites: database.prepare<Copied>(sql("copy writes")),
  countCopied: database.prepare<Thread & { ids: string }, number>(sql("count copied")).pluck(),
  wholeThread: WHOLE_THREAD.map((rows) => preparePiece(database, rows)),
  passed: database.prepare<GraphAddress & { id: string; passing: string }>(sql("passed")),
  endedGraphs: ENDED_GRAPHS.map((rows) => preparePiece(database, rows)),
});

/**
 * Adds features that the saver's tables alone lack: the order of storing, fences between processes, and histories
 * in one query. Needs the tables and `FENCES`.
 */
export class DurableSaver extends SqliteSaver implements Checkpoints {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #results = new TaskResults();
  readonly #passing = new PassingWrites();
  /** The threads that this process has taken; the connection has the same in a table. */
  readonly #held = new Map<string, FencingToken>();
  readonly #prepared: (text: string) => Statement;
  readonly #commits: GroupCommit;
  /** The storing that began last; it ends last. */
  #latest: Promise<void> | undefined;
  /** Counts the stored rows, and those of them that outlive a power cut. */
  #changes = 0;
  #syncedChanges = 0;

  constructor(database: Database) {
    // The saver prepares a text for each use, which takes longer than the statement.
    const prepared = byValue((text: string) => database.prepare(text));
    // The saver uses nothing else of its connection. The tables exist.
    const connection = { prepare: prepared, exec: () => undefined, pragma: () => undefined };
    super(connection as unknown as ConstructorParameters<typeof SqliteSaver>[0]);
    this.setup();
    this.serde = withBytes(this.serde, (thrown) => unreadable(thrown, "the database of checkpoints"));
    this.#database = database;
    this.#prepared = prepared;
    this.#commits = GroupCommit.of(database);
    this.#sql = prepareStatements(database);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId: thread, namespace, checkpointId } = readAddress(config);
    if (thread === undefined) return undefined;
    const graph = { thread, namespace };
    const id = checkpointId ?? this.#sql.newest.get(graph);
    if (id === undefined) return undefined;
    const tuple = await super.getTuple(configAt(graph, id));
    this.#passing.note(graph, id, tuple?.pendingWrites ?? []);
    return tuple;
  }

  /** Stores a checkpoint after the results that it was made of, and fails if those could not be stored. */
  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    const { threadId: thread, namespace, checkpointId: parent } = readAddress(config);
    if (thread === undefined) return ObservedPromise.of(Promise.reject(missingField("thread_id")));
    const graph = { thread, namespace };
    const results = this.#results.of(graph, parent);
    const put = (saver: SqliteSaver) => super.put.call(saver, configAt(graph, parent), checkpoint, metadata);
    const passed = this.#passing.take(graph, parent) ? { ...graph, id: parent } : undefined;
    return ObservedPromise.of(this.#store(thread, put, results, passed));
  }

  /** Stores the writes of a task. LangGraph awaits this at the end of the step only. */
  override putWrites(config: RunnableConfig, writes: PendingWrite[], task: string): Promise<void> {
    const { threadId: thread, namespace, checkpointId: id } = readAddress(config);
    if (thread === undefined) return ObservedPromise.of(Promise.reject(missingField("thread_id")));
    if (id === undefined) return ObservedPromise.of(Promise.reject(missingField("checkpoint_id")));
    const graph = { thread, namespace };
    const put = (saver: SqliteSaver) => super.putWrites.call(saver, configAt(graph, id), writes, task);
    this.#passing.note(graph, id, writes);
    const stored = ObservedPromise.of(this.#store(thread, put));
    this.#results.add(graph, id, task, stored);
    return stored;
  }

  /**
   * Lets the saver serialise at once, and stores after `before`. `passed`: a checkpoint whose passing writes go.
   *
   * @throws FencedOffError
   */
  async #store<T>(
    thread: string,
    put: (saver: SqliteSaver) => Promise<T>,
    before: readonly Promise<void>[] = [],
    passed?: GraphAddress & { id: string },
  ): Promise<T> {
    const token = this.#held.get(thread);
    const rows: [Statement, unknown[]][] = [];
    // Replaces the connection: the rows are kept for a common commit, which is one transaction anyway.
    const connection = {
      prepare: (text: string) => ({ run: (...row: unknown[]) => rows.push([this.#prepared(text), row]) }),
      transaction: (work: unknown) => work,
    };
    // The saver as it is, but for its connection.
    const answer = await put(Object.create(this, { db: { value: connection } }) as SqliteSaver);
    await Promise.all(before);
    this.#latest = this.#commits.run(() => {
      // This process may have taken the thread again since, for another claim of the run.
      if (!isSameToken(this.#held.get(thread), token)) throw new FencedOffError(thread);
      for (const [statement, row] of rows) statement.run(...row);
      if (passed) this.#sql.passed.run({ ...passed, passing: PASSING });
    });
    try {
      await this.#latest;
    } catch (thrown) {
      throw thrown instanceof Error && thrown.message === FENCED_OFF ? new FencedOffError(thread) : thrown;
    }
    this.#changes += 1;
    return answer;
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const histories = new Map(
      options.channels.map((channel): [string, DeltaChannelHistory] => [channel, { writes: [] }]),
    );
    const { threadId: thread = "", namespace, checkpointId } = readAddress(options.config);
    const id = checkpointId ?? this.#sql.newest.get({ thread, namespace }) ?? "";
    const channels = JSON.stringify([...histories.keys()]);
    const rows = this.#sql.history.all({ thread, namespace, id, channels });
    const isWrite = (row: (typeof rows)[number]): row is WriteRow => row.task_id !== null;
    for (const { task_id, channel, type, value } of rows) {
      const history = histories.get(channel);
      if (history && task_id === null)
        history.seed = await this.serde.loadsTyped(type ?? "json", value ?? "");
    }
    for (const write of await revive(rows.filter(isWrite), this.serde))
      histories.get(write[1])?.writes.push(write);
    return Object.fromEntries(histories);
  }

  override async deleteThread(thread: string): Promise<void> {
    await deleteInPieces(this.#sql.wholeThread, thread);
  }

  async tidyThread(thread: string, token = this.#held.get(thread)): Promise<void> {
    const assertHeld = (): void => {
      if (token && this.#sql.holds.get({ thread, ...token }) === undefined) throw new FencedOffError(thread);
    };
    if (token && isSameToken(this.#held.get(thread), token)) {
      this.#held.delete(thread);
      this.#sql.leave.run({ thread, ...token });
    }
    try {
      await deleteInPieces(this.#sql.endedGraphs, thread, assertHeld);
    } catch (thrown) {
      if (!(thrown instanceof FencedOffError)) throw thrown;
    }
  }

  async sync(): Promise<void> {
    await Promise.allSettled([this.#latest]);
    const changes = this.#changes;
    if (this.#syncedChanges === changes || flushesItself(this.#database)) return;
    await flushLog(this.#database);
    this.#syncedChanges = Math.max(this.#syncedChanges, changes);
  }

  async startOver(thread: string, { run, claim }: FencingToken): Promise<void> {
    const fence = { thread, run, claim };
    const { changes } = await whenUnlocked(this.#database, () => this.#sql.take.run(fence));
    if (changes === 0) throw new FencedOffError(thread);
    this.#sql.hold.run(fence);
    this.#held.set(thread, { run, claim });
    this.#results.startOver(thread);
  }

  async steps(thread: string): Promise<ThreadStep[]> {
    const steps: ThreadStep[] = [];
    const id = this.#sql.newest.get({ thread, namespace: "" }) ?? "";
    for (const [index, { id: checkpointId, parent }] of this.#sql.way.all({ thread, id }).entries()) {
      if (index % STEPS_PER_TURN === STEPS_PER_TURN - 1) await ownTurn();
      const facts = this.#sql.step.get({ thread, id: checkpointId });
      // A checkpoint of input alone has nothing in the channels yet. A missing one was deleted in between.
      if (facts === undefined || facts.source === "input") continue;
      const rows = parent === null ? [] : this.#sql.messagesAt.all({ thread, id: parent });
      const messages = (await revive(rows, this.serde)).map(([, , value]) => value);
      steps.push({ number: facts.number, checkpointId, time: Date.parse(facts.time), messages });
    }
    return steps;
  }

  /** The writes to `messages` that have `text` in them, those of the thread's own graph first. */
  async *#written(thread: string, text: string): AsyncGenerator<[WrittenRow, messages: unknown]> {
    const page = { thread, text: Buffer.from(text), limit: WRITES_PER_TURN };
    for (let last: WrittenRow = { namespace: "", id: "", task: "", idx: -1 }; ;) {
      const rows = this.#sql.written.all({ ...page, ...last });
      for (const { type, value, ...row } of rows) {
        if (value !== null) yield [row, await this.serde.loadsTyped(type ?? "json", value)];
      }
      const end = rows.at(-1);
      if (end === undefined || rows.length < WRITES_PER_TURN) return;
      last = { namespace: end.namespace, id: end.id, task: end.task, idx: end.idx };
      await ownTurn();
    }
  }

  async writtenWith(thread: string, text: string): Promise<WrittenMessages[]> {
    const found: WrittenMessages[] = [];
    for await (const [{ namespace, id }, messages] of this.#written(thread, text))
      found.push({ namespace, time: timeOfId(id), messages });
    return found;
  }

  async *nestedMessages(thread: string): AsyncGenerator<[RunnableConfig, task: string, unknown]> {
    for await (const [{ namespace, id, task }, messages] of this.#written(thread, "")) {
      if (namespace !== "") yield [configAt({ thread, namespace }, id), task, messages];
    }
  }

  async copyThread(thread: string, target: string, checkpointId?: string): Promise<boolean> {
    const last = checkpointId ?? this.#sql.newest.get({ thread, namespace: "" }) ?? "";
    const way = this.#sql.way.all({ thread, id: last }).map(({ id }) => id);
    const unfinished = JSON.stringify(UNFINISHED_CHANNELS);
    for (let at = 0; at < way.length; at += STEPS_PER_TURN) {
      await ownTurn();
      const ids = way.slice(at, at + STEPS_PER_TURN);
      const some = { thread, target, last, ids: JSON.stringify(ids), unfinished };
      const copy = (): number | undefined => {
        this.#sql.copyCheckpoints.run(some);
        this.#sql.copyWrites.run(some);
        return this.#sql.countCopied.get({ thread: target, ids: some.ids });
      };
      const copied = await whenUnlocked(this.#database, () => inTransaction(this.#database, copy));
      this.#changes += 1;
      // The source is being deleted.
      if (copied !== ids.length) return false;
    }
    return way.length > 0;
  }

  async threads(): Promise<string[]> {
    return this.#sql.threads.all();
  }

  async usedBytes(): Promise<number> {
    return usedBytes(this.#database);
  }

  readonly returnSpace = (signal: AbortSignal): Promise<number> => returnSpace(this.#database, signal);
}

const isSameToken = (one: FencingToken | undefined, other: FencingToken | undefined): boolean =>
  one?.run === other?.run && one?.claim === other?.claim;
