import type { Statement } from "better-sqlite3";
import type { Database } from "../database.ts";
import { type DeletePiece, preparePiece } from "../free-space.ts";
import type { Migration, NodeParts, Rewrite } from "../migrations.ts";
import { BLOB_TABLES, usesOfEndedGraphs, usesOfThread } from "./blobs.ts";
import type { WriteRow } from "./delta-history.ts";
import type { PackedCheckpoint } from "./packed-checkpoints.ts";

/*
 * Threads have the sources of these functions: they use each other, and nothing else of a module. The sizes, and
 * the form of what they store, are those of the step they belong to; see `large-values.ts`.
 */

/** Stores a text under the hash of it, for a graph of a thread; gives its name. */
type Store = (text: string) => string;
/** Holds what has a key, or a place. */
type Holder = Record<string, unknown>;

/** What is damaged stays as it is, as whoever reads it is told. */
function dividedJson(json: string, store: Store): string {
  const holder: Holder = {};
  try {
    holder["value"] = JSON.parse(json);
  } catch {
    return json;
  }
  divideWithin(holder, store);
  return JSON.stringify(holder["value"]);
}

/** Puts references in the places of long texts and of snapshots with many entries. */
function divideWithin(holder: Holder, store: Store): void {
  for (const [key, part] of Object.entries(holder)) {
    if (key === "__proto__") continue;
    if (typeof part === "string") {
      if (part.length < 4096 && !part.startsWith("deepagent-blobs:")) continue;
      const names: string[] = [];
      for (let at = 0; at < part.length; at += 131_072) {
        names.push(store(JSON.stringify(part.slice(at, at + 131_072))));
      }
      holder[key] = `deepagent-blobs:text:${names.join(".")}`;
    } else if (typeof part === "object" && part !== null) divideObject(part as Holder, store); // its keys are texts
  }
}

/** What a constructor gets stays whole, but for messages, which only keep it. */
function divideObject(part: Holder, store: Store): void {
  if (part["lc"] === 2 && part["type"] === "delta_snapshot") {
    divideWithin(part, store);
    divideEntries(part, store);
  } else if (part["lc"] === 1 && part["type"] === "constructor") {
    const [, module, name] = Array.isArray(part["id"]) ? (part["id"] as unknown[]) : []; // of any kind
    if (module === "messages" && typeof name === "string" && !name.endsWith("Chunk"))
      divideWithin(part, store);
  } else if (part["lc"] !== 2) divideWithin(part, store);
}

function divideEntries(snapshot: Holder, store: Store): void {
  const { value } = snapshot;
  if (typeof value !== "object" || value === null || "lc" in value) return;
  const entries: unknown[] = Array.isArray(value) ? value : Object.entries(value);
  if (entries.length <= 32) return;
  const names: string[] = [];
  for (let at = 0; at < entries.length; at += 32)
    names.push(store(JSON.stringify(entries.slice(at, at + 32))));
  snapshot["value"] = `deepagent-blobs:${Array.isArray(value) ? "list" : "record"}:${names.join(".")}`;
}

function storeInto(database: Database, thread: string, namespace: string, { createHash }: NodeParts): Store {
  const put = database.prepare("INSERT OR IGNORE INTO checkpoint_blobs (hash, text) VALUES (?, ?)");
  const use = database.prepare(`
INSERT OR IGNORE INTO checkpoint_blob_uses (thread_id, checkpoint_ns, blob)
SELECT ?, ?, number FROM checkpoint_blobs WHERE hash = ?`);
  return (text) => {
    const hash = createHash("sha256").update(text).digest();
    put.run(hash, text);
    use.run(thread, namespace, hash);
    return hash.toString("base64url");
  };
}

function divideColumn(database: Database, table: string, column: string, node: NodeParts): void {
  const ids = database
    .prepare<[], number>(`SELECT rowid FROM ${table} WHERE type = 'json' AND length(${column}) > 1000000`)
    .pluck()
    .all();
  const read = database.prepare<[number], { thread: string; namespace: string; value: Buffer | string }>(
    `SELECT thread_id AS thread, checkpoint_ns AS namespace, ${column} AS value FROM ${table} WHERE rowid = ?`,
  );
  const write = database.prepare(`UPDATE ${table} SET ${column} = CAST(? AS BLOB) WHERE rowid = ?`);
  for (const id of ids) {
    const row = read.get(id);
    if (row === undefined) continue;
    write.run(dividedJson(row.value.toString(), storeInto(database, row.thread, row.namespace, node)), id);
  }
}

