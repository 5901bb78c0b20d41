import type { Statement } from "better-sqlite3";
import type { Database } from "../../storage/database.ts";
import { type JournalEntry, isRepeat } from "../journal.ts";
import { type EventRow, toEvent } from "./rows.ts";
import { toJson } from "./json.ts";
import type { RunEvent } from "../run.ts";

/** The journals of all runs. `append` belongs inside the transaction of what it tells about. */
export class EventStore {
  readonly #next: Statement<{ id: string; now: number }, { last_seq: number }>;
  readonly #insert: Statement<EventRow & { identity: string | null }>;
  readonly #latest: Statement<[string, string], Pick<EventRow, "kind" | "data">>;
  readonly #page: Statement<[string, number, number], EventRow>;

  constructor(database: Database) {
    this.#next = database.prepare(
      "UPDATE runs SET last_seq = last_seq + 1, updated_at = @now WHERE id = @id RETURNING last_seq",
    );
    this.#insert = database.prepare(
      `INSERT INTO run_events (run_id, seq, time, agent, kind, data, identity)
       VALUES (@run_id, @seq, @time, @agent, @kind, @data, @identity)`,
    );
    // Without the hint SQLite walks the run's events from the end, which gets longer with every one.
    this.#latest = database.prepare(
      `SELECT kind, data FROM run_events INDEXED BY run_events_identity
       WHERE run_id = ? AND identity = ? ORDER BY seq DESC LIMIT 1`,
    );
    this.#page = database.prepare(
      `SELECT run_id, seq, time, agent, kind, data FROM run_events
       WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?`,
    );
  }

  /** Whether the journal has this already. */
  has(runId: string, entry: JournalEntry): boolean {
    if (entry.identity === undefined) return false;
    const latest = this.#latest.get(runId, entry.identity);
    return latest !== undefined && isRepeat(entry, latest);
  }

  append(runId: string, entry: JournalEntry, now: number): void {
    const next = this.#next.get({ id: runId, now });
    if (next === undefined) throw new Error(`There is no run ${runId} to write an event of.`);
    this.#insert.run({
      run_id: runId,
      seq: next.last_seq,
      time: now,
      agent: toJson(entry.agent),
      kind: entry.kind,
      data: toJson(entry.data),
      identity: entry.identity ?? null,
    });
  }

  /** Events with `seq > after`, oldest first. */
  page(runId: string, after: number, limit: number): RunEvent[] {
    return this.#page.all(runId, after, limit).map(toEvent);
  }
}
