/** The queries over the tables of checkpoints, and their rows that are deleted together. */
// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../../../core/text-files.d.ts" />
import { readQueries } from "../../../runs/sql/sql-files.ts";
import type { Rows } from "../free-space.ts";
import queries from "./queries.sql" with { type: "text" };
import type { SqliteMigration } from "../migrations.ts";
import tables from "./tables.sql" with { type: "text" };

export const sql = readQueries(queries);

/** The text of the error with which SQLite refuses a row of a thread that somebody else has taken. */
export const FENCED_OFF = "fenced off";

const CHECKPOINT = { table: "checkpoints", key: "seq", bytes: "length(checkpoint)" };
const WRITE = {
  table: "writes",
  key: "thread_id, checkpoint_ns, checkpoint_id, task_id, idx",
  bytes: "coalesce(length(value), 0)",
};
const THREAD = "thread_id = @thread";

/** All of a thread. Checkpoints go first: a thread is one that has some. */
export const WHOLE_THREAD: readonly Rows[] = [
  { ...CHECKPOINT, where: THREAD },
  { ...WRITE, where: THREAD },
  { table: "thread_fences", key: "thread_id", bytes: "0", where: THREAD },
];

/** Checkpoints of graphs inside the thread's graph from before its newest one: the step they were part of has ended. */
const ENDED_CHECKPOINTS = `${THREAD} AND checkpoint_ns > '' AND seq <
  (SELECT max(seq) FROM checkpoints WHERE thread_id = @thread AND checkpoint_ns = '')`;

/** Those checkpoints, and before them their writes, except messages. */
export const ENDED_GRAPHS: readonly Rows[] = [
  {
    ...WRITE,
    where: `${THREAD} AND channel <> 'messages' AND (checkpoint_ns, checkpoint_id) IN
      (SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE ${ENDED_CHECKPOINTS})`,
  },
  { ...CHECKPOINT, where: ENDED_CHECKPOINTS },
];

export const CHECKPOINT_MIGRATIONS: readonly SqliteMigration[] = [
  // This number was used before the first release. Data that has it is refused, because its tables exist.
  { version: 1, name: "none", sql: "" },
  {
    version: 2,
    name: "checkpoints in the order of storing",
    sql: "",
    // Moves the rows of LangGraph's own saver into the tables if the file is one of its files.
    work: (database) => {
      const stock = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'checkpoints'";
      const isStock = database.prepare(stock).get() !== undefined;
      database.exec(isStock ? sql("rename stock tables") + tables + sql("copy stock rows") : tables);
    },
  },
];
