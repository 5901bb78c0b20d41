import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { asSibling } from "../../../src/agent/step/files.ts";

test("Steps that change no file keep nothing of the calls that ended", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // what the flag adds
  const context = new AsyncLocalStorage<object>();
  const files = {};
  const states: WeakRef<object>[] = [];
  for (let step = 0; step < 50; step += 1) {
    const state = { messages: Array.from({ length: step }, () => step) };
    states.push(new WeakRef(state));
    const call = { callId: `c${step}`, parallel: 2, signal: undefined };
    await context.run(state, () => asSibling(files, call, nextTurn));
  }
  const kept = () => states.filter((state) => state.deref() !== undefined).length;
  for (let turn = 0; turn < 5 && kept() > 1; turn += 1) {
    await nextTurn();
    collect();
  }
  // The loop itself may hold the last one.
  expect(kept()).toBeLessThanOrEqual(1);
});
