import { spawn } from "node:child_process";
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createLogger } from "../../src/core/logger.ts";
import { openDatabase } from "../../src/storage/sqlite/database.ts";
import { createStore } from "../../src/storage/sqlite/memories/store.ts";
import { deferred } from "../support/harness-deferred.ts";
import {
  checkpointsOf,
  FAST,
  mine,
  approve,
  calling,
  cleanUpWith,
  databaseFile,
  follow,
  kinds,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";
import { driverModule } from "../../src/storage/sqlite/driver.ts";

/** Holds the lock of the file from one word until the next. */
const HOLDER = `
const driver = require(process.argv[1]);
const Database = driver.DatabaseSync ?? driver;
const database = new Database(process.argv[2]);
database.exec("BEGIN IMMEDIATE");
process.stdout.write("locked");
process.stdin.once("data", () => { database.exec("COMMIT"); database.close(); process.exit(0); });`;

/** A long transaction of another process; gives what ends it. */
async function lockElsewhere(file: string): Promise<() => Promise<unknown>> {
  const child = spawn(process.execPath, ["-e", HOLDER, driverModule(), file], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = once(child, "exit");
  cleanUpWith(() => child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return () => {
    child.stdin.write("end\n");
    return gone;
  };
}

/** One server with a run at work in its tool and another that waits for a person. */
async function openWorking() {
  const file = databaseFile();
  const files = { runs: file, checkpoints: file.replace("data.", "checkpoints.") };
  const { checkpoints, checkpointer } = checkpointsOf(file);
  const logged: string[] = [];
  const notes: string[] = [];
  const atWork = deferred();
  const go = deferred();
  const tools = [
    noteTool(notes, async (text) => {
      if (text !== "slow") return;
      atWork.resolve();
      await go.promise;
    }),
  ];
  const server = openServer(
    file,
    ({ task }) => ({
      model: calling(note(task)),
      tools,
      checkpointer,
      interruptOn: { note: task === "ask" },
    }),
    // A lease that does not run out while the lock is held, on a slow machine either.
    {
      checkpoints: async () => checkpointer,
      log: createLogger("warn", (line) => logged.push(line)),
      timing: { ...FAST, leaseMs: 10_000 },
    },
  );
  const slow = await startRun(server.service, "slow");
  await atWork.promise;
  const asking = await startRun(server.service, "ask");
  await reach(server.service, asking.id, "input_required");
  return { ...server, files, checkpoints, slow, asking, logged, notes, go };
}

test.each(["runs", "checkpoints"] as const)("a foreign lock, %s: reads go on, writes wait", async (which) => {
  const { service, files, checkpoints, slow, asking, logged, notes, go } = await openWorking();
  const other = createStore(which === "runs" ? openedBeside(files.runs) : checkpoints);
  const unlock = await lockElsewhere(files[which]);
  const settled: string[] = [];
  const told = async <T>(what: string, work: Promise<T>): Promise<T> => {
    const result = await work;
    settled.push(what);
    return result;
  };
  const stored = [
    told("start", startRun(service, "later")),
    told("decide", approve(service, asking.id, "ask")),
    told("put", other.put(["n"], "key", { content: "kept" })),
  ];
  go.resolve();
  // Each answer comes while all that writes still waits: nobody waits for the lock in place of them.
  for (let asked = 0; asked < 50; asked += 1) {
    expect((await mine(service).read.view(slow.id))?.run.status).toBe("working");
    expect((await mine(service).read.list({ limit: 9 })).length).toBeGreaterThanOrEqual(2);
    await nextTurn();
  }
  if (which === "runs") expect(settled).toEqual([]);
  else expect(settled).not.toContain("put");
  await unlock();
  const [later] = await Promise.all(stored);
  for (const { id } of [slow, asking, later as { id: string }]) {
    await reach(service, id, "completed");
    const events = await follow(service, id);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
    expect(kinds(events)).not.toContain("warning");
    expect(kinds(events)).not.toContain("run_resumed");
  }
  expect(notes.toSorted()).toEqual(["ask", "later", "slow"]);
  expect((await other.get(["n"], "key"))?.value).toEqual({ content: "kept" });
  expect(logged).toEqual([]);
});

function openedBeside(file: string) {
  const database = openDatabase(file);
  cleanUpWith(() => database.close());
  return database;
}