function inflated(pack: Buffer, { inflateRawSync }: NodeParts): string {
  try {
    return inflateRawSync(pack).toString();
  } catch {
    return "";
  }
}

/** A compressed one shows its size only when it is opened. */
function dividePacks(database: Database, node: NodeParts): void {
  const ids = database
    .prepare<[], number>("SELECT rowid FROM packed_checkpoints WHERE length(pack) > 4000")
    .pluck()
    .all();
  const read = database.prepare<[number], { thread: string; pack: Buffer }>(
    "SELECT thread_id AS thread, pack FROM packed_checkpoints WHERE rowid = ?",
  );
  const write = database.prepare("UPDATE packed_checkpoints SET pack = ? WHERE rowid = ?");
  for (const id of ids) {
    const row = read.get(id);
    const json = row === undefined ? "" : inflated(row.pack, node);
    if (row === undefined || json.length < 1_000_000) continue;
    const store = storeInto(database, row.thread, "", node);
    // As `packed-checkpoints.ts` writes them.
    const steps = JSON.parse(json) as Pick<PackedCheckpoint, "checkpoint" | "writes">[];
    for (const step of steps) {
      if (step.checkpoint.length > 100_000) step.checkpoint = dividedJson(step.checkpoint, store);
      for (const write of step.writes) {
        if (write[3] === "json") write[4] = dividedJson(write[4], store);
      }
    }
    write.run(node.deflateRawSync(JSON.stringify(steps)), id);
  }
}

/** Values of checkpoints that were stored whole before large parts of them were stored apart. */
export const DIVIDE_CHECKPOINTS: Rewrite = {
  rewrite: function divideCheckpoints(database: Database, node: NodeParts): void {
    divideColumn(database, "checkpoints", "checkpoint", node);
    divideColumn(database, "writes", "value", node);
    dividePacks(database, node);
  },
  uses: [
    dividedJson,
    divideWithin,
    divideObject,
    divideEntries,
    storeInto,
    divideColumn,
    inflated,
    dividePacks,
  ],
};

/**
 * The tables of LangGraph's `SqliteSaver`, and more for checkpoints that were superseded and for large parts of
 * values: we can open the stock saver's file; it finds no further back in ours than what is not packed yet,
 * and references where large texts were.
 */
export const CHECKPOINT_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "checkpoints and their writes",
    sql: `
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
);`,
  },
  {
    version: 2,
    name: "packed checkpoints",
    sql: `
CREATE TABLE packed_checkpoints (
  thread_id TEXT NOT NULL,
  first_id TEXT NOT NULL,
  last_id TEXT NOT NULL,
  pack BLOB NOT NULL,
  PRIMARY KEY (thread_id, last_id)
) STRICT;`,
  },
  {
    version: 3,
    name: "fences of threads",
    sql: `
CREATE TABLE thread_fences (
  thread_id TEXT PRIMARY KEY,
  run INTEGER NOT NULL,
  claim INTEGER NOT NULL
) STRICT;`,
  },
  {
    version: 4,
    name: "large parts of values",
    sql: BLOB_TABLES,
  },
  {
    version: 5,
    name: "large parts of older values",
    ...DIVIDE_CHECKPOINTS,
  },
];

export interface CheckpointRow {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  type: string | null;
  checkpoint: Uint8Array;
  metadata: Uint8Array;
}

/** Thread, namespace, checkpoint, task, position, channel, encoding and value of a write. */
export type WriteFields = [string, string, string, string, number, string, string, Uint8Array];
export type PutWrite = Statement<WriteFields>;

/** The checkpoint and its writes as they were at one moment; the newest checkpoint when none is named. */
export type ReadCheckpoint = (
  threadId: string,
  namespace: string,
  checkpointId: string | undefined,
) => { row: CheckpointRow; writes: WriteRow[] } | undefined;

/** Thread, namespace, checkpoint and task. */
export type WriteAddress = readonly [string, string, string, string];

export interface CheckpointStatements {
  checkpoint: Statement<[string, string, string], CheckpointRow>;
  newestCheckpoint: Statement<[string, string], CheckpointRow>;
  writes: Statement<[string, string, string], WriteRow>;
  putCheckpoint: Statement<[string, string, string, string | null, string, Uint8Array, Uint8Array]>;
  addWrite: PutWrite;
  replaceWrite: PutWrite;
  /** All of a thread: without checkpoints it is none, so they come first. */
  deleteThread: readonly DeletePiece[];
  /** What graphs inside it left behind. */
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
      preparePiece(database, "writes", WRITE_BYTES, SUPERSEDED),
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
