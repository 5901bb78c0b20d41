import { expect, test } from "vitest";
import { eventsAfter, positionAt } from "../../../src/server/events/requests.ts";
import { databaseFile, mine, openServer, reach, startRun } from "../../runs/support.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const HOUR = 3_600_000;

test("a position moves on while nothing happens, so that a look reads no events of long ago", async () => {
  const { service } = openServer(databaseFile(), { model: scriptedModel(() => ({ text: "done" })) });
  const { id } = await startRun(service, "one");
  await reach(service, id, "completed");
  const { id: other } = await startRun(service, "two");
  await reach(service, other, "completed");
  const query = { type: "run.finished" as const, now: Date.now() + HOUR };
  const first = await eventsAfter(mine(service).news, positionAt(0), { ...query, limit: 1 });
  expect(first.news.map(({ runId }) => runId)).toEqual([id]);
  // More follow, so the position stays with what was given.
  expect(first.position.time).toBeLessThan(Date.now() + 1);
  const second = await eventsAfter(mine(service).news, first.position, { ...query, limit: 5 });
  expect(second.news.map(({ runId }) => runId)).toEqual([other]);
  expect(second.position.time).toBe(query.now - HOUR / 6);
  expect((await eventsAfter(mine(service).news, second.position, { ...query, limit: 5 })).news).toEqual([]);
  const quiet = await eventsAfter(mine(service).news, positionAt(0), {
    type: "run.failed",
    now: query.now,
    limit: 5,
  });
  expect(quiet.position.time).toBe(query.now - HOUR / 6);
});
