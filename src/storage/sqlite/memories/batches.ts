import type { Transaction } from "../api.ts";
import { ownTurn } from "../../../core/concurrency.ts";
import { isTransient } from "../../../core/errors.ts";
import { inTransaction, quickly } from "../commit.ts";
import { type Database, whenUnlocked } from "../database.ts";
import type { ItemWriter, PreparedPut } from "./writes.ts";

/**
 * Batches that are too many writes for one turn of the event loop.
 *
 * - `store_batch_puts` holds the writes as JSON. Nobody sees them before their batch is whole; from then on they count
 *   as done, and whoever reads or writes carries out the rest of them first.
 * - `store_batches.whole_at` is when the batch became whole, in milliseconds since the epoch. There is one such batch
 *   at a time.
 */
export const BATCH_TABLES = `
CREATE TABLE store_batches (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  begun_at INTEGER NOT NULL,
  whole_at INTEGER
) STRICT;
CREATE UNIQUE INDEX store_batches_whole ON store_batches ((1)) WHERE whole_at IS NOT NULL;
CREATE TABLE store_batch_puts (
  batch INTEGER NOT NULL,
  number INTEGER NOT NULL,
  put TEXT NOT NULL,
  parts INTEGER,
  PRIMARY KEY (batch, number)
) STRICT;
CREATE INDEX store_batch_puts_parts ON store_batch_puts (parts) WHERE parts IS NOT NULL;`;

/** Writes that happen in one transaction: each brings the full-text index up to date. */
export const PUTS_PER_TURN = 4;
/** Characters of the JSON of writes in one transaction, without the last of them. */
const CHARACTERS_PER_TURN = 64 * 1024;
/** Preparing one batch never takes so long, in milliseconds. */
const PREPARING_MS = 3_600_000;

interface BatchRow {
  id: number;
  whole_at: number;
}
interface PutRow {
  number: number;
  put: string;
}

function prepare(database: Database) {
  return {
    begin: database
      .prepare<[number], number>("INSERT INTO store_batches (begun_at) VALUES (?) RETURNING id")
      .pluck(),
    add: database.prepare<[number, number, string, number | null]>(
      "INSERT INTO store_batch_puts (batch, number, put, parts) VALUES (?, ?, ?, ?)",
    ),
    complete: database.prepare<[number, number]>("UPDATE store_batches SET whole_at = ? WHERE id = ?"),
    whole: database.prepare<[], BatchRow>(
      "SELECT id, whole_at FROM store_batches WHERE whole_at IS NOT NULL LIMIT 1",
    ),
    next: database.prepare<[number], PutRow>(
      `SELECT number, put FROM store_batch_puts WHERE batch = ? ORDER BY number LIMIT ${PUTS_PER_TURN}`,
    ),
    drop: database.prepare<[number, number]>("DELETE FROM store_batch_puts WHERE batch = ? AND number <= ?"),
    end: database.prepare<[number]>("DELETE FROM store_batches WHERE id = ?"),
    abandoned: database
      .prepare<[number], number>(
        "SELECT id FROM store_batches WHERE whole_at IS NULL AND begun_at <= ? LIMIT 1",
      )
      .pluck(),
  };
}

/** Carries out all writes of one call or none of them, however many there are. */
export class Batches {
  readonly #database: Database;
  readonly #writer: ItemWriter;
  readonly #sql: ReturnType<typeof prepare>;
  readonly #alone: Transaction<(work: () => unknown) => { result: unknown } | undefined>;
  #settling: Promise<void> | undefined;

