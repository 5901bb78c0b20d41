import { expect, test } from "vitest";
import { scriptedModel } from "../support/scripted-model.ts";
import { deferred } from "../support/harness-deferred.ts";
import { databaseFile, follow, kinds, openServer, reach, startRun } from "./support.ts";

/** Starts a server that works on its runs without an end, and ends it in one of two ways. */
async function tried(file: string, end: "crash" | "shutdown", task?: string, clock?: () => number) {
  const begun = deferred();
  const model = scriptedModel(() => {
    begun.resolve();
    return new Promise(() => {});
  });
  const server = openServer(file, { model }, { crashLimit: 3, ...(clock === undefined ? {} : { clock }) });
  const run = task === undefined ? undefined : await startRun(server.service, task);
  await begun.promise;
  if (end === "crash") server.kill();
  else await server.service.close();
  return run?.id ?? "";
}

const finishing = () => ({ model: scriptedModel(() => ({ text: "done" })) });

test("a run that brings its server down again and again ends, and others go on", async () => {
  const file = databaseFile();
  const id = await tried(file, "crash", "deadly");
  await tried(file, "crash");
  await tried(file, "crash");
  const server = openServer(file, finishing(), { crashLimit: 3 });
  const other = await startRun(server.service, "harmless");
  const { run } = await reach(server.service, id, "failed");
  expect(run.failure).toEqual({
    reason: "server_crashes",
    message:
      "The server ended 3 times while it worked on this run, so the run was stopped. Look at what it did last before you give the task again.",
  });
  expect(kinds(await follow(server.service, id)).slice(-2)).toEqual(["run_resumed", "run_failed"]);
  expect((await reach(server.service, other.id, "completed")).run.answer).toBe("done");
});

test("shutdowns in order do not count", async () => {
  const file = databaseFile();
  const id = await tried(file, "shutdown", "patient");
  for (let more = 0; more < 4; more += 1) await tried(file, "shutdown");
  const server = openServer(file, finishing(), { crashLimit: 1 });
  expect((await reach(server.service, id, "completed")).run.answer).toBe("done");
});
