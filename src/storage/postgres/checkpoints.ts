/** Checkpoints of LangGraph in Postgres. */
import { createHash } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
  TASKS,
  WRITES_IDX_MAP,
  copyCheckpoint,
  maxChannelVersion,
} from "@langchain/langgraph-checkpoint";
import type { Pool } from "pg";
import { isDeepStrictEqual } from "node:util";
import { StorageError } from "../../core/errors.ts";
import { type Checkpoints, FencedOffError, type FencingToken, type ThreadStep } from "../../runs/ports.ts";
import {
  type GraphAddress,
  type WriteFields,
  addressOf,
  keyOf,
  missing,
  threadOf,
} from "../checkpoints/address.ts";
import {
  type BlobStore,
  type Encoded,
  LargeValues,
  allOf,
  encodeWrites,
} from "../checkpoints/large-values.ts";
import { ObservedPromise, type WriteRow, revive } from "../checkpoints/writes.ts";
import { change, first } from "../sql/steps.ts";
import { postgresEngine, query } from "./engine.ts";
import { postgresError } from "./errors.ts";

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

const CHECKPOINT =
  "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, seq, type, checkpoint, metadata FROM checkpoints";

const ONE = `${CHECKPOINT} WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id`;
const NEWEST = `${CHECKPOINT} WHERE thread_id = @thread AND checkpoint_ns = @namespace ORDER BY seq DESC LIMIT 1`;
const WRITES = `
SELECT task_id, channel, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id ORDER BY task_id, idx`;

/**
 * One row, unless the thread was taken with another token than this process holds. Who takes it meanwhile waits
 * for this commit. The commit does not wait for the disk: `sync` does.
 */
const HELD = `
quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
held AS MATERIALIZED (
  SELECT 1 FROM quick WHERE @run::bigint IS NULL
  UNION ALL
  SELECT 1 FROM quick WHERE EXISTS (
    SELECT 1 FROM thread_fences WHERE thread_id = @thread AND run = @run AND claim = @claim FOR SHARE
  )
)`;
const IS_HELD = "SELECT count(*) > 0 AS held FROM held";

const PUT_CHECKPOINT = `
WITH ${HELD}, put AS (
  INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, step, source, made_at,
    channels, type, checkpoint, metadata)
  SELECT @thread, @namespace, @id, @parent, @step, @source, @madeAt, @channels::text[], @type,
    @checkpoint::bytea, @metadata::bytea FROM held
  ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
    parent_checkpoint_id = excluded.parent_checkpoint_id, step = excluded.step, source = excluded.source,
    made_at = excluded.made_at, channels = excluded.channels, type = excluded.type,
    checkpoint = excluded.checkpoint, metadata = excluded.metadata
) ${IS_HELD}`;

const putWrites = (onConflict: string): string => `
WITH ${HELD}, put AS (
  INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
  SELECT @thread, @namespace, @id, @task, one.* FROM held,
    unnest(@indexes::bigint[], @names::text[], @types::text[], @values::bytea[]) AS one
  ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) ${onConflict}
) ${IS_HELD}`;
const ADD_WRITES = putWrites("DO NOTHING");
const REPLACE_WRITES = putWrites(
  "DO UPDATE SET channel = excluded.channel, type = excluded.type, value = excluded.value",
);

const PUT_BLOB = `
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content)
SELECT @thread, @namespace, @hash::bytea, @content::bytea FROM quick ON CONFLICT DO NOTHING`;

/** A small commit that is on the disk, and with it all commits before. */
const SYNC =
  "SELECT set_config('synchronous_commit', 'on', true), pg_logical_emit_message(true, 'deepagent', '')";

/** Checkpoints from the named or the newest one back, some at a time. A parent always comes behind its children. */
const BEFORE = `
SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, channels, seq FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND seq < @below
  AND (@id::text IS NULL OR seq <= (
    SELECT seq FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = @id))
ORDER BY seq DESC LIMIT @limit`;
const STORED = `
SELECT checkpoint_id AS id, checkpoint FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])`;
const WRITTEN = `
SELECT checkpoint_id AS id, task_id, channel, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = @namespace AND checkpoint_id = ANY (@ids::text[])
  AND channel = ANY (@channels::text[])
ORDER BY task_id, idx`;

