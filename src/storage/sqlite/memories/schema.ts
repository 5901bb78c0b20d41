/** The tables of memories in SQLite. */
// oxlint-disable-next-line typescript/triple-slash-reference -- programs that are checked with this source have no list of files
/// <reference path="../../../core/text-files.d.ts" />
import { type Migration, readMigrations } from "../../sql/sql-files.ts";
import tables from "./tables.sql" with { type: "text" };

export const STORE_MIGRATIONS: readonly Migration[] = readMigrations(tables);
