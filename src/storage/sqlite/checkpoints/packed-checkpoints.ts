import { promisify } from "node:util";
import { deflateRaw, inflateRaw } from "node:zlib";
import type { Transaction } from "../api.ts";
import { unreadable } from "../errors.ts";
import { type Database, whenUnlocked } from "../database.ts";

/** A checkpoint and what was written after it, as they lay in their tables. */
export interface PackedCheckpoint {
  id: string;
  parent: string | null;
  checkpoint: string;
  metadata: string;
  /** By task and position. */
  writes: PackedWrite[];
}

/** Values of the encoding `json` are text, the others base64. */
type PackedWrite = [task: string, position: number, channel: string, type: string | null, value: string];

/** So many of the newest checkpoints of a thread are not packed, because a run goes on from there. */
const UNPACKED = 4;
/** The most that goes into one pack; reading and writing more would block the event loop. */
const CHECKPOINTS_PER_PACK = 64;
const BYTES_PER_PACK = 256_000;

interface Place {
  thread: string;
  first: string;
  last: string;
}
interface CheckpointFields {
  thread: string;
  id: string;
  parent: string | null;
  checkpoint: Uint8Array;
  metadata: Uint8Array;
}
type WriteRow = { task: string; position: number; channel: string; type: string | null; value: Buffer };

const SUPERSEDED = `
SELECT checkpoint_id FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '' AND type = 'json'
  AND checkpoint_id < (SELECT checkpoint_id FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1 OFFSET ${UNPACKED - 1})
ORDER BY checkpoint_id LIMIT ${CHECKPOINTS_PER_PACK}`;

const BETWEEN = "thread_id = @thread AND checkpoint_ns = '' AND checkpoint_id BETWEEN @first AND @last";

/** Superseded checkpoints of a thread at work that are packed together, and those of one that rests. */
const PACKED_AT_WORK = 24;
const PACKED_AT_REST = 8;
/** Threads whose superseded checkpoints are counted. */
const COUNTED_THREADS = 10_000;

function prepare(database: Database) {
  return {
    superseded: database.prepare<[{ thread: string }], string>(SUPERSEDED).pluck(),
    checkpoint: database.prepare<[string, string], Omit<CheckpointFields, "thread">>(`
SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, checkpoint, metadata FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?`),
    writes: database.prepare<[string, string], WriteRow>(`
SELECT task_id AS task, idx AS position, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_id, idx`),
    deleteCheckpoints: database.prepare<[Place]>(`DELETE FROM checkpoints WHERE ${BETWEEN}`),
    deleteWrites: database.prepare<[Place]>(`DELETE FROM writes WHERE ${BETWEEN}`),
    putPack: database.prepare<[Place & { pack: Buffer }]>(
      "INSERT INTO packed_checkpoints (thread_id, first_id, last_id, pack) VALUES (@thread, @first, @last, @pack)",
    ),
    packOf: database
      .prepare<[string, string], Buffer>(
        "SELECT pack FROM packed_checkpoints WHERE thread_id = ? AND last_id >= ? ORDER BY last_id LIMIT 1",
      )
      .pluck(),
    threads: database.prepare<[], string>("SELECT DISTINCT thread_id FROM packed_checkpoints").pluck(),
    packs: database.prepare<[string], { last: string; pack: Buffer }>(
      "SELECT last_id AS last, pack FROM packed_checkpoints WHERE thread_id = ? ORDER BY last_id",
    ),
    deletePack: database.prepare<[string, string]>(
      "DELETE FROM packed_checkpoints WHERE thread_id = ? AND last_id = ?",
    ),
    putCheckpoint: database.prepare<[CheckpointFields]>(`
INSERT OR IGNORE INTO checkpoints
(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (@thread, '', @id, @parent, 'json', @checkpoint, @metadata)`),
    putWrite: database.prepare<[string, string, string, number, string, string | null, Uint8Array]>(`
INSERT OR IGNORE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
VALUES (?, '', ?, ?, ?, ?, ?, ?)`),
  };
}

/**
 * Checkpoints of a thread that newer ones have superseded, many in one compressed row each. Most of a row
 * repeats the one before it, so that alone they take several times the room of what they are about.
 *
 * Nothing is lost: a history is read through packs, and whoever wants single checkpoints unpacks them.
 */
export class PackedCheckpoints {
  readonly #database: Database;
  readonly #sql: ReturnType<typeof prepare>;
  /** Checkpoints stored since a thread was packed. */
  readonly #added = new Map<string, number>();
  readonly #replace: Transaction<(place: Place, pack: Buffer, writes: number, steps: number) => void>;
  readonly #restore: Transaction<(thread: string, last: string, steps: readonly PackedCheckpoint[]) => void>;

