import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Statement, Transaction } from "../api.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import {
  FencedOffError,
  type FencingToken,
  type ThreadStep,
  type WrittenMessages,
} from "../../../runs/thread-ports.ts";
import { timeOfId } from "../../checkpoints/id-time.ts";
import { UNFINISHED } from "../../checkpoints/writes.ts";
import { type Database, whenUnlocked } from "../database.ts";
import { type PackedCheckpoint, type PackedCheckpoints, bytesOf } from "./packed-checkpoints.ts";

interface FenceRow {
  thread: string;
  run: number;
  claim: number;
}

/**
 * Keeps a process that was stopped for longer than its lease (a laptop that slept, `SIGSTOP`) from storing
 * anything in a thread that others went on with: each takes the thread with its token, and what is stored is
 * checked against the newest one in the same transaction.
 */
export class ThreadFences {
  readonly #held = new Map<string, FencingToken>();
  readonly #take: Statement<FenceRow>;
  readonly #holds: Statement<FenceRow, number>;

  constructor(database: Database) {
    this.#take = database.prepare(
      `INSERT INTO thread_fences (thread_id, run, claim) VALUES (@thread, @run, @claim)
       ON CONFLICT (thread_id) DO UPDATE SET run = @run, claim = @claim
       WHERE (run, claim) <= (@run, @claim)`,
    );
    this.#holds = database
      .prepare<FenceRow, number>(
        "SELECT 1 FROM thread_fences WHERE thread_id = @thread AND run = @run AND claim = @claim",
      )
      .pluck();
  }

  /** Keeps earlier tokens from storing anything in the thread. @throws FencedOffError when there is a later one. */
  take(threadId: string, token: FencingToken): void {
    if (this.#take.run({ thread: threadId, ...token }).changes === 0) throw new FencedOffError(threadId);
    this.#held.set(threadId, token);
  }

  /** Ends the checks of a thread that this process is done with, unless it took the thread again since. */
  leave(threadId: string, token = this.#held.get(threadId)): void {
    const { run, claim } = this.#held.get(threadId) ?? {};
    if (token?.run === run && token?.claim === claim) this.#held.delete(threadId);
  }

  /**
   * Gives a function that throws when the thread was taken meanwhile; each transaction that stores something calls
   * it. It never throws for threads that were not taken here, as those of agents without runs.
   */
  guard(threadId: string, token = this.#held.get(threadId)): () => void {
    if (token === undefined) return () => undefined;
    return () => {
      if (this.#holds.get({ thread: threadId, ...token }) === undefined) throw new FencedOffError(threadId);
    };
  }
}

/** A checkpoint of a thread's own graph, in a row or in a pack. */
export interface Link {
  id: string;
  parent: string | null;
  /** Its content, unless it has a row of its own. */
  packed?: PackedCheckpoint;
}

/** Checkpoints looked up between two turns of the event loop. */
const LINKS_PER_TURN = 64;
const LINK = `
SELECT checkpoint_id AS id, parent_checkpoint_id AS parent FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ''`;

/** The way from a checkpoint back to the beginning of its thread, through rows and packs. */
export class ThreadChain {
  readonly #newest: Statement<[string], Link>;
  readonly #link: Statement<[string, string], Link>;
  readonly #packed: PackedCheckpoints;

  constructor(database: Database, packed: PackedCheckpoints) {
    this.#newest = database.prepare(`${LINK} ORDER BY checkpoint_id DESC LIMIT 1`);
    this.#link = database.prepare(`${LINK} AND checkpoint_id = ?`);
    this.#packed = packed;
  }

  /** Gives the checkpoints from the named or the newest one back, newest first; none when it does not exist. */
  async to(thread: string, checkpoint: string | undefined): Promise<Link[]> {
    const chain: Link[] = [];
    let pack: ReadonlyMap<string, PackedCheckpoint> | undefined;
    let link: Link | undefined;
    for (let id = checkpoint ?? this.#newest.get(thread)?.id ?? null; id !== null; id = link.parent) {
      if (chain.length % LINKS_PER_TURN === LINKS_PER_TURN - 1) await ownTurn();
      const packed = pack?.get(id);
      link = packed ? { id, parent: packed.parent, packed } : this.#link.get(thread, id);
      if (link === undefined) {
        pack = await this.#packed.around(thread, id);
        link = linkOf(pack?.get(id)) ?? this.#link.get(thread, id);
      }
      if (link === undefined) break;
      chain.push(link);
    }
    return chain;
  }

  /** Finds a checkpoint that may have been packed or unpacked since. */
  async find(thread: string, id: string): Promise<Link | undefined> {
    return (
      this.#link.get(thread, id) ??
      linkOf((await this.#packed.around(thread, id))?.get(id)) ??
      this.#link.get(thread, id)
    );
  }
}

const linkOf = (packed: PackedCheckpoint | undefined): Link | undefined =>
  packed && { id: packed.id, parent: packed.parent, packed };

interface StepFacts {
  number: number;
  source: string;
  time: string;
}
interface MessageWrite {
  type: string | null;
  value: Uint8Array | string;
}

const FACTS = `
SELECT CAST(metadata AS TEXT) ->> '$.step' AS number, CAST(metadata AS TEXT) ->> '$.source' AS source,
  CAST(checkpoint AS TEXT) ->> '$.ts' AS time
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?`;

const MESSAGES = `
SELECT type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = 'messages'
ORDER BY task_id, idx`;

interface WrittenRow {
  namespace: string;
  id: string;
  task: string;
  idx: number;
  type: string | null;
  /** `null` where the text is not in it. */
  value: Uint8Array | null;
}

/** The next rows after one, because a query that is still being read would block the connection. */
const WRITTEN = `
SELECT checkpoint_ns AS namespace, checkpoint_id AS id, task_id AS task, idx, type,
  CASE WHEN instr(value, @text) > 0 THEN value END AS value
FROM writes
WHERE thread_id = @thread AND channel = 'messages'
  AND (checkpoint_ns, checkpoint_id, task_id, idx) > (@namespace, @id, @task, @idx)
ORDER BY checkpoint_ns, checkpoint_id, task_id, idx LIMIT @limit`;

const THREADS = `
WITH RECURSIVE found (id) AS (
  SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints WHERE thread_id > @after
    UNION ALL SELECT min(thread_id) FROM packed_checkpoints WHERE thread_id > @after
  )
  UNION ALL
  SELECT (SELECT min(id) FROM (
    SELECT min(thread_id) AS id FROM checkpoints WHERE thread_id > found.id
    UNION ALL SELECT min(thread_id) FROM packed_checkpoints WHERE thread_id > found.id
  )) FROM found WHERE found.id IS NOT NULL
)
SELECT id FROM found WHERE id IS NOT NULL LIMIT @limit`;

/** Threads looked up between two turns of the event loop. */
const THREADS_PER_TURN = 500;
/** Steps read between two turns of the event loop. */
const STEPS_PER_TURN = 16;
/** Writes looked through between two turns of the event loop. */
const WRITES_PER_TURN = 100;

interface WrittenPage {
  thread: string;
  text: Uint8Array;
  limit: number;
}

/** The history of threads: which steps are kept. */
export class ThreadSteps {
  readonly #serde: SerializerProtocol;
  readonly #chain: ThreadChain;
  readonly #facts: Statement<[string, string], StepFacts>;
  readonly #messages: Statement<[string, string], MessageWrite>;
  readonly #threads: Statement<[{ after: string; limit: number }], string>;
  readonly #written: Statement<[Omit<WrittenRow, "type" | "value"> & WrittenPage], WrittenRow>;

  constructor(database: Database, serde: SerializerProtocol, chain: ThreadChain) {
    this.#serde = serde;
    this.#chain = chain;
    this.#facts = database.prepare(FACTS);
    this.#messages = database.prepare(MESSAGES);
    this.#threads = database.prepare<[{ after: string; limit: number }], string>(THREADS).pluck();
    this.#written = database.prepare(WRITTEN);
  }

  /** Oldest first. */
  async of(thread: string): Promise<ThreadStep[]> {
    const steps: ThreadStep[] = [];
    /** The writes at the checkpoint before make the step. */
    let messages: unknown[] = [];
    const chain = (await this.#chain.to(thread, undefined)).reverse();
    for (const [index, { id, parent }] of chain.entries()) {
      if (index % STEPS_PER_TURN === STEPS_PER_TURN - 1) await ownTurn();
      const link = chain[index]?.packed ? chain[index] : await this.#chain.find(thread, id);
      if (link === undefined) continue; // deleted meanwhile
      const { number, source, time } = this.#factsOf(thread, link);
      // A checkpoint of input alone has nothing in the channels yet.
      if (source !== "input") {
        steps.push({
          number,
          checkpointId: id,
          time: Date.parse(time),
          messages: parent === null ? [] : messages,
        });
      }
      messages = await this.#messagesAt(thread, link);
    }
    return steps;
  }

  /** Messages that hold `text`, of graphs inside the thread too, those of the thread's own graph oldest first. */
  async with(thread: string, text: string): Promise<WrittenMessages[]> {
    const found = await this.#packedWith(thread, text);
    for await (const { namespace, id, messages } of this.storedWith(thread, text)) {
      found.push({ namespace, time: timeOfId(id), messages });
    }
    return found;
  }

  async #packedWith(thread: string, text: string): Promise<WrittenMessages[]> {
    const found: WrittenMessages[] = [];
    const chain = (await this.#chain.to(thread, undefined)).reverse();
    for (const [index, link] of chain.entries()) {
      if (index % STEPS_PER_TURN === STEPS_PER_TURN - 1) await ownTurn();
      for (const [, , channel, type, value] of link.packed?.writes ?? []) {
        const bytes = channel === "messages" ? bytesOf(type, value) : undefined;
        if (bytes === undefined || !bytes.includes(text)) continue;
        const messages = await this.#serde.loadsTyped(type ?? "json", bytes);
        found.push({ namespace: "", time: timeOfId(link.id), messages });
      }
    }
    return found;
  }

  /** Those of them that are not packed, as all of graphs inside the thread. */
  async *storedWith(
    thread: string,
    text: string,
  ): AsyncGenerator<{
    namespace: string;
    /** Of the checkpoint. */
    id: string;
    task: string;
    messages: unknown;
  }> {
    const page = { thread, text: Buffer.from(text), limit: WRITES_PER_TURN };
    for (let last = { namespace: "", id: "", task: "", idx: -1 }; ;) {
      const rows = this.#written.all({ ...page, ...last });
      for (const { namespace, id, task, type, value } of rows) {
        if (value === null) continue;
        yield { namespace, id, task, messages: await this.#serde.loadsTyped(type ?? "json", value) };
      }
      const end = rows.at(-1);
      if (end === undefined || rows.length < WRITES_PER_TURN) return;
      last = { namespace: end.namespace, id: end.id, task: end.task, idx: end.idx };
      await ownTurn();
    }
  }

  #factsOf(thread: string, { id, packed }: Link): StepFacts {
    if (packed === undefined) return this.#facts.get(thread, id) ?? { number: 0, source: "input", time: "" };
    // LangGraph wrote them so; for rows SQL reads the same.
    const { step, source } = JSON.parse(packed.metadata) as { step: number; source: string };
    return { number: step, source, time: (JSON.parse(packed.checkpoint) as { ts: string }).ts };
  }

  #messagesAt(thread: string, { id, packed }: Link): Promise<unknown[]> {
    const writes: MessageWrite[] =
      packed?.writes
        .filter(([, , channel]) => channel === "messages")
        .map(([, , , type, value]) => ({ type, value: bytesOf(type, value) })) ??
      this.#messages.all(thread, id);
    return Promise.all(writes.map(({ type, value }) => this.#serde.loadsTyped(type ?? "json", value)));
  }

  /** One look-up per thread, however many checkpoints each has. */
  async threads(): Promise<string[]> {
    const threads: string[] = [];
    for (;;) {
      const some = this.#threads.all({ after: threads.at(-1) ?? "", limit: THREADS_PER_TURN });
      // One by one: there may be more than a call takes arguments.
      for (const id of some) threads.push(id);
      if (some.length < THREADS_PER_TURN) return threads;
      await ownTurn();
    }
  }
}

/** Checkpoints copied in one transaction. */
const COPIED_PER_TURN = 16;

interface Place {
  thread: string;
  target: string;
}

/** Copies references to blobs, also those that only later steps of the source use. */
const COPY_BLOB_USES = `
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT @target, '', blob FROM checkpoint_blob_uses
WHERE thread_id = @thread AND checkpoint_ns = '' AND blob > @after AND blob <= @last`;

/** Selects the last of the next few references. */
const LAST_BLOB_USE = `
SELECT max(blob) FROM (SELECT blob FROM checkpoint_blob_uses
  WHERE thread_id = ? AND checkpoint_ns = '' AND blob > ? ORDER BY blob LIMIT 200)`;

const COPY_CHECKPOINT = `
INSERT OR REPLACE INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT @target, '', checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
WHERE thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id = @id`;

const COPY_WRITES = `
INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT @target, '', checkpoint_id, task_id, idx, channel, type, value FROM writes
WHERE thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id = @id
  AND channel NOT IN (SELECT value FROM json_each(@without))`;

const NEWEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''";

/** Copies of threads as they were at a checkpoint. */
export class ThreadCopy {
  readonly #database: Database;
  readonly #chain: ThreadChain;
  readonly #packed: PackedCheckpoints;
  readonly #uses: Statement<[Place & { after: number; last: number }]>;
  readonly #lastUse: Statement<[string, number], number | null>;
  readonly #checkpoint: Statement<[Place & { id: string }]>;
  readonly #writes: Statement<[Place & { id: string; without: string }]>;
  readonly #newest: Statement<[string], string | null>;
  readonly #some: Transaction<(place: Place, links: readonly Link[], ends: boolean) => Link[]>;

  constructor(database: Database, chain: ThreadChain, packed: PackedCheckpoints) {
    this.#database = database;
    this.#chain = chain;
    this.#packed = packed;
    this.#uses = database.prepare(COPY_BLOB_USES);
    this.#lastUse = database.prepare<[string, number], number | null>(LAST_BLOB_USE).pluck();
    this.#checkpoint = database.prepare(COPY_CHECKPOINT);
    this.#writes = database.prepare(COPY_WRITES);
    this.#newest = database.prepare<[string], string | null>(NEWEST).pluck();
    this.#some = database.transaction((place, links, ends) =>
      links.filter((link, index) => !this.#copy(place, link, ends && index === links.length - 1)),
    );
  }

  /**
   * Makes `target` of the thread as it was at the checkpoint, default its newest: oldest first, a few in each
   * turn of the event loop. False when there is no such checkpoint, or it is deleted meanwhile. Repeated, it
   * changes nothing.
   */
  async make({ thread, target }: Place, checkpoint: string | undefined): Promise<boolean> {
    const chain = (await this.#chain.to(thread, checkpoint)).reverse();
    if (chain.length === 0) return false;
    await this.#copyUses({ thread, target });
    for (let at = 0; at < chain.length; at += COPIED_PER_TURN) {
      await ownTurn();
      const isCopied = await this.#copyAll(
        { thread, target },
        chain.slice(at, at + COPIED_PER_TURN),
        at + COPIED_PER_TURN >= chain.length,
      );
      if (!isCopied) return false;
    }
    return true;
  }

  /** Copies the references of the thread to blobs, some in each turn. */
  async #copyUses(place: Place): Promise<void> {
    for (let after = -1; ;) {
      const last = this.#lastUse.get(place.thread, after) ?? null;
      if (last === null) return;
      const some = { ...place, after, last };
      await whenUnlocked(this.#database, () => this.#uses.run(some));
      after = last;
      await ownTurn();
    }
  }

  async #copyAll(place: Place, links: readonly Link[], ends: boolean): Promise<boolean> {
    const left = await whenUnlocked(this.#database, () => this.#some.immediate(place, links, ends));
    for (const { id } of left) {
      // It was packed since the way was looked up.
      const link = await this.#chain.find(place.thread, id);
      const isLast = ends && id === links.at(-1)?.id;
      const missed =
        link && (await whenUnlocked(this.#database, () => this.#some.immediate(place, [link], isLast)));
      if (missed?.length !== 0) return false;
    }
    return true;
  }

  /**
   * False when the row is not there. What was written after an earlier checkpoint than the newest made the
   * next one, and has no place behind a copy of it. Of the newest, results of calls that had ended go along,
   * but not what waits for an answer.
   */
  #copy(place: Place, { id, packed }: Link, isLast: boolean): boolean {
    const isNewest = isLast && this.#newest.get(place.thread) === id;
    if (packed) {
      this.#packed.putRows(place.target, isLast ? withoutWrites(packed) : packed);
      return true;
    }
    if (this.#checkpoint.run({ ...place, id }).changes === 0) return false;
    if (!isLast) this.#writes.run({ ...place, id, without: "[]" });
    else if (isNewest) this.#writes.run({ ...place, id, without: JSON.stringify(UNFINISHED) });
    return true;
  }
}

/** A packed checkpoint has newer ones behind it, so nobody needs its writes. */
const withoutWrites = (packed: PackedCheckpoint): PackedCheckpoint => ({ ...packed, writes: [] });