  constructor(database: Database, writer: ItemWriter) {
    this.#database = database;
    this.#writer = writer;
    this.#sql = prepare(database);
    this.#alone = database.transaction((work) =>
      this.#sql.whole.get() === undefined ? { result: work() } : undefined,
    );
  }

  /** Gives the result of `read` at a moment when no batch is half carried out. */
  async read<T>(read: () => T): Promise<T> {
    return this.#whenSettled(async () => this.#alone.deferred(read)) as Promise<T>; // what `read` gave
  }

  /** Does `write` at such a moment, in one transaction that outlives a power cut. */
  async write<T>(write: () => T): Promise<T> {
    const attempt = () => whenUnlocked(this.#database, () => this.#alone.immediate(write));
    return this.#whenSettled(attempt) as Promise<T>; // what `write` gave
  }

  /**
   * Writes all of them or none. Awaits `turn` after preparing them, and then takes the time of the writes from
   * `clock`.
   */
  async writeAll(
    puts: readonly PreparedPut[],
    { turn, clock }: { turn: Promise<unknown>; clock: () => number },
  ): Promise<void> {
    if (isShort(puts)) {
      await turn;
      return this.write(() => puts.forEach((put) => this.#writer.put(put, clock())));
    }
    const id = await this.#prepare(puts);
    await turn;
    await this.write(() => {
      if (this.#sql.complete.run(clock(), id).changes === 0) throw new Error(TOO_SLOW);
    });
    // The writes count as done; whoever comes next carries out those that fail now.
    await this.settle().catch(throwUnlessPassing);
  }

  /** Carries out the rest of a whole batch, some writes in each turn of the event loop. */
  async settle(): Promise<void> {
    if (this.#settling === undefined && this.#sql.whole.get() === undefined) return;
    this.#settling ??= this.#inTurns(() => this.#putSome()).finally(() => (this.#settling = undefined));
    await this.#settling;
  }

  /** Deletes the remains of batches that crashes kept from becoming whole. */
  async deleteAbandoned(now: number): Promise<void> {
    for (;;) {
      const id = this.#sql.abandoned.get(now - PREPARING_MS);
      if (id === undefined) return;
      await this.#inTurns(() => this.#dropSome(id));
    }
  }

  async #whenSettled(attempt: () => Promise<{ result: unknown } | undefined>): Promise<unknown> {
    for (;;) {
      const done = await attempt();
      if (done !== undefined) return done.result;
      await this.settle();
    }
  }

  async #prepare(puts: readonly PreparedPut[]): Promise<number> {
    // A power cut may undo this, because nothing of it was acknowledged; the log keeps the order.
    const id = await quickly(this.#database, () => this.#sql.begin.get(Date.now()));
    if (id === undefined) throw new Error("A batch got no id.");
    for (const [number, put] of puts.entries()) {
      if (number % PUTS_PER_TURN === 0) await ownTurn();
      await quickly(this.#database, () => this.#sql.add.run(id, number, encoded(put), put.parts));
    }
    return id;
  }

  async #inTurns(some: () => boolean): Promise<void> {
    while (await quickly(this.#database, () => inTransaction(this.#database, some))) await ownTurn();
  }

  /** Carries out some writes; false when nothing is left. */
  #putSome(): boolean {
    const batch = this.#sql.whole.get();
    if (batch === undefined) return false;
    let [last, characters] = [-1, 0];
    for (const { number, put } of this.#sql.next.all(batch.id)) {
      if (characters >= CHARACTERS_PER_TURN) break;
      this.#writer.put(decoded(put), batch.whole_at);
      [last, characters] = [number, characters + put.length];
    }
    if (last < 0) this.#sql.end.run(batch.id);
    else this.#sql.drop.run(batch.id, last);
    return true;
  }

  #dropSome(id: number): boolean {
    const last = this.#sql.next.all(id).at(-1);
    if (last === undefined) this.#sql.end.run(id);
    else this.#sql.drop.run(id, last.number);
    return last !== undefined;
  }
}

const TOO_SLOW = "Preparing a batch of memories took more than an hour, and was given up.";

/** Whether all of them can be written in one turn of the event loop. */
const isShort = (puts: readonly PreparedPut[]): boolean =>
  puts.length === 1 ||
  (puts.length <= PUTS_PER_TURN &&
    puts.reduce((sum, { json, text }) => sum + (json?.length ?? 0) + (text?.length ?? 0), 0) <
      CHARACTERS_PER_TURN);

function encoded({ vectors, ...put }: PreparedPut): string {
  const texts = vectors.map(({ field, vector }) => [field, Buffer.from(vector).toString("base64")]);
  return JSON.stringify({ ...put, vectors: texts });
}

function decoded(text: string): PreparedPut {
  // `encoded` wrote it.
  const put = JSON.parse(text) as Omit<PreparedPut, "vectors"> & { vectors: [string, string][] };
  const vectors = put.vectors.map(([field, vector]) => ({ field, vector: Buffer.from(vector, "base64") }));
  return { ...put, vectors };
}

function throwUnlessPassing(thrown: unknown): void {
  if (!isTransient(thrown)) throw thrown;
}
