import type { Statement } from "better-sqlite3";
import type { Inbox, InboxMessage } from "../../agent/agent.ts";
import type { Database } from "../../storage/database.ts";
import type { Principal } from "../run.ts";

interface MessageRow extends InboxMessage {
  number: number;
}

export interface SentMessage {
  runId: string;
  text: string;
}

/** What people told runs while they worked. */
export class MessageStore {
  readonly #add: Statement<{ run_id: string; id: string; text: string; key: string | null; now: number }>;
  readonly #after: Statement<[string, number], MessageRow>;
  readonly #beforeRun: Statement<[string], MessageRow>;
  readonly #byKey: Statement<[string, string], SentMessage>;
  readonly #newest: Statement<[string], { number: number }>;

  constructor(database: Database) {
    this.#add = database.prepare(
      `INSERT INTO run_messages (run_id, id, text, idempotency_key, created_at)
       VALUES (@run_id, @id, @text, @key, @now)`,
    );
    this.#after = database.prepare(
      "SELECT number, id, text FROM run_messages WHERE run_id = ? AND number > ? ORDER BY number",
    );
    this.#beforeRun = database.prepare(
      `SELECT message.number, message.id, message.text FROM runs run
       JOIN runs earlier ON earlier.thread_id = run.thread_id AND earlier.number < run.number
       JOIN run_messages message ON message.run_id = earlier.id
       WHERE run.id = ? ORDER BY message.number`,
    );
    this.#byKey = database.prepare(
      `SELECT run_id AS runId, text FROM run_messages JOIN runs ON runs.id = run_id
       WHERE run_messages.idempotency_key = ? AND principal = ?`,
    );
    this.#newest = database.prepare(
      "SELECT number FROM run_messages WHERE run_id = ? ORDER BY number DESC LIMIT 1",
    );
  }

  /** The message that the principal sent with this key, to whichever run. */
  byKey(principal: Principal, key: string): SentMessage | undefined {
    return this.#byKey.get(key, principal);
  }

  /** Belongs inside the transaction of its event. */
  add(runId: string, message: InboxMessage, key: string | undefined, now: number): void {
    this.#add.run({ run_id: runId, ...message, key: key ?? null, now });
  }

  /** Those of the run with `number > after`, oldest first. */
  after(runId: string, after: number): MessageRow[] {
    return this.#after.all(runId, after);
  }

  /** What earlier runs of the thread were told, whether or not they came to read it; oldest first. */
  beforeRun(runId: string): InboxMessage[] {
    return this.#beforeRun.all(runId).map(({ id, text }) => ({ id, text }));
  }

  hasNewerThan(runId: string, number: number): boolean {
    return (this.#newest.get(runId)?.number ?? 0) > number;
  }
}

/** The messages of one run, with how far the agent has read. */
export class RunInbox implements Inbox {
  readonly #store: MessageStore;
  readonly #runId: string;
  readonly #messages: InboxMessage[] = [];
  #read = 0;

  constructor(store: MessageStore, runId: string) {
    this.#store = store;
    this.#runId = runId;
  }

  messages(): readonly InboxMessage[] {
    for (const { number, id, text } of this.#store.after(this.#runId, this.#read)) {
      this.#messages.push({ id, text });
      this.#read = number;
    }
    return this.#messages;
  }

  /** Whether a message came since the agent looked. */
  hasUnread(): boolean {
    return this.#store.hasNewerThan(this.#runId, this.#read);
  }
}