/** An ancestor of a checkpoint. */
interface Ancestor {
  id: string;
  /** Channels that still look for a stored value; what was written here is a part of theirs. */
  open: ReadonlySet<string>;
  /** Those of them whose value it stores. */
  found: string[];
}

/** The way from a checkpoint of a thread's own graph back to its beginning. */
const CHAIN = `
WITH RECURSIVE chain AS (
  (SELECT 0 AS depth, checkpoint_id AS id, parent_checkpoint_id AS parent, step, source, made_at
  FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = ''
    AND (@id::text IS NULL OR checkpoint_id = @id)
  ORDER BY seq DESC LIMIT 1)
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.parent
)`;

interface Link {
  id: string;
  parent: string | null;
  step: number;
  source: string;
  made_at: string;
}

const MESSAGES = `
SELECT checkpoint_id AS id, type, value FROM checkpoint_writes
WHERE thread_id = @thread AND checkpoint_ns = '' AND channel = 'messages' ORDER BY checkpoint_id, task_id, idx`;

/** One look-up for each thread, however many checkpoints it has. */
const THREADS = `
WITH RECURSIVE found (id) AS (
  SELECT min(thread_id) FROM checkpoints
  UNION ALL
  SELECT (SELECT min(thread_id) FROM checkpoints WHERE thread_id > found.id) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL`;

const COPY_BLOBS = `
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, hash, content)
SELECT @target, '', hash, content FROM checkpoint_blobs WHERE thread_id = @thread AND checkpoint_ns = ''
ON CONFLICT DO NOTHING`;

const COPY_CHECKPOINTS = `${CHAIN}
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, step, source, made_at,
  channels, type, checkpoint, metadata)
SELECT @target, '', c.checkpoint_id, c.parent_checkpoint_id, c.step, c.source, c.made_at, c.channels, c.type,
  c.checkpoint, c.metadata
FROM chain JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = '' AND c.checkpoint_id = chain.id
ORDER BY chain.depth DESC
ON CONFLICT DO NOTHING`;

/** Errors, requests and answers: a task with other writes has finished. */
const UNFINISHED = Object.keys(WRITES_IDX_MAP)
  .map((channel) => `'${channel}'`)
  .join(", ");

/**
 * What was written after an earlier checkpoint than the newest made the next one, and has no place behind a copy
 * of it. Of the newest, results of calls that had ended go along, but not what waits for an answer.
 */
const COPY_WRITES = `${CHAIN}
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT @target, '', w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.value
FROM chain JOIN checkpoint_writes AS w
  ON w.thread_id = @thread AND w.checkpoint_ns = '' AND w.checkpoint_id = chain.id
WHERE chain.depth > 0 OR (@isNewest = 1 AND w.channel NOT IN (${UNFINISHED}))
ON CONFLICT DO NOTHING`;

const NEWEST_ID = `
SELECT checkpoint_id AS id FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = '' ORDER BY seq DESC LIMIT 1`;

/** Checkpoints go first: without them it is no thread any more. */
const TABLES = ["checkpoints", "checkpoint_writes", "checkpoint_blobs", "thread_fences"];

/**
 * Those of graphs inside the thread's graph that ended before its newest checkpoint, and what belongs to none. The
 * fence is held until all of it is done.
 */
const DELETE_NESTED = [
  `DELETE FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns > '' AND seq <
    (SELECT max(seq) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')`,
  `DELETE FROM checkpoint_writes AS w WHERE thread_id = @thread AND checkpoint_ns > '' AND NOT EXISTS (
    SELECT 1 FROM checkpoints AS c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
      AND c.checkpoint_id = w.checkpoint_id)`,
  `DELETE FROM checkpoint_blobs AS b WHERE thread_id = @thread AND checkpoint_ns > '' AND NOT EXISTS (
    SELECT 1 FROM checkpoints AS c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns)`,
];

const LIST = `${CHECKPOINT}
WHERE (@thread::text IS NULL OR thread_id = @thread) AND (@namespace::text IS NULL OR checkpoint_ns = @namespace)
  AND (@id::text IS NULL OR checkpoint_id = @id) AND seq < @below
ORDER BY seq DESC LIMIT @limit`;

