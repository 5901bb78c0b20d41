import fc from "fast-check";
import { expect, test } from "vitest";
import type { AgentTool } from "../../../src/agent/contracts/middleware.ts";
import { toAgentTool } from "../../../src/agent/langgraph/foreign-tool.ts";
import { sameCalls } from "../../../src/agent/calls/seal.ts";
import { editFileTool } from "../../../src/tools/edit-file.ts";
import { executeTool } from "../../../src/tools/execute.ts";
import { resolveOptions } from "../../../src/tools/options.ts";
import type { CallPreview } from "../../../src/tools/request.ts";

const settings = resolveOptions({});
const execute = toAgentTool(executeTool(settings));
const edit = toAgentTool(editFileTool(settings));
const preview = (summary: string): CallPreview => ({ kind: "command", summary, detail: "" });
const SANDBOX = preview("Run a command in a sandbox");
const keyOf = (tool: AgentTool, args: Record<string, unknown>, shown = SANDBOX) =>
  sameCalls(tool, args, shown).key;

test("a command is the same only with every argument, and under the same confinement", () => {
  const key = keyOf(execute, { command: "ls", cwd: "/workspace" });
  expect(keyOf(execute, { cwd: "/workspace", command: "ls" })).toBe(key);
  for (const other of [
    { command: "ls" },
    { command: "ls ", cwd: "/workspace" },
    { command: "ls", cwd: "/" },
    { command: "ls", cwd: "/workspace", background: true },
  ]) {
    expect(keyOf(execute, other)).not.toBe(key);
  }
  const outside = preview("Run a command on this machine, outside any sandbox");
  expect(keyOf(execute, { command: "ls", cwd: "/workspace" }, outside)).not.toBe(key);
});

test("changes of a file are the same by their normalised path", () => {
  const change = (file_path: string, old_string = "a") =>
    keyOf(edit, { file_path, old_string, new_string: "b" });
  expect(change("/workspace/./a.md", "c")).toBe(change("/workspace/a.md"));
  expect(change("/workspace/A.md")).not.toBe(change("/workspace/a.md"));
  expect(
    sameCalls(edit, { file_path: "/a\u001b[2K.md", old_string: "a", new_string: "b" }, SANDBOX).text,
  ).not.toContain("\u001b");
});

test("different arguments of other tools are never the same", () => {
  const tool = toAgentTool({ ...executeTool(settings), kind: "plan" });
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.dictionary(fc.string(), fc.jsonValue()),
      (one, other) => {
        const isSame = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
        expect(keyOf(tool, one) === keyOf(tool, other)).toBe(isSame);
      },
    ),
  );
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([key, inner]) => [key, sorted(inner)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
