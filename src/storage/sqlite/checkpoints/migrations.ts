/** Brings checkpoints that an earlier version, or LangGraph's own saver, has stored into the tables of today. */
import { inflateRawSync } from "node:zlib";
import type { Database } from "../api.ts";
import type { SqliteMigration } from "../migrations.ts";
import { PIECES, joined } from "../../checkpoints/pieces.ts";
import { bytesRecord } from "../../checkpoints/bytes-record.ts";
import { TABLES } from "./schema.ts";

/** The migrations of the tables of checkpoints. */
export const CHECKPOINT_MIGRATIONS: readonly SqliteMigration[] = [
  // The second step replaces the tables of the first; a new file never has them.
  { version: 1, name: "packed checkpoints", sql: "" },
  { version: 2, name: "checkpoints in the order of storing", sql: "", work: carryOver },
];

/** Makes the tables, and moves the rows of older ones with these names into them. */
function carryOver(database: Database): void {
  const names = database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .pluck()
    .all();
  if (names.includes("checkpoints"))
    database.exec(
      "ALTER TABLE checkpoints RENAME TO old_checkpoints; ALTER TABLE writes RENAME TO old_writes;",
    );
  database.exec(TABLES);
  if (names.includes("packed_checkpoints")) {
    unpack(database);
    const blob = database
      .prepare<[Buffer], string>("SELECT text FROM checkpoint_blobs WHERE hash = ?")
      .pluck();
    const piece = (name: string): string => blob.get(Buffer.from(name, "base64url")) ?? "";
    for (const [table, column] of COLUMNS) putBack(database, piece, table, column);
    database.exec(
      "DROP TABLE packed_checkpoints; DROP TABLE checkpoint_blob_uses; DROP TABLE checkpoint_blobs;",
    );
  }
  if (names.includes("checkpoints")) database.exec(COPY);
}

/** The columns with values that may refer to blobs. */
const COLUMNS = [
  ["old_checkpoints", "checkpoint"],
  ["old_checkpoints", "metadata"],
  ["old_writes", "value"],
] as const;

/**
 * Earlier versions stored a checkpoint under another id than its own after the clock was set back. Damaged rows are
 * copied as they are.
 */
const ownId = (alias: string): string =>
  `iif(json_valid(CAST(${alias}.checkpoint AS TEXT)), CAST(${alias}.checkpoint AS TEXT) ->> '$.id', ${alias}.checkpoint_id)`;
const idBehind = (alias: string, column: string): string =>
  `coalesce((SELECT ${ownId("p")} FROM old_checkpoints AS p WHERE (p.thread_id, p.checkpoint_ns, p.checkpoint_id) =
    (${alias}.thread_id, ${alias}.checkpoint_ns, ${alias}.${column})), ${alias}.${column})`;

const COPY = `
INSERT INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT thread_id, checkpoint_ns, ${ownId("c")}, ${idBehind("c", "parent_checkpoint_id")}, type, checkpoint, metadata
FROM old_checkpoints AS c ORDER BY thread_id, c.checkpoint_id;
INSERT OR IGNORE INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)
SELECT thread_id, checkpoint_ns, ${idBehind("w", "checkpoint_id")}, task_id, idx, channel, type, value
FROM old_writes AS w;
DROP TABLE old_checkpoints; DROP TABLE old_writes;`;

/** A superseded checkpoint with what was written after it. Values that are not JSON are base64. */
interface Packed {
  id: string;
  parent: string | null;
  checkpoint: string;
  metadata: string;
  writes: [task: string, position: number, channel: string, type: string | null, value: string][];
}

function unpack(database: Database): void {
  const packs = database.prepare<[number], { row: number; thread: string; pack: Buffer }>(
    "SELECT rowid AS row, thread_id AS thread, pack FROM packed_checkpoints WHERE rowid > ? ORDER BY rowid LIMIT 1",
  );
  const putCheckpoint = database.prepare(
    "INSERT OR IGNORE INTO old_checkpoints VALUES (?, '', ?, ?, 'json', CAST(? AS BLOB), CAST(? AS BLOB))",
  );
  const putWrite = database.prepare("INSERT OR IGNORE INTO old_writes VALUES (?, '', ?, ?, ?, ?, ?, ?)");
  for (let found = packs.get(0); found !== undefined; found = packs.get(found.row)) {
    const { thread, pack } = found;
    const steps = JSON.parse(inflateRawSync(pack).toString()) as Packed[]; // as it was written
    for (const { id, parent, checkpoint, metadata, writes } of steps) {
      putCheckpoint.run(thread, id, parent, checkpoint, metadata);
      for (const [task, position, channel, type, value] of writes)
        putWrite.run(
          thread,
          id,
          task,
          position,
          channel,
          type,
          Buffer.from(value, type === "json" ? "utf8" : "base64"),
        );
    }
  }
}

interface Value {
  row: number;
  type: string | null;
  value: Buffer;
}

/** Puts the parts of each value back, and makes bytes a text. A damaged row is left as it is; its readers report it. */
function putBack(database: Database, piece: (name: string) => string, table: string, column: string): void {
  const next = database.prepare<[number], Value>(`
SELECT rowid AS row, type, ${column} AS value FROM ${table}
WHERE rowid > ? AND (type = 'bytes' OR instr(${column}, CAST('${PIECES}' AS BLOB)) > 0) ORDER BY rowid LIMIT 1`);
  const put = database.prepare<[Buffer, number]>(
    `UPDATE ${table} SET type = 'json', ${column} = ? WHERE rowid = ?`,
  );
  for (let found = next.get(0); found !== undefined; found = next.get(found.row)) {
    const { row, type, value } = found;
    try {
      const whole =
        type === "bytes" ? bytesRecord(value.toString("base64")) : joined(value.toString(), piece);
      put.run(Buffer.from(JSON.stringify(whole)), row);
    } catch (thrown) {
      if (!(thrown instanceof SyntaxError)) throw thrown;
    }
  }
}
