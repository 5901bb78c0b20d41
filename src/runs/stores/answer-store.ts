import type { Statement } from "better-sqlite3";
import type { Database } from "../../storage/database.ts";

/** Signed answers that came back, of all runs: each counts once, whichever process it comes to. */
export class AnswerStore {
  readonly #use: Statement<{ id: string; run_id: string; now: number }>;

  constructor(database: Database) {
    this.#use = database.prepare(
      `INSERT INTO used_answers (id, run_id, used_at) VALUES (@id, @run_id, @now)
       ON CONFLICT (id) DO NOTHING`,
    );
  }

  /** False when it was used before. */
  use(runId: string, id: string, now: number): boolean {
    return this.#use.run({ id, run_id: runId, now }).changes === 1;
  }
}
