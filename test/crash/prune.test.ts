// @module-tag long
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { integrityProblems, openDatabase } from "../../src/storage/sqlite/database.ts";
import { cleanUpWith, mine, note, noteTool, openServer, reach, startRun } from "../runs/support.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { mountDisk } from "./small-disk.ts";

const DAY = 86_400_000;
const RUNS = 20;

test("what is forgotten on a disk that is full makes room", { tags: "mount" }, async () => {
  const disk = mountDisk("size=24m");
  const file = join(disk.path, "runs.db");
  const checkpoints = openDatabase(join(disk.path, "checkpoints.db"), { synchronous: "NORMAL" });
  cleanUpWith(() => checkpoints.close());
  const checkpointer = createCheckpointer(checkpoints);
  const time = { now: 1_000_000 };
  // The same text twice would be stored once.
  const model = scriptedModel(({ call }) =>
    call % 2 === 1 ? { toolCalls: [note(`${call} `.repeat(20_000))] } : { text: "done" },
  );
  const agent = { model, tools: [noteTool([])], checkpointer };
  const { service, database } = openServer(file, agent, {
    clock: () => time.now,
    checkpoints: async () => checkpointer,
  });
  for (let run = 0; run < RUNS; run += 1) {
    const { id } = await startRun(service, `fill ${"x".repeat(50_000)}`);
    await reach(service, id, "completed");
  }
  for (const one of [database, checkpoints]) one.pragma("wal_checkpoint(TRUNCATE)");
  disk.fill(250_000);
  time.now += 10 * DAY;
  const sizes = () =>
    readdirSync(disk.path)
      .filter((name) => name !== "ballast")
      .reduce((sum, name) => sum + statSync(join(disk.path, name)).size, 0);
  const before = sizes();
  expect(await service.prune({ maxAgeMs: DAY })).toMatchObject({ runs: RUNS, threads: RUNS });
  expect(before - sizes()).toBeGreaterThan(before / 2);
  expect(await mine(service).read.list({ limit: 10 })).toEqual([]);
  for (const one of [database, checkpoints]) expect(integrityProblems(one)).toEqual([]);
});
