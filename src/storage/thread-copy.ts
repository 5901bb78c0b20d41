import type { Statement, Transaction } from "better-sqlite3";
import { WRITES_IDX_MAP } from "@langchain/langgraph-checkpoint";
import { ownTurn } from "../core/turns.ts";
import type { Database } from "./database.ts";
import { whenUnlocked } from "./lock-wait.ts";
import type { PackedCheckpoint, PackedCheckpoints } from "./packed-checkpoints.ts";
import type { Link, ThreadChain } from "./thread-chain.ts";

/** Checkpoints copied in one transaction. */
const COPIED_PER_TURN = 16;
/** Errors, requests and answers: a task with other writes has finished. */
const UNFINISHED = Object.keys(WRITES_IDX_MAP);

interface Place {
  thread: string;
  target: string;
}

/** Some of it may be used by later steps of the source only. */
const COPY_BLOB_USES = `
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT @target, '', blob FROM checkpoint_blob_uses
WHERE thread_id = @thread AND checkpoint_ns = '' AND blob > @after AND blob <= @last`;

/** The last of the next few. */
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

  /** False when the thread was deleted since the way was looked up. */
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

/** What is packed has newer ones behind it. */
const withoutWrites = (packed: PackedCheckpoint): PackedCheckpoint => ({ ...packed, writes: [] });
