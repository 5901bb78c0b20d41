import fc from "fast-check";
import { expect, test } from "vitest";
import { byGrowth } from "../../src/core/by-identity.ts";

const ITEMS = Array.from({ length: 6 }, (_, name) => ({ name }));

const counted = () => {
  let visits = 0;
  const names = byGrowth(
    () => [] as number[],
    (known, { name }: { name: number }) => {
      visits += 1;
      known.push(name);
      return known;
    },
  );
  return { names, visits: () => visits };
};

test("Lists that grow, shrink and change have the values of a fold of their own", () => {
  const lists = fc.array(fc.array(fc.nat(ITEMS.length - 1), { maxLength: 5 }), { maxLength: 12 });
  fc.assert(
    fc.property(lists, (places) => {
      const { names } = counted();
      for (const list of places) expect([...names(list.map((at) => ITEMS[at]!))]).toEqual(list);
    }),
  );
});

test("Only items behind those of the last list are visited, also if the caller's array grows itself", () => {
  const { names, visits } = counted();
  const list: Array<{ name: number }> = [];
  for (let name = 0; name < 400; name += 1) {
    list.push({ name });
    names(list);
    names([...list]);
  }
  expect(visits()).toBe(400);
});

test("An item that could not be added leaves nothing behind", () => {
  let isBroken = true;
  const names = byGrowth(
    () => [] as number[],
    (known, { name }: { name: number }) => {
      known.push(name);
      if (name === 3 && isBroken) throw new Error("not now");
      return known;
    },
  );
  names(ITEMS.slice(0, 2));
  expect(() => names(ITEMS)).toThrow("not now");
  isBroken = false;
  expect(names(ITEMS)).toEqual([0, 1, 2, 3, 4, 5]);
});

test("A change of earlier items starts anew", () => {
  const { names, visits } = counted();
  names(ITEMS);
  expect(names([ITEMS[0]!, ITEMS[2]!])).toEqual([0, 2]);
  expect(names(ITEMS)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(visits()).toBe(6 + 2 + 6);
});