/** Checkpoints that one query of a list reads. */
const PAGE = 50;
/** Checkpoints that one query of a history reads. */
const ANCESTORS = 500;

/** Texts by the hash of their content. */
class PostgresBlobs implements BlobStore {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  put({ thread, namespace }: GraphAddress, text: string): { name: string; stored: Promise<void> } {
    const content = Buffer.from(text);
    const hash = createHash("sha256").update(content).digest();
    const stored = query(this.#pool, PUT_BLOB, { thread, namespace, hash, content });
    return { name: hash.toString("base64url"), stored: stored.then(() => undefined) };
  }

  async get(name: string): Promise<string> {
    const hash = Buffer.from(name, "base64url");
    const sql = "SELECT content FROM checkpoint_blobs WHERE hash = @hash LIMIT 1";
    const [row] = await query<{ content: Uint8Array }>(this.#pool, sql, { hash });
    if (row !== undefined) return Buffer.from(row.content).toString();
    throw new StorageError(
      "storage_corrupt",
      "The Postgres schema lacks a part of a thread. Restore a backup, or start a new thread.",
    );
  }
}

/**
 * What LangGraph stores, one statement for each thing. A step's checkpoint is stored after the results it was made
 * of, and nothing in a thread that another process has taken since.
 */
export class PostgresCheckpointer extends BaseCheckpointSaver implements Checkpoints {
  readonly #pool: Pool;
  readonly #large: LargeValues;
  readonly #held = new Map<string, FencingToken>();
  /** Results that are being stored or could not be, by checkpoint and task. */
  readonly #results = new Map<string, Map<string, Promise<void>>>();
  /** All that is being stored. */
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(pool: Pool) {
    super();
    this.#pool = pool;
    this.#large = new LargeValues(new PostgresBlobs(pool), this.serde, postgresError);
    this.serde = this.#large;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId: thread, namespace, checkpointId: id } = addressOf(config);
    if (thread === undefined) return undefined;
    await this.#settled();
    const values = { thread, namespace };
    const [row] = await (id === undefined
      ? query<CheckpointRow>(this.#pool, NEWEST, values)
      : query<CheckpointRow>(this.#pool, ONE, { ...values, id }));
    return row && this.#tuple(row, id === undefined ? undefined : config);
  }

  async #tuple(row: CheckpointRow, config?: RunnableConfig): Promise<CheckpointTuple> {
    const { thread_id: thread, checkpoint_ns: namespace, parent_checkpoint_id: parent } = row;
    const at = (id: string): RunnableConfig => ({
      configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: id },
    });
    const writes = await query<WriteRow>(this.#pool, WRITES, { thread, namespace, id: row.checkpoint_id });
    // As they were stored by `put`.
    const checkpoint = (await this.serde.loadsTyped(row.type, row.checkpoint)) as Checkpoint;
    if (checkpoint.v < 4 && parent !== null)
      await this.#addSends(checkpoint, { thread, namespace, id: parent });
    return {
      checkpoint,
      metadata: (await this.serde.loadsTyped(row.type, row.metadata)) as CheckpointMetadata,
      config: config ?? at(row.checkpoint_id),
      pendingWrites: await revive(writes, this.serde),
      ...(parent === null ? {} : { parentConfig: at(parent) }),
    };
  }

  /** LangGraph's format before version 4 has the tasks to start among the writes of the checkpoint before. */
  async #addSends(checkpoint: Checkpoint, before: GraphAddress & { id: string }): Promise<void> {
    const writes = await query<WriteRow>(this.#pool, WRITES, { ...before });
    const sends = await revive(
      writes.filter(({ channel }) => channel === TASKS),
      this.serde,
    );
    checkpoint.channel_values[TASKS] = sends.map(([, , value]) => value);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  override async *list(
    config: RunnableConfig,
    { limit = Infinity, before, filter = {} }: CheckpointListOptions = {},
  ): AsyncGenerator<CheckpointTuple> {
    const { threadId: thread, checkpointId: id } = addressOf(config);
    const namespace = config.configurable?.["checkpoint_ns"] as unknown;
    const given = { thread: thread ?? null, namespace: typeof namespace === "string" ? namespace : null };
    await this.#settled();
    let below = before === undefined ? Number.MAX_SAFE_INTEGER : await this.#seqOf(before);
    for (let left = limit; left > 0;) {
      const values = { ...given, id: id ?? null, below, limit: PAGE };
      const rows = await query<CheckpointRow>(this.#pool, LIST, values);
      for (const row of rows) {
        below = row.seq;
        const tuple = await this.#tuple(row);
        const facts: Record<string, unknown> = { ...tuple.metadata };
        if (!Object.entries(filter).every(([key, value]) => isDeepStrictEqual(facts[key], value))) continue;
        yield tuple;
        left -= 1;
        if (left <= 0) return;
      }
      if (rows.length < PAGE) return;
    }
  }

  async #seqOf(config: RunnableConfig): Promise<number> {
    const { threadId: thread, namespace, checkpointId: id } = addressOf(config);
    const [row] = await query<CheckpointRow>(this.#pool, ONE, { thread, namespace, id });
    return row?.seq ?? 0;
  }

  override put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    return this.#watched(this.#putCheckpoint(config, checkpoint, metadata));
  }

  async #putCheckpoint(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    const { threadId: thread, namespace, checkpointId: parent } = addressOf(config);
    if (thread === undefined) throw missing("thread_id");
    const graph = { thread, namespace };
    const token = this.#tokenOf(thread);
    const encoded = allOf([
      this.#dumped(copyCheckpoint(checkpoint), graph),
      this.#dumped(metadata, graph),
    ] as const);
    const [[type, state], [factsType, facts]] = encoded instanceof Promise ? await encoded : encoded;
    if (type !== factsType) throw new Error("A checkpoint and its metadata must have the same encoding.");
    // LangGraph starts to store a checkpoint while results it was made from are still on their way.
    const before = keyOf(thread, namespace, parent);
    for (const result of this.#results.get(before)?.values() ?? []) await result;
    await this.#store(PUT_CHECKPOINT, thread, {
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
    this.#results.delete(before);
    return { configurable: { thread_id: thread, checkpoint_ns: namespace, checkpoint_id: checkpoint.id } };
  }

  /** Stores the writes of a task. LangGraph awaits this at the end of the step only. */
  override putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId: thread, namespace, checkpointId: id } = addressOf(config);
    if (thread === undefined) throw missing("thread_id");
    if (id === undefined) throw missing("checkpoint_id");
    const stored = this.#watched(this.#putResults({ thread, namespace, id, task: taskId }, writes));
    const key = keyOf(thread, namespace, id);
    const tasks = this.#results.get(key) ?? new Map<string, Promise<void>>();
    this.#results.set(key, tasks.set(taskId, stored));
    // A failure stays until a retry, because no checkpoint may follow that lacks these writes.
    const forget = (): void => {
      if (tasks.get(taskId) === stored) tasks.delete(taskId);
      if (tasks.size === 0 && this.#results.get(key) === tasks) this.#results.delete(key);
    };
    return stored.then(forget);
  }

  async #putResults(
    place: GraphAddress & { id: string; task: string },
    writes: readonly PendingWrite[],
  ): Promise<void> {
    const address = [place.thread, place.namespace, place.id, place.task] as const;
    const token = this.#tokenOf(place.thread);
    const encoded = encodeWrites((value) => this.#dumped(value, place), address, writes);
    const rows = encoded instanceof Promise ? await encoded : encoded;
    const column = (index: number): unknown[] => rows.map((row: WriteFields) => row[index]);
    // A task's own results are written once; errors, interrupts and answers replace the earlier ones.
    const replaces = writes.every(([channel]) => channel in WRITES_IDX_MAP);
    await this.#store(replaces ? REPLACE_WRITES : ADD_WRITES, place.thread, {
      ...token,
      ...place,
      indexes: column(4),
      names: column(5),
      types: column(6),
      values: rows.map(([, , , , , , , value]) => Buffer.from(value)),
    });
  }

