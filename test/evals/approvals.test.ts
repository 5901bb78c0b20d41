import { expect, test } from "vitest";
import { main } from "../../evals/approvals.ts";

test("with the rules of a careful person, three runs of 22 calls take eight answers", async () => {
  const lines: string[] = [];
  expect(await main({ print: (text) => lines.push(text) })).toBe(0);
  expect(lines).toContain("answers without rules: 66 (66 calls)");
  expect(lines).toContain("answers with rules: 8 (66 calls)");
});
