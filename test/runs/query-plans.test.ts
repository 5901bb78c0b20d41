import { expect, test } from "vitest";
import { RunStore } from "../../src/storage/sqlite/runs/run-store.ts";
import { RUN_MIGRATIONS } from "../../src/storage/sqlite/runs/schema.ts";
import { WorkStore } from "../../src/storage/sqlite/runs/work-store.ts";
import { openDatabase, type Database } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";

/** Every statement the stores prepare, with the way SQLite finds its rows. */
function plans(): Map<string, string[]> {
  const database = openDatabase(":memory:");
  migrate(database, "runs", RUN_MIGRATIONS);
  const sources: string[] = [];
  const recording = new Proxy(database, {
    get: (target, key) => {
      if (key !== "prepare") return Reflect.get(target, key);
      return (source: string) => {
        sources.push(source);
        return target.prepare(source);
      };
    },
  });
  const work = new WorkStore(new RunStore(recording, () => {}), () => {});
  expect(work).toBeInstanceOf(WorkStore);
  const found = new Map(sources.map((source) => [source.replace(/\s+/g, " "), explain(database, source)]));
  database.close();
  return found;
}

function explain(database: Database, source: string): string[] {
  const numbered = source.replace(/@\w+|\?/g, "1");
  return database
    .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${numbered}`)
    .all()
    .map(({ detail }) => detail);
}

/** Reads a whole table, or a whole journal; `thread_copies` has only copies that are being made. */
const GROWING = /^SCAN (?!json_each|thread_copies)|run_events .*\(run_id=\?\)$/;

test("no statement reads more rows as tables and journals grow", () => {
  const found = [...plans()];
  expect(found.length).toBeGreaterThan(25);
  expect(found.filter(([, details]) => details.some((detail) => GROWING.test(detail)))).toEqual([]);
});
