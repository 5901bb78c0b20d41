import type { Database, Statement } from "../../src/storage/sqlite/api.ts";
import { openConnection } from "../../src/storage/sqlite/driver.ts";

/** Calls `seen` before `database` carries out a prepared statement; to be called before any is prepared. */
export function watchStatements(database: Database, seen: (sql: string) => void): void {
  const prepare = database.prepare.bind(database);
  const watched = (sql: string): Statement => {
    const statement = prepare(sql);
    for (const method of ["run", "get", "all"] as const) {
      const call = statement[method].bind(statement);
      const told = (...args: unknown[]): unknown => {
        seen(sql);
        return call(...args);
      };
      Object.assign(statement, { [method]: told });
    }
    return statement;
  };
  Object.assign(database, { prepare: watched });
}

/** A database in memory that tells of every prepared statement it carries out. */
export function openWatched(seen: (sql: string) => void): Database {
  const database = openConnection(":memory:");
  watchStatements(database, seen);
  return database;
}
