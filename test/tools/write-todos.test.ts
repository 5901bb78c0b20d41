import { expect, test } from "vitest";
import { ToolHarness, stateBackend } from "./harness.ts";
import { writeTodosTool } from "../../src/tools/write-todos.ts";

const tools = new ToolHarness(stateBackend(), [writeTodosTool]);

test("replaces the list and answers in one line", async () => {
  const todos = [
    { content: "read", status: "completed" },
    { content: "write", status: "in_progress" },
    { content: "check", status: "pending" },
  ];
  expect(await tools.call("write_todos", { todos })).toEqual({
    content: "Updated the todo list: 1 of 3 completed; in progress: write",
    artifact: { todos },
    update: { todos },
  });
});

test("the list may be emptied", async () => {
  expect(await tools.call("write_todos", { todos: [] })).toMatchObject({
    content: "Emptied the todo list",
    update: { todos: [] },
  });
});

test("steps of several lines and any length stay one line", async () => {
  const todos = ["a\nb", "x".repeat(1000)].map((content) => ({ content, status: "in_progress" }));
  const text = await tools.text("write_todos", { todos });
  expect(text).toMatch(/^Updated the todo list: 0 of 2 completed; in progress: a b, x+…$/);
  expect(text.length).toBeLessThan(200);
});
