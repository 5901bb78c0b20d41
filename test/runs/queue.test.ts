import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fairest } from "../../src/runs/queue.ts";

test("nobody waits: nobody's turn", () => {
  expect(fairest([], new Map())).toBeUndefined();
});

test("the turn goes to the least served principal, then to whoever waits longest", () => {
  const waiting = fc.array(
    fc.record({ id: fc.uuid(), principal: fc.constantFrom("a", "b", "c"), since: fc.nat(5) }),
    {
      minLength: 1,
    },
  );
  const active = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(3));
  fc.assert(
    fc.property(waiting, active, (candidates, busy) => {
      const load = new Map(Object.entries(busy));
      const chosen = fairest(candidates, load);
      if (chosen === undefined) throw new Error("someone waits");
      const rank = (candidate: { principal: string; since: number }) =>
        (load.get(candidate.principal) ?? 0) * 10 + candidate.since;
      expect(rank(chosen)).toBe(Math.min(...candidates.map(rank)));
    }),
  );
});
