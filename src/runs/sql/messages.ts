/** Messages to runs at work: of people, and reports of the runs that they started. */
import type { AgentPath, InboxMessage } from "../../agent/agent.ts";
import { type Json, fromJson } from "../../core/json.ts";
import type { RunInbox } from "../ports.ts";
import type { Principal } from "../run.ts";
import { type Engine, type Steps, all, exists, first, insert } from "./steps.ts";

interface MessageRow extends InboxMessage {
  number: number;
  /** Thread of the run whose report it is; null: a person sent it. */
  thread_id: string | null;
  agent: Json<AgentPath> | null;
}

/** The report of a run is a message with the id of the run. */
const COLUMNS = "message.number, message.id, message.text, child.thread_id, child.agent";
const CHILD = "LEFT JOIN runs child ON child.id = message.id AND child.parent_id = message.run_id";

function toInboxMessage({ id, text, thread_id: threadId, agent }: MessageRow): InboxMessage {
  const name = agent === null ? undefined : fromJson(agent).at(-1)?.name;
  return threadId === null || name === undefined ? { id, text } : { id, text, from: { name, threadId } };
}

export interface SentMessage {
  runId: string;
  text: string;
}

/** The message that the principal sent with this key, to whichever run. */
export const byKey = (principal: Principal, key: string): Steps<SentMessage | undefined> =>
  first<SentMessage>(
    `SELECT run_id AS "runId", text FROM run_messages JOIN runs ON runs.id = run_id
     WHERE run_messages.idempotency_key = @key AND principal = @principal`,
    { key, principal },
  );

/** Belongs into the transaction of its event. */
export function* add(runId: string, message: InboxMessage, key: string | undefined, now: number) {
  const { id, text } = message;
  yield* insert("run_messages", { run_id: runId, id, text, idempotency_key: key ?? null, created_at: now });
}

/** True if the run got this message before. */
export const has = (runId: string, id: string): Steps<boolean> =>
  exists("SELECT id FROM run_messages WHERE run_id = @run_id AND id = @id", { run_id: runId, id });

/** Messages to earlier runs of the thread, read or not; oldest first. */
export function* beforeRun(runId: string): Steps<InboxMessage[]> {
  const rows = yield* all<MessageRow>(
    `SELECT ${COLUMNS} FROM runs run
     JOIN runs earlier ON earlier.thread_id = run.thread_id AND earlier.number < run.number
     JOIN run_messages message ON message.run_id = earlier.id ${CHILD}
     WHERE run.id = @run_id ORDER BY message.number`,
    { run_id: runId },
  );
  return rows.map(toInboxMessage);
}

export function* hasNewerThan(runId: string, number: number): Steps<boolean> {
  const newest = yield* first<{ number: number }>(
    "SELECT number FROM run_messages WHERE run_id = @run_id ORDER BY number DESC LIMIT 1",
    { run_id: runId },
  );
  return (newest?.number ?? 0) > number;
}

/** The messages of one run, with how far the agent has read. */
export function storedInbox(engine: Engine, runId: string): RunInbox {
  const given: InboxMessage[] = [];
  const inbox = {
    read: 0,
    messages: async (): Promise<readonly InboxMessage[]> => {
      const sql = `SELECT ${COLUMNS} FROM run_messages message ${CHILD}
        WHERE message.run_id = @run_id AND message.number > @read ORDER BY message.number`;
      const rows = await engine.read(() => all<MessageRow>(sql, { run_id: runId, read: inbox.read }));
      for (const row of rows) {
        if (row.number <= inbox.read) continue; // another look was faster
        given.push(toInboxMessage(row));
        inbox.read = row.number;
      }
      return given;
    },
  };
  return inbox;
}
