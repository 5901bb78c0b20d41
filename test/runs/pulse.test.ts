import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/core/logger.ts";
import { Pulse } from "../../src/runs/follow.ts";
import { connect, databaseFile } from "./support.ts";

test("closing waits for the beat under way", async () => {
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  let ended = false;
  const pulse = new Pulse({
    database: connect(databaseFile()),
    log: silentLogger,
    pollMs: 1000,
    heartbeatMs: 1,
    onForeignChange: () => undefined,
    onHeartbeat: async () => {
      begin();
      await nextTurn();
      ended = true;
    },
  });
  await begun;
  await pulse.close();
  expect(ended).toBe(true);
});
