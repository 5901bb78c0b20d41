import fc from "fast-check";
import { expect, it } from "vitest";
import { KeyedLock, memoized } from "../../src/core/concurrency.ts";
import { attempts } from "../support/effort.ts";

it("tasks with a key in common run one after the other in order, and no two wait for each other", async () => {
  const keys = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.record({ keys, fails: fc.boolean() }), { maxLength: 12 }),
      async (s, tasks) => {
        const lock = new KeyedLock();
        const begun: Record<string, number[]> = {};
        const atWork = new Set<string>();
        const done = tasks.map(({ keys: own, fails }, task) =>
          lock.runAll(own, async () => {
            for (const key of new Set(own)) {
              expect(atWork.has(key)).toBe(false);
              atWork.add(key);
              (begun[key] ??= []).push(task);
            }
            await s.schedule(Promise.resolve());
            for (const key of own) atWork.delete(key);
            if (fails) throw new Error("failed");
            return task;
          }),
        );
        const settled = Promise.allSettled(done);
        await s.waitFor(settled);
        for (const order of Object.values(begun)) expect(order).toEqual(order.toSorted((a, b) => a - b));
        const results = (await settled).map((one) => (one.status === "fulfilled" ? one.value : "failed"));
        expect(results).toEqual(tasks.map(({ fails }, task) => (fails ? "failed" : task)));
      },
    ),
    attempts(200),
  );
});

it("what is done once is done again only after a failure", async () => {
  const answers = [Promise.reject(new Error("no connection")), Promise.resolve(7), Promise.resolve(8)];
  let calls = 0;
  const read = memoized(() => answers[calls++] ?? Promise.resolve(0));
  const [first, joined] = [read(), read()];
  await expect(first).rejects.toThrow("no connection");
  await expect(joined).rejects.toThrow("no connection");
  expect([await read(), await read()]).toEqual([7, 7]);
  expect(calls).toBe(2);
});
