import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { askUserTool } from "../../src/tools/ask-user.ts";
import { backgroundTaskTools } from "../../src/tools/background-tasks.ts";
import { toolParameters } from "../../src/tools/call.ts";
import { fileTools } from "../../src/tools/index.ts";
import { searchMemoriesTool } from "../../src/tools/search-memories.ts";
import { runProgramTool } from "../../src/tools/run-program.ts";
import { taskTool } from "../../src/tools/task.ts";
import type { ToolSpec } from "../../src/tools/tool.ts";
import { PageReader } from "../../src/web/page-reader.ts";
import { webFetchTool, webSearchTool } from "../../src/tools/web-tools.ts";
import { writeTodosTool } from "../../src/tools/write-todos.ts";

/** What the model is offered, one committed file per tool, so that a change is seen and meant. */
const FOLDER = fileURLToPath(new URL("./__toolsnaps__/", import.meta.url));
const UPDATE = process.env["UPDATE_TOOLSNAPS"] === "1";
const HOW_TO_UPDATE =
  "What the model reads has changed. If that is meant, run `UPDATE_TOOLSNAPS=1 npx vitest run test/tools/toolsnaps.test.ts` and commit the difference.";

const task = taskTool({
  subagents: [{ name: "general-purpose", description: "Any task of several steps." }],
});
const memories = searchMemoriesTool(() => Promise.resolve({ hits: [] }));
const isNamed = () => false;
const web = [
  webFetchTool({
    reader: new PageReader({ network: { isNamed }, userAgent: "test" }),
    isNamed,
    asks: true,
    keepsTexts: true,
  }),
  webSearchTool(() => Promise.resolve([])),
];
const tools: ToolSpec[] = [
  writeTodosTool,
  ...fileTools({ jobs: true }),
  task,
  memories,
  askUserTool,
  runProgramTool,
  ...backgroundTaskTools,
  ...web,
];
/** Those that not every agent with a shell has. */
const OPTIONAL = new Set([
  "delete",
  "job",
  "run_program",
  "search_memories",
  "ask_user",
  "web_fetch",
  "web_search",
  ...backgroundTaskTools.map(({ name }) => name),
]);

const offered = (tool: ToolSpec) => ({
  name: tool.name,
  description: tool.description,
  parameters: toolParameters(tool.schema),
});
const sizes = Object.fromEntries(
  tools
    .filter(({ name }) => !OPTIONAL.has(name)) // the nine tools of a default agent with a shell
    .map((tool): [string, number] => [tool.name, JSON.stringify(offered(tool)).length]),
);
const sizeTable = { total: Object.values(sizes).reduce((sum, size) => sum + size, 0), ...sizes };

const snapshots = new Map<string, unknown>([
  ...tools.map((tool): [string, unknown] => [tool.name, { kind: tool.kind, ...offered(tool) }]),
  ["_sizes", sizeTable],
]);

function stored(name: string): string {
  const file = `${FOLDER}${name}.json`;
  const text = `${JSON.stringify(snapshots.get(name), null, 2)}\n`;
  if (UPDATE) writeFileSync(file, text);
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "no snapshot";
  }
}

test.each([...snapshots.keys()])("%s", (name) => {
  expect(`${JSON.stringify(snapshots.get(name), null, 2)}\n`, HOW_TO_UPDATE).toBe(stored(name));
});

test("no snapshot is left over", () => {
  const files = readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ""));
  expect(files.toSorted(), HOW_TO_UPDATE).toEqual([...snapshots.keys()].toSorted());
});

test("the nine tools together stay small", () => {
  expect(sizeTable.total).toBeLessThanOrEqual(5200);
});
