import { expect, test } from "vitest";
import { scriptedModel } from "../support/scripted-model.ts";
import { approve, calling, databaseFile, note, noteTool, openServer, reach, startRun } from "./support.ts";

const NONE = { working: 0, input_required: 0, completed: 0, failed: 0, cancelled: 0 };

test("counts the runs of all principals and what waits for a person", async () => {
  const file = databaseFile();
  const { service } = openServer(file, {
    model: calling(note("a"), note("b")),
    tools: [noteTool([])],
    interruptOn: { note: true },
  });
  expect(await service.statistics()).toMatchObject({ runs: NONE, pendingApprovals: 0 });
  const run = await startRun(service, "two notes");
  await reach(service, run.id, "input_required");
  await expect
    .poll(() => service.statistics())
    .toMatchObject({ runs: { ...NONE, input_required: 1 }, pendingApprovals: 2 });

  const { service: another } = openServer(file, { model: scriptedModel(() => ({ text: "done" })) });
  const other = await another.as({ principal: "somebody else" }).control.start({ task: "talk" });
  if (!other.ok) throw new Error(other.message);
  await approve(service, run.id, "a", "b");
  await reach(service, run.id, "completed");
  const signal = new AbortController().signal;
  for await (const _event of another
    .as({ principal: "somebody else" })
    .watch.events(other.run.id, { signal }));
  expect(await another.statistics()).toMatchObject({ runs: { ...NONE, completed: 2 }, pendingApprovals: 0 });
});
