import type { Statement } from "better-sqlite3";
import { FencedOffError, type FencingToken } from "../../../runs/ports.ts";
import type { Database } from "../database.ts";

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
