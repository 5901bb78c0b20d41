import { expect, test } from "vitest";
import { createLogger } from "../../src/core/logger.ts";
import { logEnd } from "../../src/runs/audit.ts";
import {
  askedAbout,
  calling,
  databaseFile,
  mine,
  note,
  noteTool,
  openServer,
  reach,
  reachAsked,
  startRun,
} from "./support.ts";

const SECRET = "canary-3f9a";

/** A service with the lines of its log. */
function audited(agent: Parameters<typeof openServer>[1]) {
  const lines: string[] = [];
  const log = createLogger("info", (line) => lines.push(line));
  const { service } = openServer(databaseFile(), agent, { log });
  const events = () =>
    lines
      .map((line) => JSON.parse(line) as { event: string; [field: string]: unknown })
      .map(({ time: _time, level: _level, ...rest }) => rest);
  return { service, lines, events };
}

test("who started, decided and ended a run is logged once, without contents", async () => {
  const tools = [noteTool([])];
  const { service, lines, events } = audited({
    model: calling(note(`${SECRET}!`)),
    tools,
    interruptOn: askedAbout("!"),
  });
  const key = { idempotencyKey: SECRET, by: "page" };
  const { id: runId, threadId } = await startRun(service, `Note ${SECRET}`, key);
  await startRun(service, `Note ${SECRET}`, key);
  const { requests } = await reachAsked(service, runId, 1);
  const given = { requestId: requests[0]?.id ?? "", answer: { type: "approve" } } as const;
  for (const by of ["page", "terminal"]) await mine(service).requests.answer(runId, given, by);
  await reach(service, runId, "completed");
  await expect.poll(() => events().at(-1)?.event).toBe("run.ended");
  expect(events()).toEqual([
    { event: "run.started", runId, threadId, principal: "local", by: "page" },
    {
      event: "request.answered",
      runId,
      requestId: given.requestId,
      kind: "approval",
      principal: "local",
      decision: "approved",
      by: "page",
    },
    {
      event: "run.ended",
      runId,
      principal: "local",
      status: "completed",
      inputTokens: expect.any(Number),
      outputTokens: expect.any(Number),
      seconds: expect.any(Number),
    },
  ]);
  expect(lines.join("")).not.toContain(SECRET);
});

test("a cancelled run ends once in the log, whether or not it was at work", async () => {
  const { service, events } = audited({
    model: calling(note("a!")),
    tools: [noteTool([])],
    interruptOn: askedAbout("!"),
  });
  const { id: runId } = await startRun(service, "go");
  await reachAsked(service, runId, 1);
  for (const reason of ["enough", "again"]) await mine(service).control.cancel(runId, reason);
  await service.close();
  expect(events().filter(({ event }) => event === "run.ended")).toEqual([
    expect.objectContaining({ runId, status: "cancelled" }),
  ]);
});

test("a failed run ends with the reason", async () => {
  const { service, events } = audited(() => {
    throw new Error(SECRET);
  });
  const { id: runId } = await startRun(service, "go");
  await reach(service, runId, "failed");
  await expect
    .poll(() => events().at(-1))
    .toMatchObject({ event: "run.ended", status: "failed", reason: expect.any(String) });
});

test("the end of a run has its cost if all prices are known", async () => {
  const { service } = audited({ model: calling(note("a")), tools: [noteTool([])] });
  const { id } = await startRun(service, "go");
  const { run } = await reach(service, id, "completed");
  const lines: string[] = [];
  const log = createLogger("info", (line) => lines.push(line));
  logEnd(run, log);
  logEnd({ ...run, costUsd: 0.25 }, log);
  expect(lines.map((line) => (JSON.parse(line) as { costUsd?: number }).costUsd)).toEqual([undefined, 0.25]);
});
