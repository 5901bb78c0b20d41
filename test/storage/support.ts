import { onTestFinished } from "vitest";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/storage/sqlite/database.ts";
export { filesIn as temporaryFolder } from "../support/files-in.ts";

/** A database that the test's end closes. */
export function opened(file = ":memory:", options?: DatabaseOptions): Database {
  const database = openDatabase(file, options);
  onTestFinished(() => void database.close());
  return database;
}

/** What `action` threw. */
export function thrownBy(action: () => unknown): unknown {
  try {
    action();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}
