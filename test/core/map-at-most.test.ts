import { expect, it } from "vitest";
import { mapAtMost } from "../../src/core/concurrency.ts";
import { deferred } from "../support/harness-deferred.ts";

it("gives results in the order of the items, with so many at work", async () => {
  let [now, most] = [0, 0];
  const results = await mapAtMost(3, [5, 1, 4, 2, 3, 0], async (turns) => {
    most = Math.max(most, (now += 1));
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    now -= 1;
    return turns * 10;
  });
  expect(results).toEqual([50, 10, 40, 20, 30, 0]);
  expect(most).toBe(3);
  expect(await mapAtMost(3, [], async () => 1)).toEqual([]);
});

it("begins no other after a failure", async () => {
  const begun: number[] = [];
  const slow = deferred();
  const all = mapAtMost(2, [1, 2, 3, 4], async (item) => {
    begun.push(item);
    if (item === 1) throw new Error("no");
    await slow.promise;
  });
  await expect(all).rejects.toThrow("no");
  slow.resolve();
  await new Promise(setImmediate);
  expect(begun).toEqual([1, 2]);
});
