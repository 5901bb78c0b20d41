import * as fc from "fast-check";
import { expect, test } from "vitest";
import { bytesShapeProblem, shapeProblem } from "../../src/core/json.ts";

/** The same by recursion. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function valuesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inside: unknown[] = Object.values(value);
  return Math.max(inside.length, 1) + inside.map(valuesIn).reduce((sum, count) => sum + count, 0);
}

const bytes = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const MANY = 1000;

test("a message is too deep exactly when it has more levels than the limit", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), fc.nat(8), (value, depth) => {
      const limits = { depth, values: MANY };
      const expected = depthOf(value) > depth ? expect.stringContaining(`deeper than ${depth}`) : undefined;
      expect(shapeProblem(value, limits)).toEqual(expected);
      expect(bytesShapeProblem(bytes(value), limits)).toEqual(expected);
    }),
  );
});

test("a message has too many values exactly when it has more than the limit", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.nat(30), (value, values) => {
      const limits = { depth: MANY, values };
      const expected = valuesIn(value) > values ? expect.stringContaining(`more than ${values}`) : undefined;
      expect(shapeProblem(value, limits)).toEqual(expected);
      expect(bytesShapeProblem(bytes(value), limits)).toEqual(expected);
    }),
  );
});

test("text in strings does not count, whatever it looks like", () => {
  expect(bytesShapeProblem(bytes({ text: '[{,"\\'.repeat(100_000) }))).toBeUndefined();
  expect(bytesShapeProblem(Buffer.from(`"${"[".repeat(1000)}`))).toBeUndefined();
});

test("a message of any depth is looked at without overflowing the stack", () => {
  const text = "[".repeat(1_000_000) + "]".repeat(1_000_000);
  expect(shapeProblem(JSON.parse(text))).toMatch(/nested deeper/);
  expect(bytesShapeProblem(Buffer.from(text))).toMatch(/nested deeper/);
});
