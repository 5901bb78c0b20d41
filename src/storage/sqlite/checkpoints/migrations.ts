// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../../../core/text-files.d.ts" />
import type { SqliteMigration } from "../migrations.ts";
import { sql } from "./schema.ts";
import tables from "./tables.sql" with { type: "text" };

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
