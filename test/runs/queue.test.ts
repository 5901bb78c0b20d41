import * as fc from "fast-check";
import { expect, test } from "vitest";
import { fairestFirst, turnsOf } from "../../src/runs/sql/leases.ts";

test("nobody waits: nobody's turn", () => {
  expect(fairestFirst([], new Map())).toEqual([]);
});

test("the turn goes to the principal with the least at work, then to whose last turn was longest ago, then in order", () => {
  const waiting = fc.array(
    fc.record({ id: fc.uuid(), principal: fc.constantFrom("a", "b", "c"), rank: fc.nat(5) }),
    {
      minLength: 1,
    },
  );
  const active = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(3));
  fc.assert(
    fc.property(waiting, active, active, (candidates, busy, turns) => {
      const load = new Map(Object.entries(busy));
      const served = new Map(Object.entries(turns));
      const [chosen] = fairestFirst(candidates, load, served);
      if (chosen === undefined) throw new Error("someone waits");
      const rank = (candidate: { principal: string; rank: number }) =>
        (load.get(candidate.principal) ?? 0) * 100 +
        (served.get(candidate.principal) ?? 0) * 10 +
        candidate.rank;
      expect(rank(chosen)).toBe(Math.min(...candidates.map(rank)));
    }),
  );
});

test("the number in line is that of the turn in which a run is taken", () => {
  const waiting = fc.uniqueArray(
    fc.record({ id: fc.uuid(), principal: fc.constantFrom("a", "b", "c"), rank: fc.nat(1000) }),
    { minLength: 1, selector: ({ rank }) => rank },
  );
  const active = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(3));
  fc.assert(
    fc.property(waiting, active, (runs, busy) => {
      const line = runs.toSorted((one, other) => one.rank - other.rank);
      const load = new Map(Object.entries(busy));
      const left = [...line];
      for (let turn = 1; left.length > 0; turn += 1) {
        const [next] = fairestFirst(left, load);
        if (next === undefined) throw new Error("someone waits");
        expect(turnsOf(line, new Map(Object.entries(busy))).get(next.id)).toBe(turn);
        load.set(next.principal, (load.get(next.principal) ?? 0) + 1);
        left.splice(
          left.findIndex(({ id }) => id === next.id),
          1,
        );
      }
    }),
  );
});
