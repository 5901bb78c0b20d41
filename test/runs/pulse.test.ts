import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { sqliteRuns } from "../../src/storage/sqlite/runs/repository.ts";
import { connect, databaseFile, openServer } from "./support.ts";
import { scriptedModel } from "../support/scripted-model.ts";

test("closing waits for the beat under way", async () => {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let ended = false;
  const file = databaseFile();
  const runs = Object.assign(sqliteRuns(connect(file)), {
    expire: async () => {
      begin();
      await nextTurn();
      ended = true;
      return [];
    },
  });
  const { service } = openServer(file, { model: scriptedModel(() => ({ text: "" })) }, { runs });
  await begun;
  await service.close();
  expect(ended).toBe(true);
});
