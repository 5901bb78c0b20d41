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

  /** From here on earlier tokens store nothing in the thread. @throws FencedOffError when there is a later one. */
  take(threadId: string, token: FencingToken): void {
    if (this.#take.run({ thread: threadId, ...token }).changes === 0) throw new FencedOffError(threadId);
    this.#held.set(threadId, token);
  }

  /** This process is done with the thread for now, unless it took it again since: nothing more is checked. */
  leave(threadId: string, token = this.#held.get(threadId)): void {
    const { run, claim } = this.#held.get(threadId) ?? {};
    if (token?.run === run && token?.claim === claim) this.#held.delete(threadId);
  }

  /**
   * What is to be called inside the transaction that stores something: it throws when the thread was taken
   * meanwhile. Threads that were never taken here, of agents without runs, are anybody's.
   */
  guard(threadId: string, token = this.#held.get(threadId)): () => void {
    if (token === undefined) return () => undefined;
    return () => {
      if (this.#holds.get({ thread: threadId, ...token }) === undefined) throw new FencedOffError(threadId);
    };
  }
}
