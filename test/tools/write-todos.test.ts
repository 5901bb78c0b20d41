import { expect, test } from "vitest";
import { ToolHarness, stateBackend } from "./harness.ts";
import { writeTodosTool } from "../../src/tools/write-todos.ts";

const tools = new ToolHarness(stateBackend(), [writeTodosTool]);

test("replaces the list and tells it", async () => {
  const todos = [
    { content: "read", status: "completed" },
    { content: "write", status: "in_progress" },
    { content: "check", status: "pending" },
  ];
  expect(await tools.call("write_todos", { todos })).toEqual({
    content: `Updated todo list to ${JSON.stringify(todos)}`,
    artifact: { todos },
    update: { todos },
  });
});

test("the list may be emptied", async () => {
  expect(await tools.call("write_todos", { todos: [] })).toMatchObject({
    content: "Updated todo list to []",
    update: { todos: [] },
  });
});
