import { describe, expect, test } from "vitest";
import { fileTools } from "../../src/tools/index.ts";
import type { FileToolOptions } from "../../src/tools/options.ts";
import { taskTool } from "../../src/tools/task.ts";
import { writeTodosTool } from "../../src/tools/write-todos.ts";

const names = (options?: FileToolOptions): string[] => fileTools(options).map(({ name }) => name);

describe("fileTools", () => {
  test("seven file tools and execute; delete may be off, job may be on", () => {
    const six = ["ls", "read_file", "write_file", "edit_file", "glob", "grep"];
    expect(names()).toEqual([...six, "delete", "execute"]);
    expect(names({ delete: false })).toEqual([...six, "execute"]);
    expect(names({ jobs: true })).toEqual([...six, "delete", "execute", "job"]);
  });

  test("the allow-list narrows and turns nothing on", () => {
    expect(names({ tools: ["grep", "ls", "job"] })).toEqual(["ls", "grep"]);
    expect(names({ tools: ["delete"] })).toEqual(["delete"]);
    expect(names({ tools: [] })).toEqual([]);
  });

  test("a description may be replaced, the rest of the tool stays", () => {
    const [ls, grep] = fileTools({ tools: ["ls", "grep"], toolDescriptions: { ls: "Look." } });
    expect(ls).toMatchObject({ name: "ls", kind: "read", description: "Look." });
    expect(grep?.description).not.toBe("Look.");
  });

  test("every tool tells the kind of its effect", () => {
    const all = [...fileTools({ jobs: true }), writeTodosTool, taskTool({ subagents: [] })];
    expect(Object.fromEntries(all.map(({ name, kind }) => [name, kind]))).toEqual({
      ls: "read",
      read_file: "read",
      write_file: "write",
      edit_file: "write",
      glob: "read",
      grep: "read",
      delete: "write",
      execute: "execute",
      job: "read",
      write_todos: "plan",
      task: "delegate",
    });
  });
});
