import type { Statement } from "better-sqlite3";
import type { Inbox, InboxMessage } from "../../agent/agent-core.ts";
import type { Database } from "../../storage/database.ts";

interface MessageRow extends InboxMessage {
  number: number;
}

/** What people told runs while they worked. */
export class MessageStore {
  readonly #add: Statement<{ run_id: string; id: string; text: string; now: number }>;
  readonly #ofRun: Statement<[string], MessageRow>;
  readonly #has: Statement<[string, string]>;
  readonly #newest: Statement<[string], { number: number }>;

  constructor(database: Database) {
    this.#add = database.prepare(
      `INSERT INTO run_messages (run_id, id, text, created_at) VALUES (@run_id, @id, @text, @now)`,
    );
    this.#ofRun = database.prepare(
      "SELECT number, id, text FROM run_messages WHERE run_id = ? ORDER BY number",
    );
    this.#has = database.prepare("SELECT 1 FROM run_messages WHERE run_id = ? AND id = ?");
    this.#newest = database.prepare(
      "SELECT number FROM run_messages WHERE run_id = ? ORDER BY number DESC LIMIT 1",
    );
  }

  has(runId: string, id: string): boolean {
    return this.#has.get(runId, id) !== undefined;
  }

  /** Belongs inside the transaction of its event. */
  add(runId: string, message: InboxMessage, now: number): void {
    this.#add.run({ run_id: runId, ...message, now });
  }

  /** Oldest first. */
  ofRun(runId: string): MessageRow[] {
    return this.#ofRun.all(runId);
  }

  hasNewerThan(runId: string, number: number): boolean {
    return (this.#newest.get(runId)?.number ?? 0) > number;
  }
}

/** The messages of one run, with how far the agent has read. */
export class RunInbox implements Inbox {
  readonly #store: MessageStore;
  readonly #runId: string;
  #read = 0;

  constructor(store: MessageStore, runId: string) {
    this.#store = store;
    this.#runId = runId;
  }

  messages(): readonly InboxMessage[] {
    const rows = this.#store.ofRun(this.#runId);
    this.#read = rows.at(-1)?.number ?? 0;
    return rows.map(({ id, text }) => ({ id, text }));
  }

  /** Whether a message came since the agent looked. */
  hasUnread(): boolean {
    return this.#store.hasNewerThan(this.#runId, this.#read);
  }
}
