/**
 * Carries a data directory of a development version before 0.1.0 over to the tables of 0.1.0:
 *
 *   node scripts/upgrade-prerelease.mjs DATA_DIR
 *
 * The newest of those versions had the same tables under other version numbers, so only the numbers change. A
 * directory of an older one is left as it is. Stop the server first. It may be run again.
 */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";

const FILES = {
  "deepagent.db": { runs: 15, store: 7 },
  "checkpoints.db": { checkpoints: 5 },
  "streams.db": { streams: 2 },
};

const [directory] = process.argv.slice(2);
if (directory === undefined) fail("Name the data directory: node scripts/upgrade-prerelease.mjs DATA_DIR");
const found = Object.keys(FILES).filter((name) => existsSync(join(directory, name)));
if (found.length === 0) fail(`There is no database of this program in ${resolve(directory)}.`);

for (const name of found) {
  const database = new Database(join(directory, name), { fileMustExist: true });
  try {
    database.transaction(() => upgrade(database, name)).immediate();
  } finally {
    database.close();
  }
}

function upgrade(database, name) {
  const read = database.prepare("SELECT version FROM schema_versions WHERE component = ?").pluck();
  for (const [component, newest] of Object.entries(FILES[name])) {
    const version = read.get(component);
    if (version === undefined || version === 1) {
      // A development version with version 1 of all tables is older than this program's history goes.
      console.log(`${name}: ${component} needs nothing.`);
    } else if (version === newest) {
      database.prepare("UPDATE schema_versions SET version = 1 WHERE component = ?").run(component);
      console.log(`${name}: ${component} is at version 1 now.`);
    } else {
      fail(
        `${name}: ${component} is at version ${version} of ${newest}. Start the last development version on this directory once, which updates it, and run this again.`,
      );
    }
  }
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
