import type BetterSqlite from "better-sqlite3";
import type { Database, OpenOptions } from "../../src/storage/sqlite/api.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

/** A connection with all that better-sqlite3 has, of which the program uses a part. */
export const inFull = (database: Database): BetterSqlite.Database =>
  database as unknown as BetterSqlite.Database;

/** A database in memory that tells of every statement it runs. */
export const openWatched = (told: (sql: string) => void): Database =>
  openConnection(":memory:", { verbose: told } as OpenOptions);
