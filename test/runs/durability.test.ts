import { expect, test } from "vitest";
import { createCheckpointer } from "../../src/storage/checkpointer.ts";
import type { Database } from "../../src/storage/database.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { withoutWaiting } from "../../src/storage/durability.ts";
import { migrate } from "../../src/storage/migrations.ts";
import { RUN_MIGRATIONS } from "../../src/runs/stores/schema.ts";
import {
  approve,
  calling,
  cleanUpWith,
  databaseFile,
  ME,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";
import { watchFlushes } from "../support/disk.ts";

/** Everything written through this connection; `FULL` behind it: its commit held up the event loop. */
function recording(file: string): { database: Database; writes: string[] } {
  const database = openDatabase(file);
  cleanUpWith(() => database.close());
  migrate(database, "runs", RUN_MIGRATIONS);
  const writes: string[] = [];
  database.function(
    "record",
    (what: string, level: number) => void writes.push(level > 1 ? `${what} FULL` : what),
  );
  const watch = (change: string, what: string, when = "1") =>
    database.exec(`CREATE TEMP TRIGGER "${change} ${what}" AFTER ${change} WHEN ${when}
      BEGIN SELECT record(${what}, (SELECT synchronous FROM pragma_synchronous)); END`);
  watch("INSERT ON main.run_events", "NEW.kind");
  watch("INSERT ON main.effects", "'effect begun'");
  watch("UPDATE ON main.effects", "'effect ended'");
  return { database, writes };
}

test("what is acknowledged is on the disk before, and nothing else waits for it", async () => {
  const file = databaseFile();
  const { database, writes } = recording(file);
  const checkpointFile = file.replace("data.", "checkpoints.");
  const checkpoints = openDatabase(checkpointFile, { synchronous: "NORMAL" });
  cleanUpWith(() => checkpoints.close());
  const checkpointer = createCheckpointer(checkpoints);
  const agent = {
    model: calling(note("a")),
    tools: [noteTool([], async () => void writes.push("tool at work"))],
    interruptOn: { note: true },
    checkpointer,
  };
  const logs = { "runs flushed": `${file}-wal`, "checkpoints flushed": `${checkpointFile}-wal` };
  await watchFlushes(logs, (name) => writes.push(name));
  const server = openServer(file, agent, { database, checkpoints: checkpointer });
  const run = await startRun(server.service, "go");
  writes.push("told: started");
  await reach(server.service, run.id, "input_required");
  writes.push("told: input_required");
  await approve(server.service, run.id, "a");
  await reach(server.service, run.id, "completed");
  writes.push("told: completed");
  /** What must be on the disk before something is told or done, in this order. */
  const order = [
    ["run_started", "runs flushed", "told: started"],
    ["model_called", "checkpoints flushed", "approval_requested", "runs flushed", "told: input_required"],
    ["approval_decided", "runs flushed", "told: completed"],
    ["tool_started", "checkpoints flushed", "effect begun", "runs flushed", "tool at work", "effect ended"],
    ["tool_finished", "checkpoints flushed", "run_completed", "runs flushed", "told: completed"],
  ];
  for (const events of order) {
    let last = -1;
    for (const event of events) {
      const at = writes.indexOf(event, last + 1);
      expect(at, `${event} of ${events.join()} in ${writes.join()}`).toBeGreaterThan(last);
      last = at;
    }
  }
  expect(writes.filter((write) => write.endsWith("FULL"))).toEqual([]);
  const flushes = (name: string) => writes.filter((write) => write === name).length;
  expect(flushes("checkpoints flushed")).toBe(3);
  // One for each of what is acknowledged: start, request, decision, effect, end.
  expect(flushes("runs flushed")).toBeLessThanOrEqual(5);
  expect(database.pragma("synchronous", { simple: true })).toBe(2);
});

test("nobody is told of what is committed before the disk has it", async () => {
  const file = databaseFile();
  const { database } = recording(file);
  const server = openServer(file, { model: calling(note("a")), tools: [noteTool([])] }, { database });
  const flushed: string[] = [];
  await watchFlushes({ runs: `${file}-wal` }, (name) => flushed.push(name));
  const started = server.service.start(ME, { task: "go" });
  // Committed in the turns that follow, at some moment of which it is read.
  for (;;) {
    const [run] = await server.service.list(ME, { limit: 1 });
    if (run === undefined) continue;
    expect(flushed).toEqual(["runs"]);
    break;
  }
  await started;
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
