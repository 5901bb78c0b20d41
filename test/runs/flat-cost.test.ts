import type { RunnableConfig } from "@langchain/core/runnables";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { expect, onTestFinished, test } from "vitest";
import { entryOf } from "../../src/runs/events.ts";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { RUN_MIGRATIONS } from "../../src/runs/sql/schema.ts";
import { createCheckpointer } from "../../src/storage/sqlite/checkpoints/checkpointer.ts";
import { migrate } from "../../src/storage/sqlite/migrations.ts";
import { openWatched } from "../support/watched-database.ts";

/**
 * A database, and how many statements it ran since it was last asked. That none of them reads more rows as
 * tables grow is shown by their plans.
 */
function counted() {
  let statements = 0;
  const database = openWatched(() => (statements += 1));
  onTestFinished(() => void database.close());
  const since = (): number => {
    const result = statements;
    statements = 0;
    return result;
  };
  return { database, since };
}

test("an event takes as many statements after 10,000 events as at the start", async () => {
  const { database, since } = counted();
  migrate(database, "runs", RUN_MIGRATIONS);
  const runs = sqliteRuns(database);
  const work = runs.work({});
  await runs.create(
    "local",
    { task: "t" },
    { runId: "run_1", newThreadId: "thr_1", environment: "e", now: 1 },
  );
  const request = { owner: "me", environment: "e", now: 1, expiresAt: 1_000_000 };
  since();
  const claim = await runs.claimNext(request, 9);
  // Reads the principals in line and the run, and stores the lease.
  expect(since()).toBe(3);
  if (!claim) throw new Error("the run was not claimed");
  const costs: number[] = [];
  for (let number = 0; number < 10_000; number += 1) {
    const call = { agent: [], callId: `call_${number >> 1}`, tool: "ls", summary: "" };
    const event =
      number % 2 === 0
        ? ({ kind: "tool_started", ...call } as const)
        : ({ kind: "tool_finished", status: "success", ...call } as const);
    since();
    await work.record(claim.lease, [entryOf(event)], 2);
    costs.push(since());
  }
  expect(new Set(costs.slice(10))).toEqual(new Set(costs.slice(0, 2)));
  since();
  expect((await runs.read.journal("local", "run_1", 9_990, 100))?.events).toHaveLength(11);
  expect(since()).toBe(2);
});

test("a step takes no more statements after 5,000 steps than at the start", async () => {
  const { database, since } = counted();
  const saver = createCheckpointer(database);
  let config: RunnableConfig = { configurable: { thread_id: "t", checkpoint_ns: "" } };
  const costs: number[] = [];
  for (let step = 0; step < 5_000; step += 1) {
    config = await saver.put(
      config,
      { ...emptyCheckpoint(), id: uuid6(step) },
      { source: "loop", step, parents: {} },
    );
    await saver.putWrites(config, [["messages", step]], "task");
    if (step % 480 === 479) {
      await saver.tidyThread("t");
      costs.push(since());
    }
  }
  // When packing comes varies; what grew with the thread would be ten times as much at its end.
  expect((costs.at(-1) ?? 0) / (costs[0] ?? 0)).toBeLessThan(2);
});
