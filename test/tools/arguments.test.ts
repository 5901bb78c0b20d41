import { describe, expect, test } from "vitest";
import { toolParameters, parseArguments } from "../../src/tools/call.ts";
import { fileTools } from "../../src/tools/index.ts";
import type { ToolSpec } from "../../src/tools/tool.ts";
import { writeTodosTool } from "../../src/tools/write-todos.ts";

const tools = new Map(fileTools().map((tool) => [tool.name, tool]));
const tool = (name: string): ToolSpec => tools.get(name)!;
const message = (name: string, raw: unknown): string => {
  const parsed = parseArguments(tool(name), raw);
  return parsed.ok ? "no problem" : parsed.message;
};

describe("parseArguments", () => {
  test("fills in defaults", () => {
    expect(parseArguments(tool("read_file"), { file_path: "/a" })).toEqual({
      ok: true,
      args: { file_path: "/a", offset: 0, limit: 2000, piece: 0 },
    });
    expect(parseArguments(tool("grep"), { pattern: "x" })).toEqual({
      ok: true,
      args: {
        pattern: "x",
        output_mode: "content",
        max_count: 1000,
        regex: false,
        case_sensitive: true,
        context_lines: 0,
      },
    });
    expect(parseArguments(tool("ls"), {})).toEqual({ ok: true, args: {} });
  });

  test.each([
    ["ls", "path", 4096],
    ["read_file", "file_path", 4096],
    ["write_file", "file_path", 4096],
    ["edit_file", "file_path", 4096],
    ["delete", "file_path", 4096],
    ["glob", "path", 4096],
    ["glob", "pattern", 10_000],
    ["grep", "path", 4096],
    ["grep", "pattern", 10_000],
    ["grep", "glob", 10_000],
  ])("%s takes a %s of %i characters", (name, argument, longest) => {
    const others = { pattern: "x", content: "c", old_string: "o", new_string: "n", file_path: "/a" };
    const known = Object.keys(tool(name).schema.shape);
    const rest = Object.fromEntries(Object.entries(others).filter(([key]) => known.includes(key)));
    expect(message(name, { ...rest, [argument]: "x".repeat(longest) })).toBe("no problem");
    expect(message(name, { ...rest, [argument]: "x".repeat(longest + 1) })).toContain(
      `Invalid arguments for ${name}: ${argument}: Longer than ${longest} characters: `,
    );
  });

  test.each(["read_file", "write_file", "edit_file", "delete"])("%s takes path for file_path", (name) => {
    const rest = { content: "c", old_string: "o", new_string: "n" };
    const known = Object.keys(tool(name).schema.shape);
    const others = Object.fromEntries(Object.entries(rest).filter(([key]) => known.includes(key)));
    expect(parseArguments(tool(name), { path: "/a", ...others })).toMatchObject({
      ok: true,
      args: { file_path: "/a" },
    });
  });

  test("both names at once are refused, because only one can be meant", () => {
    expect(message("delete", { file_path: "/a", path: "/b" })).toBe(
      'Invalid arguments for delete: Unrecognized key: "path"',
    );
  });

  test.each([
    ["read_file", {}, "file_path: Invalid input: expected string, received undefined"],
    ["read_file", { file_path: "/a", limit: 0 }, "limit: Too small: expected number to be >=1"],
    ["read_file", { file_path: "/a", offset: 1.5 }, "offset: Invalid input: expected int, received number"],
    ["grep", { pattern: "x", output_mode: "all" }, /^output_mode: Invalid option: expected one of "content"/],
    ["grep", { pattern: "" }, "pattern: Too small: expected string to have >=1 characters"],
    ["execute", { command: "ls", timeout: 0 }, "timeout: Too small: expected number to be >0"],
    ["ls", { directory: "/" }, 'Unrecognized key: "directory"'],
    ["ls", null, "Invalid input: expected object, received null"],
    ["ls", ["/"], "Invalid input: expected object, received array"],
  ])("%s with %j names the problem", (name, raw, problem) => {
    const text = message(name, raw);
    expect(text.startsWith(`Invalid arguments for ${name}: `)).toBe(true);
    expect(text.slice(`Invalid arguments for ${name}: `.length)).toEqual(
      typeof problem === "string" ? problem : expect.stringMatching(problem),
    );
  });

  test("todos have three states, and the bad one is named", () => {
    const parsed = parseArguments(writeTodosTool, { todos: [{ content: "x", status: "done" }] });
    expect(parsed).toMatchObject({ ok: false, message: expect.stringContaining("todos.0.status: ") });
  });
});

