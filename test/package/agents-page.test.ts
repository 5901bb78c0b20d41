import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../commands/built-bin.ts";

const page = readFileSync(join(ROOT, "AGENTS.md"), "utf8");

test("AGENTS.md is one page", () => {
  expect(page.length).toBeLessThanOrEqual(6000);
});

test("every file and folder that AGENTS.md names exists", () => {
  const paths = [...page.matchAll(/`((?:src|test|scripts|\.ci)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
  const linked = [...page.matchAll(/\]\(([^)#]+)\)/g)].map(([, path = ""]) => path);
  expect(paths.length).toBeGreaterThan(40);
  expect([...paths, ...linked].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("every row about changes names a file or folder of src, or a test", () => {
  const table = page.split("## Where to make a change")[1]?.split("\n## ")[0] ?? "";
  const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| to add"));
  expect(rows.length).toBeGreaterThan(15);
  expect(rows.filter((row) => !/`(?:src|test)\//.test(row))).toEqual([]);
});
