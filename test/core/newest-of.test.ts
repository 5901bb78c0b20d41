import { expect, test } from "vitest";
import { NewestOf } from "../../src/core/newest-of.ts";

test("the values that were kept last stay", () => {
  const values = new NewestOf<number>(2);
  values.keep("a", 1);
  values.keep("b", 2);
  values.keep("a", 3);
  values.keep("c", 4);
  expect([...values]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});
