import { type Migration, NODE, migrateInTurns } from "../../src/storage/sqlite/migrations.ts";
import { once } from "node:events";
import { RUN_MIGRATIONS } from "../../src/storage/sqlite/runs/schema.ts";
import { CHECKPOINT_MIGRATIONS } from "../../src/storage/sqlite/checkpoints/schema.ts";
import { type Database, openDatabase } from "../../src/storage/sqlite/database.ts";
import { STORE_MIGRATIONS } from "../../src/storage/sqlite/memories/schema.ts";

/**
 * Opens the database named by the first argument and migrates it, on a word from the parent: run several
 * at once, every step leaves one line in `log`.
 */
const step = (version: number): Migration => {
  const name = `step ${version}`;
  // Every third is one that a thread makes.
  if (version % 3 === 0) return { version, name, sql: `INSERT INTO log VALUES (${version}, ${process.pid})` };
  return { version, name, up: stepOfOwn(version) };
};

const stepOfOwn =
  (version: number) =>
  (database: Database): void => {
    if (String(version) === process.env["KILLED_IN_STEP"]) {
      database.exec("CREATE TABLE half_made (x); INSERT INTO log VALUES (99, 99)");
      process.kill(process.pid, "SIGKILL");
    }
    if (version === 1) database.exec("CREATE TABLE log (version INTEGER NOT NULL, process INTEGER NOT NULL)");
    database.prepare("INSERT INTO log VALUES (?, ?)").run(version, process.pid);
  };

/** The steps of a component of ours; in one of them the process is killed when all of it is done, before the commit. */
const mortal = (steps: readonly Migration[]): Migration[] =>
  steps.map((one) => {
    if (String(one.version) !== process.env["KILLED_IN_STEP"]) return one;
    const up = (database: Database): void => {
      // So that what is not committed is in the log already.
      database.pragma("cache_size = 1");
      if ("sql" in one) database.exec(one.sql);
      else if ("rewrite" in one) one.rewrite(database, NODE);
      else for (const _ of one.up(database) ?? []);
      process.kill(process.pid, "SIGKILL");
    };
    return { version: one.version, name: one.name, up };
  });

const COMPONENTS: Record<string, readonly Migration[]> = {
  runs: RUN_MIGRATIONS,
  store: STORE_MIGRATIONS,
  checkpoints: CHECKPOINT_MIGRATIONS,
};

process.send?.("ready");
await once(process, "message");
const [, , file = "", count, component = "test"] = process.argv;
const database = openDatabase(file);
const steps = COMPONENTS[component];
const numbered = Array.from({ length: Number(count) }, (_, index) => step(index + 1));
await migrateInTurns(database, component, steps ? mortal(steps) : numbered, (notice) => {
  if (notice.step !== process.env["KILLED_IN_STEP"]) return;
  // Once the copy is begun.
  setImmediate(() => process.kill(process.pid, "SIGKILL"));
});
database.close();
process.disconnect();
