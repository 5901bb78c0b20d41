import { expect, test } from "vitest";
import { ownTurn } from "../../src/core/concurrency.ts";

/** Work that takes longer than one turn may. */
function workLong(): void {
  const begin = performance.now();
  while (performance.now() - begin < 6);
}

test("everyone gets a turn in their order, and what is ready meanwhile runs in between", async () => {
  const order: string[] = [];
  const turns = [1, 2, 3].map(async (number) => {
    await ownTurn();
    workLong();
    order.push(`turn ${number}`);
  });
  const others = [1, 2].map(
    (number) =>
      new Promise<void>((resolve) => {
        // Immediates run once for each turn of the event loop.
        const wait = (left: number): unknown =>
          left === 0 ? resolve(void order.push(`other ${number}`)) : setImmediate(wait, left - 1);
        wait(number);
      }),
  );
  await Promise.all([...turns, ...others]);
  expect(order).toEqual(["turn 1", "other 1", "turn 2", "other 2", "turn 3"]);
});

test("the queue starts again after it was empty", async () => {
  await ownTurn();
  await Promise.all([ownTurn(), ownTurn()]);
  await expect(ownTurn()).resolves.toBeUndefined();
});

test("who comes again waits behind those that have not had a turn, however slow the work", async () => {
  const order: string[] = [];
  const agent = async (name: string): Promise<void> => {
    for (const step of [1, 2, 3]) {
      await ownTurn();
      workLong();
      order.push(`${name}${step}`);
    }
  };
  await Promise.all(["a", "b", "c"].map(agent));
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]);
});