  async #store(sql: string, thread: string, values: Record<string, unknown>): Promise<void> {
    const [row] = await query<{ held: boolean }>(this.#pool, sql, values);
    if (row?.held !== true) throw new FencedOffError(thread);
  }

  #tokenOf(thread: string): { run: number | null; claim: number | null } {
    return this.#held.get(thread) ?? { run: null, claim: null };
  }

  /** Waits for what is being stored, so that a read finds it. */
  async #settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  #watched<T>(work: Promise<T>): ObservedPromise<T> {
    const observed = ObservedPromise.of(work);
    this.#underWay.add(observed);
    const forget = (): void => void this.#underWay.delete(observed);
    observed.then(forget, forget);
    return observed;
  }

  /** Serialises a value after storing its large parts; a serialiser that replaced ours gets the value whole. */
  #dumped(value: unknown, graph: GraphAddress): Encoded | Promise<Encoded> {
    return this.serde === this.#large ? this.#large.dumps(value, graph) : this.serde.dumpsTyped(value);
  }

  async sync(): Promise<void> {
    await this.#settled();
    await query(this.#pool, SYNC);
  }

  async startOver(threadId: string, token: FencingToken): Promise<void> {
    const taken = await query(
      this.#pool,
      `INSERT INTO thread_fences (thread_id, run, claim) VALUES (@thread, @run, @claim)
       ON CONFLICT (thread_id) DO UPDATE SET run = excluded.run, claim = excluded.claim
       WHERE (thread_fences.run, thread_fences.claim) <= (excluded.run, excluded.claim)
       RETURNING thread_id`,
      { thread: threadId, ...token },
    );
    if (taken.length === 0) throw new FencedOffError(threadId);
    this.#held.set(threadId, token);
    for (const key of this.#results.keys()) if (threadOf(key) === threadId) this.#results.delete(key);
  }

  async tidyThread(threadId: string, token: FencingToken): Promise<void> {
    await this.#settled();
    const held = this.#held.get(threadId);
    if (held?.run === token.run && held.claim === token.claim) this.#held.delete(threadId);
    await postgresEngine(this.#pool).note(function* () {
      const sql =
        "SELECT 1 FROM thread_fences WHERE thread_id = @thread AND run = @run AND claim = @claim FOR SHARE";
      if ((yield* first(sql, { thread: threadId, ...token })) === undefined) return;
      for (const statement of DELETE_NESTED) yield* change(statement, { thread: threadId });
    });
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#settled();
    await postgresEngine(this.#pool).note(function* () {
      for (const table of TABLES)
        yield* change(`DELETE FROM ${table} WHERE thread_id = @id`, { id: threadId });
    });
  }

  async usedBytes(): Promise<number> {
    const sizes = TABLES.map((table) => `pg_total_relation_size('${table}')`).join(" + ");
    const [row] = await query<{ bytes: number }>(this.#pool, `SELECT ${sizes} AS bytes`);
    return row?.bytes ?? 0;
  }

  async returnSpace(): Promise<number> {
    const before = await this.usedBytes();
    for (const table of TABLES) await this.#pool.query(`VACUUM ${table}`);
    return Math.max(0, before - (await this.usedBytes()));
  }

  async threads(): Promise<string[]> {
    await this.#settled();
    return (await query<{ id: string }>(this.#pool, THREADS)).map(({ id }) => id);
  }

  async steps(threadId: string): Promise<ThreadStep[]> {
    await this.#settled();
    const chain = await query<Link>(this.#pool, `${CHAIN} SELECT * FROM chain ORDER BY depth DESC`, {
      thread: threadId,
      id: null,
    });
    const written = await query<{ id: string; type: string; value: Uint8Array }>(this.#pool, MESSAGES, {
      thread: threadId,
    });
    const messagesAt = (checkpoint: string | undefined): Promise<unknown[]> =>
      Promise.all(
        written
          .filter(({ id }) => id === checkpoint)
          .map(({ type, value }) => this.serde.loadsTyped(type, value)),
      );
    const steps: ThreadStep[] = [];
    for (const [index, { id, parent, step, source, made_at }] of chain.entries()) {
      // A checkpoint of input alone has nothing in the channels yet.
      if (source === "input") continue;
      // The writes at the checkpoint before make the step.
      steps.push({
        number: step,
        checkpointId: id,
        time: Date.parse(made_at),
        messages: parent === null ? [] : await messagesAt(chain[index - 1]?.id),
      });
    }
    return steps;
  }

  async copyThread(source: string, target: string, checkpointId?: string): Promise<boolean> {
    await this.#settled();
    const id = checkpointId ?? null;
    const place = { thread: source, target };
    return postgresEngine(this.#pool).write(function* () {
      const begin = yield* first<Link>(`${CHAIN} SELECT * FROM chain ORDER BY depth LIMIT 1`, {
        thread: source,
        id,
      });
      if (begin === undefined) return false;
      const newest = yield* first<{ id: string }>(NEWEST_ID, { thread: source });
      yield* change(COPY_BLOBS, place);
      yield* change(COPY_CHECKPOINTS, { ...place, id: begin.id });
      yield* change(COPY_WRITES, { ...place, id: begin.id, isNewest: newest?.id === begin.id ? 1 : 0 });
      return true;
    });
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const channels = [...new Set(options.channels)];
    const histories = new Map(channels.map((name): [string, DeltaChannelHistory] => [name, { writes: [] }]));
    const { threadId: thread, namespace, checkpointId: id } = addressOf(options.config);
    if (thread !== undefined && channels.length > 0) {
      await this.#settled();
      const graph = { thread, namespace };
      const ancestors = await this.#ancestors({ ...graph, id: id ?? null }, channels);
      for (const { id: from, found } of ancestors) {
        if (found.length === 0) continue;
        const [row] = await query<{ checkpoint: Uint8Array }>(this.#pool, STORED, { ...graph, ids: [from] });
        if (row !== undefined) await this.#seed(histories, found, row.checkpoint);
      }
      const ids = ancestors.map((ancestor) => ancestor.id);
      const rows = await query<WriteRow & { id: string }>(this.#pool, WRITTEN, { ...graph, ids, channels });
      const byPlace = new Map(ids.map((one): [string, WriteRow[]] => [one, []]));
      for (const row of rows) byPlace.get(row.id)?.push(row);
      const writes = ancestors
        .toReversed()
        .flatMap(({ id: at, open }) => (byPlace.get(at) ?? []).filter(({ channel }) => open.has(channel)));
      for (const write of await revive(writes, this.serde)) histories.get(write[1])?.writes.push(write);
    }
    return Object.fromEntries(histories);
  }

  /** The ancestors of a checkpoint, nearest first, until each of the channels has met one that stores its value. */
  async #ancestors(
    target: GraphAddress & { id: string | null },
    channels: readonly string[],
  ): Promise<Ancestor[]> {
    const ancestors: Ancestor[] = [];
    const open = new Set(channels);
    let wanted: string | null | undefined;
    for (let below = Number.MAX_SAFE_INTEGER; ;) {
      const values = { ...target, below, limit: ANCESTORS };
      const rows = await query<{ id: string; parent: string | null; channels: string[]; seq: number }>(
        this.#pool,
        BEFORE,
        values,
      );
      for (const { id, parent, channels: stored } of rows) {
        // The first is the checkpoint itself, whose own value and writes are not asked for.
        if (wanted !== undefined && id !== wanted) continue;
        if (wanted !== undefined) {
          const found = stored.filter((channel) => open.has(channel));
          ancestors.push({ id, open: new Set(open), found });
          for (const channel of found) open.delete(channel);
        }
        wanted = parent;
        if (wanted === null || open.size === 0) return ancestors;
      }
      const last = rows.at(-1);
      if (last === undefined || rows.length < ANCESTORS) return ancestors;
      below = last.seq;
    }
  }

  /** Sets the values that a stored checkpoint has of these channels, and loads no other. */
  async #seed(
    histories: ReadonlyMap<string, DeltaChannelHistory>,
    channels: readonly string[],
    checkpoint: Uint8Array,
  ): Promise<void> {
    // `put` stored it so.
    const { channel_values: values } = JSON.parse(Buffer.from(checkpoint).toString()) as {
      channel_values: Record<string, unknown>;
    };
    for (const channel of channels) {
      const history = histories.get(channel);
      const data = JSON.stringify(values[channel]);
      if (history !== undefined) history.seed = await this.serde.loadsTyped("json", data);
    }
  }
}
