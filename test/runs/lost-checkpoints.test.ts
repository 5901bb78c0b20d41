import { renameSync, rmSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { deferred } from "../support/harness-deferred.ts";
import {
  checkpointsOf,
  approve,
  calling,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  startRun,
} from "./support.ts";

describe.each(["at work", "waiting"])("a run that is %s when its server ends", (state) => {
  test.each(["deleted", "replaced by an older copy"])("says so if its checkpoints are %s", async (how) => {
    const file = databaseFile();
    const path = file.replace("data.", "checkpoints.");
    const open = (tools = [noteTool([])]) => {
      const { checkpoints, checkpointer } = checkpointsOf(file);
      const interruptOn = { note: state === "waiting" };
      const agent = { model: calling(note("a")), tools, interruptOn, checkpointer };
      const { service } = openServer(file, agent, { checkpoints: async () => checkpointer });
      const close = () => service.close().then(() => checkpoints.close());
      return { service, close, copy: () => checkpoints.prepare("VACUUM INTO ?").run(`${path}.copy`) };
    };
    const atWork = deferred();
    const hanging = noteTool([], async (_text, signal) => {
      atWork.resolve();
      await delay(60_000, undefined, { signal });
    });
    const first = open();
    const earlier = await startRun(first.service, "earlier");
    if (state === "waiting") {
      await reach(first.service, earlier.id, "input_required");
      await approve(first.service, earlier.id, "a");
    }
    await reach(first.service, earlier.id, "completed");
    first.copy();
    await first.close();
    const second = open([hanging]);
    const run = await startRun(second.service, "task", { threadId: earlier.threadId });
    await (state === "waiting" ? reach(second.service, run.id, "input_required") : atWork.promise);
    await second.close();
    rmSync(path);
    if (how !== "deleted") renameSync(`${path}.copy`, path);
    const { service } = open();
    if (state === "waiting") await approve(service, run.id, "a");
    const { run: failed } = await reach(service, run.id, "failed");
    expect(failed.answer ?? "").toBe("");
    expect(failed.failure).toEqual({
      reason: "storage",
      message: expect.stringMatching(/^The run's earlier work is no longer stored: its checkpoints were/),
    });
    const next = await startRun(service, "next", { threadId: run.threadId });
    await reach(service, next.id, state === "waiting" ? "input_required" : "completed");
  });
});

test("a row that is damaged ends the run that needs it, and others say so who read it", async () => {
  const file = databaseFile();
  const agent = { model: calling(note("a")), tools: [noteTool([])], interruptOn: { note: true } };
  const server = openServer(file, agent);
  const run = await startRun(server.service, "task");
  await reach(server.service, run.id, "input_required");
  server.database.exec("UPDATE checkpoints SET checkpoint = CAST(substr(checkpoint, 1, 40) AS BLOB)");
  await approve(server.service, run.id, "a");
  const { run: failed } = await reach(server.service, run.id, "failed");
  expect(failed.failure).toEqual({
    reason: "storage",
    message: expect.stringMatching(/^A row of the database of checkpoints is damaged/),
  });
  server.database.exec("UPDATE runs SET todos = '['");
  await expect(mine(server.service).read.view(run.id)).rejects.toMatchObject({ code: "storage_corrupt" });
});
