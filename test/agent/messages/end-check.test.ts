import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import { endCheck } from "../../../src/agent/messages/end-check.ts";
import { specTool } from "../../../src/agent/calls/tool.ts";
import { fileTools } from "../../../src/tools/index.ts";

const tools = new Map(fileTools({ jobs: true }).map((spec) => [spec.name, specTool(spec)] as const));
const DONE = { content: "Read", status: "completed" } as const;
const OPEN = { content: "Write the report", status: "in_progress" } as const;

type Made = [name: string, args: Record<string, unknown>, status?: "error"];
const write = (path: string): Made => ["write_file", { file_path: path, content: "" }];

/** A run in which these calls were made, one a reply. */
function runOf(...made: readonly Made[]): BaseMessage[] {
  const calls = made.flatMap(([name, args, status = "success"], index): BaseMessage[] => [
    new AIMessage({ content: "", tool_calls: [{ id: `c${index}`, name, args }] }),
    new ToolMessage({ content: "", tool_call_id: `c${index}`, status: status as "success" | "error" }),
  ]);
  return [new HumanMessage({ id: "run", content: "go" }), ...calls];
}

const told = (messages: BaseMessage[], todos: Array<typeof DONE | typeof OPEN> = [], below?: string) =>
  endCheck({ messages, todos }, { tools, below }, "m")?.text;

it.each<[string, Made[]]>([
  ["nothing was changed", [["read_file", { file_path: "/a" }]]],
  ["the changed file was read", [write("/w/a"), ["read_file", { file_path: "/w/a" }]]],
  ["its folder was searched", [write("/w/a"), ["grep", { pattern: "x", path: "/w" }]]],
  ["a command ran", [write("/w/a"), write("/w/b"), ["execute", { command: "npm test" }]]],
  ["the change failed", [["write_file", { file_path: "/w/a", content: "" }, "error"]]],
])("an agent may end when %s", (_when, made) => expect(told(runOf(...made), [DONE])).toBeUndefined());

it("names open todos and unchecked changes, the first three", () => {
  expect(told(runOf(), [DONE, OPEN])).toContain('these todos are open: "Write the report".');
  expect(
    told(runOf(["execute", { command: "ls" }], write("/w/a"), ["read_file", { file_path: "/w/b" }])),
  ).toMatch(/nothing has checked these files since you changed them: \/w\/a\./);
  expect(told(runOf(...["/a", "/b", "/c", "/d", "/e"].map(write)))).toContain("/a, /b, /c, 2 more.");
});

it("looks below a folder only, and at the current run", () => {
  expect(told(runOf(write("/notes.md")), [], "/workspace")).toBeUndefined();
  expect(told(runOf(write("/workspace/a")), [], "/workspace")).toContain("/workspace/a");
  const earlier = runOf(write("/workspace/a"));
  expect(told([...earlier, new HumanMessage("next")], [], "/workspace")).toBeUndefined();
});

it("tells once a run, again in the next one, and is no task itself", () => {
  const run = runOf(write("/a"));
  const message = endCheck({ messages: run, todos: [] }, { tools }, "m");
  if (!message) throw new Error("nothing was told");
  const after = [...run, message, ...runOf(write("/b")).slice(1)];
  expect(told(after)).toBeUndefined();
  expect(told([...after, ...runOf(write("/c"))])).toContain("/c");
});
