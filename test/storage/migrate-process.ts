import { once } from "node:events";
import { openDatabase } from "../../src/storage/database.ts";
import { type Migration, migrate } from "../../src/storage/migrations.ts";

/**
 * Opens the database named by the first argument and migrates it, on a word from the parent: run several
 * at once, every step leaves one line in `log`.
 */
const step = (version: number): Migration => ({
  version,
  name: `step ${version}`,
  up(database) {
    if (String(version) === process.env["KILLED_IN_STEP"]) {
      database.exec("CREATE TABLE half_made (x); INSERT INTO log VALUES (99, 99)");
      process.kill(process.pid, "SIGKILL");
    }
    if (version === 1) database.exec("CREATE TABLE log (version INTEGER NOT NULL, process INTEGER NOT NULL)");
    database.prepare("INSERT INTO log VALUES (?, ?)").run(version, process.pid);
  },
});

process.send?.("ready");
await once(process, "message");
const database = openDatabase(process.argv[2] ?? "");
migrate(
  database,
  "test",
  Array.from({ length: Number(process.argv[3]) }, (_, index) => step(index + 1)),
);
database.close();
process.disconnect();
