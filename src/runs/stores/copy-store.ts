import type { Statement } from "better-sqlite3";
import type { Database } from "../../storage/database.ts";

/**
 * Threads that are being made as copies of others. Their checkpoints are in another file, so the note is
 * here before they are, until the thread is in use or given up.
 */
export class CopyStore {
  readonly #begin: Statement<{ id: string; now: number }>;
  readonly #take: Statement<[string]>;
  readonly #abandoned: Statement<[number], string>;

  constructor(database: Database) {
    this.#begin = database.prepare("INSERT INTO thread_copies (id, begun_at) VALUES (@id, @now)");
    this.#take = database.prepare("DELETE FROM thread_copies WHERE id = ?");
    this.#abandoned = database
      .prepare<[number], string>("DELETE FROM thread_copies WHERE begun_at < ? RETURNING id")
      .pluck();
  }

  begin(id: string, now: number): void {
    this.#begin.run({ id, now });
  }

  /** False when the copy was given up meanwhile. Belongs inside the transaction that puts it to use. */
  take(id: string): boolean {
    return this.#take.run(id).changes === 1;
  }

  /** Gives up copies begun before a time; their checkpoints are to be deleted. */
  giveUp(before: number): string[] {
    return this.#abandoned.all(before);
  }
}
