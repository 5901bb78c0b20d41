import { expect, test } from "vitest";
import { resultSummary } from "../../src/agent/calls/report-call.ts";
import { callWords, isPlainResult, manyCalls } from "../../src/server/views/call-words.ts";
import { withoutMarks } from "../../src/server/views/room/steps.ts";

const line = (tool: string, summary: string, isOver = true): string => {
  const { verb, about } = callWords({ tool, summary }, isOver);
  return `${verb} ${about}`.trim();
};

test.each([
  ["read_file", "read_file /workspace/src/a.ts", "Read src/a.ts"],
  ["read_file", "read_file /memories/潮汐 🛰️.md", "Read /memories/潮汐 🛰️.md"],
  ["grep", 'grep "TODO \\"now\\" in time" in /workspace/src', 'Searched for “TODO \\"now\\" in time” in src'],
  ["grep", 'grep "alarm" in /workspace/', "Searched for “alarm” in /workspace/"],
  ["glob", 'glob "**/*.ts"', "Looked for files like “**/*.ts”"],
  ["execute", "execute node --test test/", "Ran node --test test/"],
  ["task", "task Check the station list", "Subagent: Check the station list"],
  ["write_todos", "write_todos", "Updated the plan"],
  ["github__create_issue", "github__create_issue", "Called github__create_issue"],
  ["lookup", "Look up the tide", "Called lookup Look up the tide"],
])("a call of %s is told in words", (tool, summary, told) => {
  expect(line(tool, summary)).toBe(told);
});

test("a call at work is told as such, and several as one", () => {
  expect(line("read_file", "read_file /a", false)).toBe("Reading /a");
  expect(line("note", "note a", false)).toBe("Calling note a");
  expect([manyCalls("task", 8), manyCalls("read_file", 6), manyCalls("note", 3)]).toEqual([
    "8 subagents started",
    "Read 6 files",
    "Called note 3 times",
  ]);
  expect([isPlainResult("write_file"), isPlainResult("execute")]).toEqual([true, false]);
});

test.each([
  ["## Plan\n\nI **look** at `a.ts`, then *fix* it.", "Plan\n\nI look at a.ts, then fix it."],
  ["- [x] one\n- two\n> three", "one\ntwo\nthree"],
  ["See [the docs](https://example.org/a_b) and ![a](b.png)", "See the docs and a"],
  ["| a | b |\n|---|---:|\n| 1 | 2 |", "a · b\n\n1 · 2"],
  ["```js\nconst a = 1;\n```", "\nconst a = 1;\n"],
  ["src/*.ts, 2**3 and __init__ and a * b stay", "src/*.ts, 2**3 and __init__ and a * b stay"],
])("%j has no marks of Markdown as a line", (markdown, plain) => {
  expect(withoutMarks(markdown)).toBe(plain);
});

test("marks that do not pair up take no time", () => {
  const began = performance.now();
  for (const mark of ["**a* ", "[](", "[[", "![", "*a", "` ", "| ", "> "]) withoutMarks(mark.repeat(50_000));
  expect(performance.now() - began).toBeLessThan(5000);
});

test.each([
  ["# Report\n\nIt is noted.", "It is noted."],
  ['```json\n{\n  "a": 1\n}\n```', '"a": 1'],
  ["\n\n---\nfirst", "first"],
  ["<results>\none\n</results>", "one"],
  ["# Only a heading", "# Only a heading"],
  ["报告", "报告"],
  ["", ""],
])("the line of the result %j is the first that says something", (text, summary) => {
  expect(resultSummary(text)).toBe(summary);
});
