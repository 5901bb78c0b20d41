import { expect, test } from "vitest";
import { type Database, openDatabase } from "../../src/storage/sqlite/database.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import type { RunRepository } from "../../src/runs/sql/repository.ts";
import { storedRuns } from "../../src/runs/sql/repository.ts";
import { sqliteEngine } from "../../src/storage/sqlite/engine.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { textIndex } from "../../src/storage/sqlite/runs/text-index.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { connect, databaseFile } from "../runs/support.ts";
import { type RunData, runRepositoryContract } from "./run-repository.contract.ts";
import { newsRepositoryContract } from "./news-repository.contract.ts";
import { childrenRepositoryContract } from "./children-repository.contract.ts";
import { scheduleRepositoryContract } from "./schedule-repository.contract.ts";

/** Every statement that the suite had the engine carry out. */
const statements = new Set<string>();

const recording = (database: Database): Database =>
  new Proxy(database, {
    get: (target, key) => {
      if (key === "prepare") return (sql: string) => (statements.add(sql), target.prepare(sql));
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });

const openFile = async (): Promise<RunData> => {
  const file = databaseFile();
  const open = (): RunRepository => {
    const database = connect(file);
    const plain = sqliteRuns(database);
    const recorded = storedRuns(sqliteEngine(recording(database)), {
      prune: (...args) => plain.prune(...args),
      storedBytes: async () => 0,
      assertWritable: () => plain.assertWritable(),
      textIndex,
      watchOthers: (...args) => plain.watch(...args),
    });
    // These two count whole tables.
    return Object.assign(recorded, {
      planPrune: plain.planPrune.bind(plain),
      statistics: plain.statistics.bind(plain),
    });
  };
  return { connect: async () => open(), close: async () => undefined };
};

runRepositoryContract("SQLite", openFile);
scheduleRepositoryContract("SQLite", openFile);
childrenRepositoryContract("SQLite", openFile);
newsRepositoryContract("SQLite", openFile);

/** Reads a whole table, or a whole journal. A match is looked up in the index of texts. That of leases has the runs at work alone, and schedules and messages are few. */
const GROWING =
  /^SCAN (?!json_each|run_texts VIRTUAL TABLE INDEX \d+:M\d<$|waiting$|schedules |d |news_deliveries( |$)|runs USING INDEX runs_leased$)|run_events .*\(run_id=\?\)$/;

test("none of these statements reads more rows as tables and journals grow", () => {
  const database = openDatabase(":memory:");
  migrate(database, "runs", RUN_MIGRATIONS);
  const plans = [...statements].map((sql) => ({
    sql: sql.replace(/\s+/g, " "),
    plan: database
      .prepare<[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql.replace(/\?/g, "1")}`)
      .all()
      .map(({ detail }) => detail),
  }));
  database.close();
  expect(plans.length).toBeGreaterThan(50);
  expect(plans.filter(({ plan }) => plan.some((detail) => GROWING.test(detail)))).toEqual([]);
});
