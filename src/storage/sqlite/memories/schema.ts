/** The tables of memories in SQLite. */
import { type Migration, readMigrations } from "../../sql/migration.ts";
import tables from "./tables.sql" with { type: "text" };

export const STORE_MIGRATIONS: readonly Migration[] = readMigrations(tables);
