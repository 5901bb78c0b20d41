import type { Statement } from "better-sqlite3";
import type { Database } from "./database.ts";
import type { Migration } from "./migrations.ts";

/** The tables of LangGraph's `SqliteSaver`: a file of either can be opened by the other. */
export const CHECKPOINT_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "checkpoints and their writes",
    up(database: Database): void {
      database.exec(`
CREATE TABLE IF NOT EXISTS checkpoints (
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT,
  type TEXT,
  checkpoint BLOB,
  metadata BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE IF NOT EXISTS writes (
  thread_id TEXT NOT NULL,
  checkpoint_ns TEXT NOT NULL DEFAULT '',
  checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  idx INTEGER NOT NULL,
  channel TEXT NOT NULL,
  type TEXT,
  value BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);`);
    },
  },
];

export interface CheckpointRow {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  type: string | null;
  checkpoint: Uint8Array;
  metadata: Uint8Array;
}

export interface WriteRow {
  task_id: string;
  channel: string;
  type: string | null;
  value: Uint8Array | null;
}

/** A write, or, without a task, the value a channel starts from (as JSON text). */
export interface HistoryRow {
  task_id: string | null;
  channel: string;
  type: string | null;
  value: Uint8Array | string | null;
}

/** Thread, namespace, checkpoint, task, position, channel, encoding and value of a write. */
export type WriteFields = [string, string, string, string, number, string, string, Uint8Array];
export type PutWrite = Statement<WriteFields>;

export interface CheckpointStatements {
  checkpoint: Statement<[string, string, string], CheckpointRow>;
  newestCheckpoint: Statement<[string, string], CheckpointRow>;
  writes: Statement<[string, string, string], WriteRow>;
  putCheckpoint: Statement<[string, string, string, string | null, string, Uint8Array, Uint8Array]>;
  addWrite: PutWrite;
  replaceWrite: PutWrite;
  deltaHistory: Statement<
    [{ thread: string; namespace: string; checkpoint: string | null; channels: string }],
    HistoryRow
  >;
  deleteCheckpoints: Statement<[string]>;
  deleteWrites: Statement<[string]>;
  deleteNestedCheckpoints: Statement<{ thread: string }>;
  deleteNestedWrites: Statement<{ thread: string }>;
}

const CHECKPOINT = `
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?`;

const PUT_WRITE = `
INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/**
 * Walks the ancestors of a checkpoint (the newest when none is named), nearest first, until every wanted
 * channel has met one that stores its value. Bit n of `open` says that channel n still looks for it;
 * `filled` has the bits of those found at this ancestor, whose own writes still count.
 *
 * Answers the seeds, then the writes from the oldest ancestor on, within one ancestor by task and position.
 */
const DELTA_HISTORY = `
WITH RECURSIVE
wanted (bit, channel) AS (SELECT 1 << key, value FROM json_each(@channels)),
chain (depth, id, parent, open, filled) AS (
  SELECT * FROM (
    SELECT 0, checkpoint_id, parent_checkpoint_id, (SELECT sum(bit) FROM wanted), 0
    FROM checkpoints
    WHERE thread_id = @thread AND checkpoint_ns = @namespace
      AND (@checkpoint IS NULL OR checkpoint_id = @checkpoint)
    ORDER BY checkpoint_id DESC LIMIT 1
  )
  UNION ALL
  SELECT chain.depth + 1, c.checkpoint_id, c.parent_checkpoint_id, chain.open & ~chain.filled, (
    SELECT coalesce(sum(wanted.bit), 0)
    FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') AS stored
    JOIN wanted ON wanted.channel = stored.key
  )
  FROM chain JOIN checkpoints AS c
    ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.parent
  WHERE chain.open & ~chain.filled <> 0
)
SELECT NULL AS task_id, wanted.channel, c.type, (
  SELECT CAST(c.checkpoint AS TEXT) -> stored.fullkey
  FROM json_each(CAST(c.checkpoint AS TEXT), '$.channel_values') AS stored
  WHERE stored.key = wanted.channel
) AS value, NULL AS depth, NULL AS idx
FROM chain JOIN wanted ON chain.open & chain.filled & wanted.bit <> 0
JOIN checkpoints AS c
  ON c.thread_id = @thread AND c.checkpoint_ns = @namespace AND c.checkpoint_id = chain.id
UNION ALL
SELECT * FROM (
  SELECT w.task_id, w.channel, w.type, w.value, chain.depth, w.idx
  FROM chain CROSS JOIN writes AS w
    ON w.thread_id = @thread AND w.checkpoint_ns = @namespace AND w.checkpoint_id = chain.id
  JOIN wanted ON wanted.channel = w.channel AND chain.open & wanted.bit <> 0
  WHERE chain.depth > 0
  ORDER BY chain.depth DESC, w.task_id, w.idx
)`;

/**
 * Those of graphs inside a thread's graph from before its newest checkpoint: ids grow with time, and a
 * checkpoint of the outer graph is made when the graphs inside its last step have ended.
 */
const SUPERSEDED = `
WHERE thread_id = @thread AND checkpoint_ns > '' AND checkpoint_id <
  (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')`;

export function prepareStatements(database: Database): CheckpointStatements {
  return {
    checkpoint: database.prepare(`${CHECKPOINT} AND checkpoint_id = ?`),
    newestCheckpoint: database.prepare(`${CHECKPOINT} ORDER BY checkpoint_id DESC LIMIT 1`),
    writes: database.prepare(`
SELECT task_id, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx`),
    putCheckpoint: database.prepare(`
INSERT OR REPLACE INTO checkpoints
(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?)`),
    addWrite: database.prepare(`INSERT OR IGNORE ${PUT_WRITE}`),
    replaceWrite: database.prepare(`INSERT OR REPLACE ${PUT_WRITE}`),
    deltaHistory: database.prepare(DELTA_HISTORY),
    deleteCheckpoints: database.prepare("DELETE FROM checkpoints WHERE thread_id = ?"),
    deleteWrites: database.prepare("DELETE FROM writes WHERE thread_id = ?"),
    deleteNestedCheckpoints: database.prepare(`DELETE FROM checkpoints ${SUPERSEDED}`),
    deleteNestedWrites: database.prepare(`DELETE FROM writes ${SUPERSEDED}`),
  };
}
