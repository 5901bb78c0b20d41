import type { SqliteMigration } from "../migrations.ts";
import type { Database } from "../api.ts";
import tables from "./tables.sql" with { type: "text" };

export const CHECKPOINT_MIGRATIONS: readonly SqliteMigration[] = [
  // This number was used before the first release. Data that has it is refused, because its tables exist.
  { version: 1, name: "none", sql: "" },
  { version: 2, name: "checkpoints in the order of storing", sql: "", work: makeTables },
];

/** Makes the tables, and moves the rows of LangGraph's own saver into them if the file is one of its files. */
function makeTables(database: Database): void {
  const found = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'checkpoints'")
    .get();
  database.exec(found === undefined ? tables : `${RENAME}\n${tables}${COPY}`);
}

const RENAME = `
ALTER TABLE checkpoints RENAME TO stock_checkpoints;
ALTER TABLE writes RENAME TO stock_writes;`;

const COPY = `
INSERT INTO checkpoints
  (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM stock_checkpoints ORDER BY thread_id, checkpoint_id;
INSERT INTO writes SELECT * FROM stock_writes;
DROP TABLE stock_checkpoints;
DROP TABLE stock_writes;`;
