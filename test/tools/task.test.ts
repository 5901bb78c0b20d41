import { describe, expect, test } from "vitest";
import { type TaskToolOptions, taskTool } from "../../src/tools/task.ts";
import type { SpawnSubagent, ToolResult } from "../../src/tools/tool.ts";
import { ToolHarness, stateBackend } from "./harness.ts";

const SUBAGENTS = [
  { name: "general-purpose", description: "Any task with several steps." },
  { name: "$&", description: "Costs $1 {available_agents}." },
];
const harnessFor = (options: Partial<TaskToolOptions> = {}) =>
  new ToolHarness(stateBackend(), [taskTool({ subagents: SUBAGENTS, ...options })]);
const args = { description: "Find it.", subagent_type: "general-purpose" };
const reporting =
  (result: ToolResult): SpawnSubagent =>
  async () =>
    result;

describe("task", () => {
  test("spawns the subagent and hands back its report", async () => {
    const asked: unknown[] = [];
    const report: ToolResult = {
      content: "Found.",
      artifact: { steps: 3 },
      update: { files: { "/x": null } },
    };
    const spawn: SpawnSubagent = async (request) => {
      asked.push(request);
      return report;
    };
    expect(await harnessFor().call("task", args, { spawn })).toEqual(report);
    expect(asked).toEqual([{ subagentType: "general-purpose", description: "Find it." }]);
  });

  test("an unknown type names the types there are", async () => {
    const spawn: SpawnSubagent = () => Promise.reject(new Error("must not be spawned"));
    expect(await harnessFor().call("task", { ...args, subagent_type: "coder\n" }, { spawn })).toEqual({
      content: "Error: invoked agent of type coder\\n, the only allowed types are `general-purpose`, `$&`",
      status: "error",
    });
  });

  test.each(["General-Purpose", "general_purpose", "generalPurpose"])(
    "%s is a type in another spelling",
    async (type) => {
      const spawn: SpawnSubagent = async ({ subagentType }) => ({ content: subagentType });
      const result = await harnessFor().call("task", { ...args, subagent_type: type }, { spawn });
      expect(result).toEqual({ content: "general-purpose" });
    },
  );

  test.each([[""], [[]]])("a report of %j becomes a sentence", async (content) => {
    const spawn = reporting({ content, update: { files: {} } });
    expect(await harnessFor().call("task", args, { spawn })).toEqual({
      content: "Task completed",
      update: { files: {} },
    });
  });

  test("a subagent that failed is passed on", async () => {
    const failed: ToolResult = { content: "Error: subagent 'x' failed: y", status: "error" };
    expect(await harnessFor().call("task", args, { spawn: reporting(failed) })).toEqual(failed);
  });

  test("what the subagent throws reaches the graph, as an interrupt must", async () => {
    const interrupt = new Error("interrupt");
    const spawn: SpawnSubagent = () => Promise.reject(interrupt);
    await expect(harnessFor().call("task", args, { spawn })).rejects.toBe(interrupt);
  });

  test("without subagents and when cancelled", async () => {
    expect(await harnessFor().text("task", args)).toBe(
      "Error: subagents are not available here; do the task directly.",
    );
    const scope = { signal: AbortSignal.abort(), spawn: reporting({ content: "late" }) };
    expect(await harnessFor().text("task", args, scope)).toBe("Error: task was cancelled.");
  });

  test("the description lists the types literally", () => {
    const { description } = harnessFor().tool("task");
    expect(description).toMatch(
      /Types:\n- general-purpose: Any task with several steps\.\n- \$&: Costs \$1 \{available_agents\}\.$/,
    );
    const own = harnessFor({ description: "Delegate to:\n{available_agents}\nor not." }).tool("task");
    expect(own.description).toBe(
      "Delegate to:\n- general-purpose: Any task with several steps.\n- $&: Costs $1 {available_agents}.\nor not.",
    );
    expect(harnessFor({ description: "Delegate." }).tool("task").description).toBe("Delegate.");
  });

  test("the preview of a very long assignment shows its beginning and its end", async () => {
    const description = `first ${"\u200b".repeat(1_000_000)} last`;
    const preview = await harnessFor().preview("task", { ...args, description });
    expect(preview?.detail.length).toBeLessThan(700_000);
    expect(preview?.detail).toMatch(/^first [^]*characters not shown[^]* last$/);
  });

  test("the preview shows the assignment", async () => {
    const preview = await harnessFor().preview("task", { ...args, description: "a\n\u001bb" });
    expect(preview).toEqual({
      kind: "arguments",
      summary: "Delegate a task to the subagent 'general-purpose'",
      detail: "a\n\\u001bb",
    });
  });
});
