import { expect, test } from "vitest";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { type Database, openDatabase } from "../../src/storage/sqlite/database.ts";
import { withoutWaiting } from "../../src/storage/sqlite/commit.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import {
  checkpointsOf,
  approve,
  calling,
  cleanUpWith,
  databaseFile,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";
import { watchFlushes } from "../support/disk.ts";

/** Everything written through this connection, each with the level of durability of its commit. */
function recording(file: string): { database: Database; writes: () => string[]; note(what: string): void } {
  const database = openDatabase(file);
  cleanUpWith(() => database.close());
  migrate(database, "runs", RUN_MIGRATIONS);
  database.exec("CREATE TEMP TABLE writes (number INTEGER PRIMARY KEY, what TEXT)");
  const level =
    "(SELECT iif(synchronous, iif(synchronous = 1, ' NORMAL', ' FULL'), ' OFF') FROM pragma_synchronous)";
  const watch = (change: string, what: string, when = "1") =>
    database.exec(`CREATE TEMP TRIGGER "${change} ${what}" AFTER ${change} WHEN ${when}
      BEGIN INSERT INTO writes (what) VALUES (${what} || ${level}); END`);
  watch("INSERT ON main.run_events", "NEW.kind");
  watch("INSERT ON main.effects", "'effect begun'");
  watch("UPDATE ON main.effects", "'effect ended'");
  watch("UPDATE OF heartbeat_at ON main.runs", "'heartbeat'", "NEW.lease_epoch = OLD.lease_epoch");
  return {
    database,
    writes: () => database.prepare<[], string>("SELECT what FROM writes ORDER BY number").pluck().all(),
    note: (what) => void database.prepare("INSERT INTO writes (what) VALUES (?)").run(what),
  };
}

const RELAXED: ReadonlySet<string> = new Set([
  "heartbeat NORMAL",
  "model_called NORMAL",
  "tool_started NORMAL",
  "effect ended NORMAL",
  "tool_finished NORMAL",
]);

test("what is acknowledged is on the disk before; progress and heartbeats wait for nothing", async () => {
  const file = databaseFile();
  const recorded = recording(file);
  const { database } = recorded;
  const { checkpointer } = checkpointsOf(file);
  const agent = {
    model: calling(note("a")),
    tools: [noteTool([])],
    interruptOn: { note: true },
    checkpointer,
  };
  const server = openServer(file, agent, {
    database,
    checkpoints: async () => ({
      sync: async () => {
        await checkpointer.sync();
        recorded.note("checkpoints");
      },
      deleteThread: (thread) => checkpointer.deleteThread(thread),
      tidyThread: (thread) => checkpointer.tidyThread(thread),
      startOver: (...taken) => checkpointer.startOver(...taken),
      threads: () => checkpointer.threads(),
      usedBytes: () => checkpointer.usedBytes(),
      returnSpace: (signal) => checkpointer.returnSpace(signal),
      steps: (thread) => checkpointer.steps(thread),
      writtenWith: (...wanted) => checkpointer.writtenWith(...wanted),
      copyThread: (...copy) => checkpointer.copyThread(...copy),
    }),
  });
  const run = await startRun(server.service, "go");
  await reach(server.service, run.id, "input_required");
  await approve(server.service, run.id, "a");
  await reach(server.service, run.id, "completed");
  const writes = recorded.writes();
  const isDurable = (write = "") => write.endsWith(" FULL");
  // What waits for nothing may share the commit of what stands beside it.
  const own = writes.map((write, at) => {
    const relaxed = write.replace(/ FULL$/, " NORMAL");
    const isShared = RELAXED.has(relaxed) && (isDurable(writes[at - 1]) || isDurable(writes[at + 1]));
    return isShared ? relaxed : write;
  });
  // A short run may end between two heartbeats.
  expect(new Set([...own, "heartbeat NORMAL"])).toEqual(
    new Set([
      "run_started FULL",
      ...RELAXED,
      "checkpoints",
      "approval_requested FULL",
      "approval_decided FULL",
      "effect begun FULL",
      "run_completed FULL",
    ]),
  );
  // A slow run has heartbeats between them.
  const ordered = own.filter((write) => write !== "heartbeat NORMAL");
  for (const write of ["approval_requested FULL", "effect begun FULL", "run_completed FULL"]) {
    expect(ordered[ordered.indexOf(write) - 1]).toBe("checkpoints");
  }
  expect(database.pragma("synchronous", { simple: true })).toBe(2);
});

test("checkpoints are synced only when there is something new", async () => {
  const file = databaseFile();
  const database = openDatabase(file, { synchronous: "NORMAL" });
  cleanUpWith(() => database.close());
  const checkpointer = createCheckpointer(database);
  let flushes = 0;
  await watchFlushes({ log: `${file}-wal` }, () => (flushes += 1));
  await checkpointer.sync();
  expect(flushes).toBe(0);
  const write = { configurable: { thread_id: "t", checkpoint_ns: "", checkpoint_id: "c" } };
  await checkpointer.putWrites(write, [["messages", "x"]], "task");
  await checkpointer.sync();
  expect(flushes).toBe(1);
  await checkpointer.sync();
  expect(flushes).toBe(1);
  // Both wait for one that begins after what they have stored.
  await checkpointer.putWrites(write, [["messages", "y"]], "task");
  await Promise.all([checkpointer.sync(), checkpointer.sync()]);
  await checkpointer.sync();
  expect(flushes).toBeLessThanOrEqual(3);
});

test("a connection is given back as it was, also by work that throws", () => {
  const file = databaseFile();
  const level = (database: Database) => database.pragma("synchronous", { simple: true });
  for (const synchronous of ["FULL", "NORMAL"] as const) {
    const database = openDatabase(file, { synchronous });
    const own = level(database);
    expect(withoutWaiting(database, () => level(database))).toBe(1);
    expect(() =>
      withoutWaiting(database, () => {
        throw new Error("broken");
      }),
    ).toThrow("broken");
    expect(level(database)).toBe(own);
    database.close();
  }
});
