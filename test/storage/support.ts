import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/storage/sqlite/database.ts";

/** A new folder that the test's end removes. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "storage-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

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
