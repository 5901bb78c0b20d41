/** Opens databases in memory that begin as copies of one another. */
import Driver from "better-sqlite3";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import type { Database } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";

let template: Buffer | undefined;

const open = (bytes: Buffer | string): Database => {
  const database = new Driver(bytes);
  database.pragma("foreign_keys = ON");
  // It is in memory, so no write has to be flushed.
  database.pragma("synchronous = OFF");
  return database as unknown as Database; // the driver has more than we use
};

/** A database without tables. */
export const emptyCheckpoints = (): Database => open(":memory:");

/** A database of runs without any. */
export function emptyDatabase(): Database {
  if (template === undefined) {
    const made = open(":memory:");
    migrate(made, "runs", RUN_MIGRATIONS);
    template = (made as unknown as InstanceType<typeof Driver>).serialize(); // made by it above
    made.close();
  }
  return open(template);
}