  constructor(database: Database) {
    const sql = prepare(database);
    this.#database = database;
    this.#sql = sql;
    this.#replace = database.transaction((place, pack, writes, checkpoints) => {
      const deleted = sql.deleteCheckpoints.run(place).changes;
      // Another process changed the thread since these were read.
      if (deleted !== checkpoints || sql.deleteWrites.run(place).changes !== writes) throw new Changed();
      sql.putPack.run({ ...place, pack });
    });
    this.#restore = database.transaction((thread, last, steps) => {
      if (sql.deletePack.run(thread, last).changes === 0) return;
      for (const step of steps) this.putRows(thread, step);
    });
  }

  /** Packs a thread at work from time to time; to be called after a checkpoint was added. A failure is ignored. */
  packSometimes(thread: string): void {
    const added = (this.#added.get(thread) ?? 0) + 1;
    if (this.#added.size > COUNTED_THREADS) this.#added.clear();
    this.#added.set(thread, added % PACKED_AT_WORK);
    if (added === PACKED_AT_WORK) this.#pack(thread, PACKED_AT_WORK).catch(() => undefined);
  }

  /** Packs all superseded checkpoints of a thread that nobody works on. */
  async packAll(thread: string): Promise<void> {
    this.forget(thread);
    await this.#pack(thread, PACKED_AT_REST);
  }

  /** Forgets a thread that this process does not work on any more. */
  forget(thread: string): void {
    this.#added.delete(thread);
  }

  /** Packs what is superseded, as long as there are `least` checkpoints to pack. */
  async #pack(thread: string, least: number): Promise<void> {
    for (;;) {
      const ids = this.#sql.superseded.all({ thread });
      if (ids.length < least) return;
      const steps = this.#read(thread, ids);
      const [first, last] = [steps[0]?.id, steps.at(-1)?.id];
      if (first === undefined || last === undefined) return;
      const pack = await compressed(JSON.stringify(steps));
      const writes = steps.reduce((sum, step) => sum + step.writes.length, 0);
      try {
        await whenUnlocked(this.#database, () =>
          this.#replace.immediate({ thread, first, last }, pack, writes, steps.length),
        );
      } catch (thrown) {
        if (thrown instanceof Changed) return;
        throw thrown;
      }
    }
  }

  /** Turns the packs of a thread into rows again; false when it has none. */
  async unpack(thread: string): Promise<boolean> {
    const packs = this.#sql.packs.all(thread);
    for (const { last, pack } of packs) {
      const steps = await decoded(pack);
      await whenUnlocked(this.#database, () => this.#restore.immediate(thread, last, steps));
    }
    return packs.length > 0;
  }

  /** Turns the packs of every thread into rows again. */
  async unpackAll(): Promise<void> {
    for (const thread of this.#sql.threads.all()) await this.unpack(thread);
  }

  /** Stores it in a thread as rows, unless they exist already. Belongs into a transaction. */
  putRows(thread: string, { id, parent, checkpoint, metadata, writes }: PackedCheckpoint): void {
    const [state, facts] = [Buffer.from(checkpoint), Buffer.from(metadata)];
    this.#sql.putCheckpoint.run({ thread, id, parent, checkpoint: state, metadata: facts });
    for (const [task, position, channel, type, value] of writes) {
      this.#sql.putWrite.run(thread, id, task, position, channel, type, bytesOf(type, value));
    }
  }

  /** Gives the checkpoints of the pack that has this one, by id. */
  async around(thread: string, id: string): Promise<Map<string, PackedCheckpoint> | undefined> {
    const pack = this.#sql.packOf.get(thread, id);
    if (pack === undefined) return undefined;
    const steps = new Map((await decoded(pack)).map((step) => [step.id, step]));
    return steps.has(id) ? steps : undefined;
  }

  #read(thread: string, ids: readonly string[]): PackedCheckpoint[] {
    const steps: PackedCheckpoint[] = [];
    let bytes = 0;
    for (const id of ids) {
      const row = this.#sql.checkpoint.get(thread, id);
      if (row === undefined || bytes > BYTES_PER_PACK) break;
      const writes = this.#sql.writes.all(thread, id);
      bytes += writes.reduce((sum, { value }) => sum + value.length, row.checkpoint.length);
      steps.push({
        id,
        parent: row.parent,
        checkpoint: Buffer.from(row.checkpoint).toString(),
        metadata: Buffer.from(row.metadata).toString(),
        writes: writes.map(({ task, position, channel, type, value }) => [
          task,
          position,
          channel,
          type,
          type === "json" ? value.toString() : value.toString("base64"),
        ]),
      });
    }
    return steps;
  }
}

class Changed extends Error {
  override readonly name: string = "Changed";
}

/** Gives the value of a packed write as it was in its table. */
export const bytesOf = (type: string | null, value: string): Buffer =>
  Buffer.from(value, type === "json" ? "utf8" : "base64");

const deflate = promisify(deflateRaw);
const inflate = promisify(inflateRaw);

const compressed = (text: string): Promise<Buffer> => deflate(Buffer.from(text));

async function decoded(pack: Buffer): Promise<PackedCheckpoint[]> {
  try {
    const text = (await inflate(pack)).toString();
    return JSON.parse(text) as PackedCheckpoint[]; // written by `pack` only
  } catch (thrown) {
    throw unreadable(thrown, "the database of checkpoints");
  }
}