const A = { file_path: "/a" };
const EDIT = { ...A, old_string: "o", new_string: "n" };
const TODOS = [{ content: "x", status: "in_progress" }];

test.each<[source: string, name: string, written: unknown, read: object]>([
  ["earendil-works/pi#783", "read_file", { ...A, offset: "5", limit: "20" }, { ...A, offset: 5, limit: 20 }],
  ["ZenRows/zenrows-mcp#23", "read_file", { ...A, offset: null, limit: null }, A],
  ["can1357/oh-my-pi#2981", "grep", { pattern: "x", glob: "", output_mode: "" }, { pattern: "x" }],
  ["agentscope-ai/QwenPaw#6936", "write_file", { ...A, content: 1.5 }, { ...A, content: "1.5" }],
  [
    "openclaw/openclaw#102297",
    "write_file",
    { ...A, content: { b: [1] } },
    { ...A, content: '{\n  "b": [\n    1\n  ]\n}' },
  ],
  ["cortexkit/aft#148", "read_file", { filePath: "/a" }, A],
  ["BaseIntelligence/bounty-challenge#15903", "edit_file", { path: "/a", old_str: "o", new_str: "n" }, EDIT],
  ["NousResearch/hermes-agent#110436", "edit_file", { arguments: EDIT }, EDIT],
  ["OpenHands/software-agent-sdk#2217", "read_file", { input: '{"file_path":\n"/a",}' }, A],
  ["flags as text", "edit_file", { ...EDIT, replace_all: "True" }, { ...EDIT, replace_all: true }],
  [
    "a choice in another case",
    "grep",
    { pattern: "x", output_mode: "Files With-Matches" },
    { output_mode: "files_with_matches" },
  ],
  ["a remark for a person", "execute", { command: "ls", description: "List files" }, { command: "ls" }],
  ["anomalyco/opencode#10813", "write_todos", { todos: JSON.stringify(TODOS) }, { todos: TODOS }],
  [
    "anomalyco/opencode#1354",
    "write_todos",
    { todos: [{ ...TODOS[0], id: "1", priority: "high" }] },
    { todos: TODOS },
  ],
  ["Miso2233/SonettoHere#319", "write_todos", { todos: TODOS[0] }, { todos: TODOS }],
  ["a state in words", "write_todos", { todos: [{ content: "x", status: "In Progress" }] }, { todos: TODOS }],
])("%s: %s with %j is read as it was meant", (_source, name, written, read) => {
  const spec = name === "write_todos" ? writeTodosTool : tool(name);
  expect(parseArguments(spec, written)).toEqual({
    ok: true,
    args: expect.objectContaining(read) as unknown,
  });
});

test.each<[name: string, args: Record<string, unknown>, problem: string]>([
  ["execute", { command: "rm -rf *", folder: "/tmp" }, 'Unrecognized key: "folder"'],
  ["execute", { command: { cmd: "ls" } }, "command: Invalid input"],
  ["write_file", { ...A, content: null }, "content: Invalid input"],
  ["edit_file", { ...EDIT, oldString: "p" }, 'Unrecognized key: "oldString"'],
  ["read_file", { ...A, limit: "many" }, "limit: Invalid input"],
])("%s with %j is not guessed at", (name, args, problem) => {
  expect(message(name, args)).toContain(problem);
});

test("parametersOf: what has a default is optional, and aliases do not show", () => {
  const schema = toolParameters(tool("read_file").schema);
  expect(schema).toMatchObject({
    type: "object",
    required: ["file_path"],
    properties: { offset: { type: "integer" }, limit: { type: "integer", default: 2000 } },
  });
  expect(Object.keys(schema["properties"] as object)).toEqual(["file_path", "offset", "limit", "piece"]);
  // What tells a model nothing is checked all the same.
  expect(JSON.stringify(schema)).not.toMatch(
    /9007199254740991|minLength|minimum|"default":(0|false)|additionalProperties/,
  );
  expect(parseArguments(tool("read_file"), { file_path: "/a", limit: 0 }).ok).toBe(false);
  expect(parseArguments(tool("read_file"), { file_path: "/a", other: 1 }).ok).toBe(false);
});
