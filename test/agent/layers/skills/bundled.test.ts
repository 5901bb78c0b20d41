import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { parseSkill } from "../../../../src/agent/layers/skills.ts";

const ROOT = join(import.meta.dirname, "../../../../skills");
const names = readdirSync(ROOT);
const filesOf = (name: string): string[] =>
  readdirSync(join(ROOT, name), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));

test.each(names)("%s is a skill without faults, short enough to be read at once", (name) => {
  const text = readFileSync(join(ROOT, name, "SKILL.md"), "utf8");
  const parsed = parseSkill(`/skills/${name}/SKILL.md`, text);
  expect(parsed).toMatchObject({ ok: true, warnings: [], described: { name } });
  for (const file of filesOf(name)) {
    expect(readFileSync(join(ROOT, name, file), "utf8").split("\n").length).toBeLessThan(200);
  }
});

test.each(names)("every file that %s names is there, and every file is named", (name) => {
  const named = new Set<string>();
  for (const file of filesOf(name)) {
    for (const [, link = ""] of readFileSync(join(ROOT, name, file), "utf8").matchAll(/\]\(([^)\s]+)\)/g)) {
      expect(existsSync(join(ROOT, name, dirname(file), link))).toBe(true);
      named.add(join(dirname(file), link));
    }
  }
  expect([...named].sort()).toEqual(
    filesOf(name)
      .filter((file) => file !== "SKILL.md")
      .sort(),
  );
});

test("every pattern of the search recipes is an expression that grep takes", () => {
  const recipes = readFileSync(join(ROOT, "codebase-research/references/search-recipes.md"), "utf8");
  const patterns = [...recipes.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) =>
    /[|(]/.test(code) ? [code] : [],
  );
  expect(patterns.length).toBeGreaterThan(20);
  for (const pattern of patterns) expect(() => RE2JS.compile(pattern)).not.toThrow();
});
