import type { Statement } from "../api.ts";
import type { GraphAddress, WriteFields } from "../../checkpoints/address.ts";
import type { WriteRow } from "../../checkpoints/writes.ts";
import type { Database } from "../database.ts";
import { type DeletePiece, preparePiece } from "../free-space.ts";
import type { Migration } from "../migrations.ts";
import { BLOB_TABLES, usesOfEndedGraphs, usesOfThread } from "./blobs.ts";

/**
 * The tables of LangGraph's `SqliteSaver`, and more for checkpoints that were superseded and for large parts of
 * values: we can open the stock saver's file; it finds no further back in ours than what is not packed yet,
 * and references where large texts were.
 */
const TABLES = `
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
);
CREATE TABLE packed_checkpoints (
  thread_id TEXT NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL,
  pack BLOB NOT NULL,
  PRIMARY KEY (thread_id, last_id)
) STRICT;
CREATE TABLE thread_fences (
  thread_id TEXT PRIMARY KEY,
  run INTEGER NOT NULL,
  claim INTEGER NOT NULL
) STRICT;`;

/** The migrations of the tables of checkpoints. */
export const CHECKPOINT_MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "checkpoints and their writes", sql: `${TABLES}\n${BLOB_TABLES}` },
];

interface CheckpointRow {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  type: string | null;
  checkpoint: Uint8Array;
  metadata: Uint8Array;
}

type PutWrite = Statement<WriteFields>;

/** A checkpoint and its writes as they were at one moment. */
export interface FoundCheckpoint {
  row: CheckpointRow;
  writes: WriteRow[];
}

/** The newest checkpoint when none is named. */
export type ReadCheckpoint = (
  threadId: string,
  namespace: string,
  checkpointId: string | undefined,
) => FoundCheckpoint | undefined;

export interface CheckpointStatements {
  checkpoint: Statement<[string, string, string], CheckpointRow>;
  newestCheckpoint: Statement<[string, string], CheckpointRow>;
  writes: Statement<[string, string, string], WriteRow>;
  putCheckpoint: Statement<[string, string, string, string | null, string, Uint8Array, Uint8Array]>;
  addWrite: PutWrite;
  replaceWrite: PutWrite;
  /** Deletes all of a thread; checkpoints go first, because without them it is no thread any more. */
  deleteThread: readonly DeletePiece[];
  /** Deletes what graphs inside it left behind, but not their messages. */
  deleteNested: readonly DeletePiece[];
}

const CHECKPOINT = `
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?`;

const PUT_WRITE = `
INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/**
 * Those of graphs inside a thread's graph from before its newest checkpoint: ids grow with time, and a
 * checkpoint of the outer graph is made when the graphs inside its last step have ended.
 */
const SUPERSEDED = `
thread_id = @thread AND checkpoint_ns > '' AND checkpoint_id <
  (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')`;
/** The messages of graphs that ended earlier are not looked through again: they have no checkpoints any more. */
const NOT_KEPT = `
channel <> 'messages' AND checkpoint_ns IN
  (SELECT checkpoint_ns FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns > '')`;
const OF_THREAD = "thread_id = @thread";
const CHECKPOINT_BYTES = "length(checkpoint)";
const WRITE_BYTES = "coalesce(length(value), 0)";

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
    deleteThread: [
      preparePiece(database, "checkpoints", CHECKPOINT_BYTES, OF_THREAD),
      preparePiece(database, "packed_checkpoints", "length(pack)", OF_THREAD),
      preparePiece(database, "writes", WRITE_BYTES, OF_THREAD),
      preparePiece(database, "thread_fences", "0", OF_THREAD),
      usesOfThread(database),
    ],
    deleteNested: [
      preparePiece(database, "writes", WRITE_BYTES, `${SUPERSEDED} AND ${NOT_KEPT}`),
      preparePiece(database, "checkpoints", CHECKPOINT_BYTES, SUPERSEDED),
      usesOfEndedGraphs(database),
    ],
  };
}

export function prepareRead(database: Database, sql: CheckpointStatements): ReadCheckpoint {
  return database.transaction<ReadCheckpoint>((threadId, namespace, checkpointId) => {
    const row =
      checkpointId === undefined
        ? sql.newestCheckpoint.get(threadId, namespace)
        : sql.checkpoint.get(threadId, namespace, checkpointId);
    return row && { row, writes: sql.writes.all(threadId, namespace, row.checkpoint_id) };
  });
}

interface Place extends GraphAddress {
  checkpoint: string;
}

/** The places of checkpoints, newest first: of one thread or all, of one namespace or all. */
export function listCheckpoints(
  database: Database,
  given: { thread?: string | undefined; namespace?: string | undefined; before?: string | undefined },
): Place[] {
  const conditions = [
    ...(given.thread === undefined ? [] : ["thread_id = @thread"]),
    ...(given.namespace === undefined ? [] : ["checkpoint_ns = @namespace"]),
    ...(given.before === undefined ? [] : ["checkpoint_id < @before"]),
  ];
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  return database
    .prepare<[typeof given], Place>(
      `SELECT thread_id AS thread, checkpoint_ns AS namespace, checkpoint_id AS checkpoint FROM checkpoints ${where} ORDER BY checkpoint_id DESC`,
    )
    .all(given);
}
