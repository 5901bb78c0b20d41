import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isTooDeep } from "../../src/server/json-depth.ts";

/** The same by recursion. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test("a value is too deep exactly when it has more levels than the limit", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(8), (value, limit) => {
      expect(isTooDeep(value, limit)).toBe(depthOf(value) > limit);
    }),
  );
});

test("a value of any depth is looked at without overflowing the stack", () => {
  expect(isTooDeep(JSON.parse("[".repeat(1_000_000) + "]".repeat(1_000_000)))).toBe(true);
  expect(isTooDeep(JSON.parse(`[${"{},".repeat(100_000)}1]`))).toBe(false);
});
