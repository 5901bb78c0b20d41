import { once } from "node:events";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import type { Migration } from "../../src/runs/sql/sql-files.ts";

/** Kills the process that carries out the statements before it. */
const KILLED = "-- killed here";

/**
 * Opens the database named by the first argument and migrates it, on a word from the parent: run several
 * at once, every step leaves one line in `log`.
 */
const step = (version: number): Migration => ({
  version,
  name: `step ${version}`,
  sql: [
    version === 1 ? "CREATE TABLE log (version INTEGER NOT NULL, process INTEGER NOT NULL);" : "",
    String(version) === process.env["KILLED_IN_STEP"]
      ? `CREATE TABLE half_made (x); INSERT INTO log VALUES (99, 99); ${KILLED}`
      : "",
    `INSERT INTO log VALUES (${version}, ${process.pid});`,
  ].join("\n"),
});

process.send?.("ready");
await once(process, "message");
const [, , file = "", count] = process.argv;
const database = openDatabase(file);
const exec = database.exec.bind(database);
const mortal = (sql: string): typeof database => {
  const [before = ""] = sql.split(KILLED);
  exec(before);
  if (before !== sql) process.kill(process.pid, "SIGKILL");
  return database;
};
Object.assign(database, { exec: mortal });
migrate(
  database,
  "test",
  Array.from({ length: Number(count) }, (_, index) => step(index + 1)),
);
database.close();
process.disconnect();
