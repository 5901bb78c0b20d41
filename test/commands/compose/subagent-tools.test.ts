import { describe, expect, it, test } from "vitest";
import { z } from "zod";
import { toAgentTool } from "../../../src/agent/langgraph/foreign-tool.ts";
import { chooseTools, type ToolWishes } from "../../../src/agent/build/agent-files.ts";
import table from "../../../src/agent/build/tool-names.json" with { type: "json" };
import { FILE_TOOL_NAMES, WEB_TOOL_NAMES } from "../../../src/tools/options.ts";
import { openWorld } from "../../support/harness.ts";
import { play } from "../../support/harness-brain.ts";

const toolOf = (name: string) =>
  toAgentTool({ name, description: name, schema: z.object({}), invoke: () => name });
const offer = {
  tools: ["github__search", "github__open_issue", "wiki__read"].map(toolOf),
  servers: ["github", "wiki", "down"],
  missing: ["down"],
  web: [],
};
const chosen = (wishes: Omit<ToolWishes, "name">) => {
  const { tools, fileTools, notes } = chooseTools({ name: "scribe", ...wishes }, offer);
  return { tools: tools?.map(({ name }) => name), fileTools, notes: notes.map(({ text }) => text) };
};

describe("the tools of a subagent", () => {
  it.each<[string, Omit<ToolWishes, "name">, string[] | undefined, readonly string[] | undefined]>([
    ["nothing: all", {}, undefined, undefined],
    ["a server", { tools: ["github"] }, ["github__search", "github__open_issue"], undefined],
    ["a tool of a server", { tools: ["github__search"] }, ["github__search"], undefined],
    ["a server that is down", { tools: ["down"] }, [], undefined],
    ["a tool of one that is down", { tools: ["down__any"] }, [], undefined],
    ["no tools: none of servers", { tools: [] }, [], undefined],
    ["built-in ones: no others", { tools: ["grep", "wiki"] }, ["wiki__read"], ["ls", "read_file", "grep"]],
    [
      "a file: those alone, by Claude Code's names too",
      {
        isFile: true,
        tools: ["Read", "Edit", "MultiEdit", "Bash", "TodoWrite", "Task", "mcp__github__search"],
      },
      ["github__search"],
      ["ls", "read_file", "edit_file", "execute", "job"],
    ],
    ["a file with a server", { isFile: true, tools: ["mcp__wiki"] }, ["wiki__read"], ["ls", "read_file"]],
    [
      "a file with all of a server",
      { isFile: true, tools: ["mcp__wiki__*"] },
      ["wiki__read"],
      ["ls", "read_file"],
    ],
    ["a file with an empty list", { isFile: true, tools: [] }, [], ["ls", "read_file"]],
    ["a file without a list", { isFile: true }, undefined, undefined],
    [
      "what it may not have",
      { isFile: true, disallowedTools: ["Write", "Edit", "Bash", "mcp__github"] },
      ["wiki__read"],
      FILE_TOOL_NAMES.filter(
        (name) => !["write_file", "edit_file", "delete", "execute", "job"].includes(name),
      ),
    ],
    [
      "both lists",
      { isFile: true, tools: ["Read", "Grep", "wiki"], disallowedTools: ["Read"] },
      ["wiki__read"],
      ["grep"],
    ],
  ])("%s", (_what, wishes, tools, fileTools) => {
    expect(chosen(wishes)).toEqual({ tools, fileTools, notes: [] });
  });

  it.each([
    ["gihub__search", " Did you mean github__search?"],
    ["mcp__github__serch", " Did you mean github__search?"],
    ["github__search__more", ""],
    ["no such thing", ""],
    ["__proto__", ""],
    ["constructor", ""],
    ["", ""],
  ])("a name that nothing has is told with the nearest: %s", (name, hint) => {
    const problem = `Subagent 'scribe' names the tool '${name}', which does not exist here; it works without it.${hint}`;
    expect(chosen({ tools: [name] }).notes).toEqual([problem]);
    expect(chosen({ disallowedTools: [name] }).notes).toEqual([problem]);
  });

  it("what belongs to Claude Code alone, and conditions, are told too", () => {
    const { notes, fileTools } = chosen({ isFile: true, tools: ["WebFetch", "Bash(git log:*)"] });
    expect(notes).toEqual([
      expect.stringContaining("no counterpart here"),
      expect.stringContaining("parentheses"),
    ]);
    expect(fileTools).toContain("execute");
  });
});

describe("names of other programs", () => {
  const known = table.programs.flatMap(({ program, tools }) =>
    Object.entries<string | null | undefined>(tools).map(([name, same]) => [program, name, same] as const),
  );
  it.each(known)("%s: %s", (_program, name, same) => {
    const {
      fileTools = [],
      webTools = [],
      notes,
    } = chooseTools({ name: "x", isFile: true, tools: [name] }, { ...offer, web: WEB_TOOL_NAMES });
    expect(notes).toEqual(same === null ? [expect.objectContaining({ isMistake: false })] : []);
    const meant = (same ?? "")
      .split(" ")
      .filter((one) => [...FILE_TOOL_NAMES, ...WEB_TOOL_NAMES].includes(one));
    expect([...fileTools, ...webTools].sort()).toEqual([...new Set(["ls", "read_file", ...meant])].sort());
  });

  it.each<[string, string[] | undefined]>([
    ["github/search", ["github__search"]],
    ["github/*", ["github__search", "github__open_issue"]],
    ["github_*", ["github__search", "github__open_issue"]],
    ["github_search", ["github__search"]],
    ["mcp_wiki_read", ["wiki__read"]],
    ["mcp_*", ["github__search", "github__open_issue", "wiki__read"]],
    ["Mcp", ["github__search", "github__open_issue", "wiki__read"]],
    ["shell/run", []],
    ["docker/execute", []],
  ])("tools of servers: %s", (name, tools) => {
    const got = chosen({ isFile: true, tools: [name] });
    expect([got.tools, got.fileTools]).toEqual([tools, ["ls", "read_file"]]);
  });

  it.each(["ReadMcpResourceTool", "ListMcpResourcesTool", "access_mcp_resource"])(
    "%s: what reads the resources of servers, and nothing else",
    (name) => {
      const reads = { ...toolOf("wiki__read_resource"), kind: "read" as const };
      const tools = [...offer.tools, reads, toolOf("own__read_resource")];
      const names = (wishes: Partial<ToolWishes>) =>
        chooseTools({ name: "x", isFile: true, ...wishes }, { ...offer, tools }).tools?.map(
          (one) => one.name,
        );
      expect(names({ tools: [name] })).toEqual(["wiki__read_resource"]);
      expect(names({ disallowedTools: [name] })).not.toContain("wiki__read_resource");
    },
  );

  it("with conditions are asked about, and a denied name that nothing knows leaves the file out", () => {
    const got = chooseTools({ name: "x", isFile: true, tools: ["Bash(git log:*)", "Task(a)"] }, offer);
    expect(got).toMatchObject({ asked: ["execute", "job", "task"], delegates: false });
    expect(chooseTools({ name: "x", isFile: true, disallowedTools: ["Frob"] }, offer).refusal).toContain(
      "denies 'Frob'",
    );
    expect(
      chooseTools({ name: "x", isFile: true, disallowedTools: ["mcp__gone"] }, offer).refusal,
    ).toBeUndefined();
    expect(chooseTools({ name: "x", isFile: true }, offer).delegates).toBe(true);
  });
});

test("the tools for the web are those that the agent has and the subagent names", () => {
  const webOf = (wishes: Omit<ToolWishes, "name">, web: typeof WEB_TOOL_NAMES | [] = WEB_TOOL_NAMES) =>
    chooseTools({ name: "scribe", ...wishes }, { ...offer, web });
  expect(webOf({}).webTools).toBeUndefined();
  expect(webOf({ tools: ["wiki"] }).webTools).toBeUndefined();
  expect(webOf({ tools: ["grep"] })).toMatchObject({ webTools: [], notes: [] });
  expect(webOf({ isFile: true, tools: ["Read", "WebFetch"] })).toMatchObject({
    webTools: ["web_fetch"],
    notes: [],
  });
  expect(webOf({ tools: ["web_search"] })).toMatchObject({
    webTools: ["web_search"],
    fileTools: ["ls", "read_file"],
  });
  expect(webOf({ disallowedTools: ["WebSearch"] }).webTools).toEqual(["web_fetch"]);
  expect(webOf({ isFile: true, tools: ["WebFetch"] }, []).notes).toMatchObject([{ isMistake: false }]);
  expect(webOf({ tools: ["web_fetch"] }, []).notes).toMatchObject([{ isMistake: true }]);
});

test("a run tells once which tools its subagents go without, and they have no others", async () => {
  const reader = "---\nname: reader\ndescription: Reads.\ntools: Read, Gerp\n---\nYou read.\n";
  const task = (id: string) => ({
    id,
    name: "task",
    args: { description: "read it", subagent_type: "reader" },
  });
  const world = await openWorld("memory", {
    files: { ".claude/agents/reader.md": reader },
    think: play({
      "Have it read": [{ toolCalls: [task("a"), task("b")] }, { text: "done" }],
      "read it": [{ text: "It says nothing." }],
    }),
  });
  const client = await world.connect("v1");
  const { structured } = await client.call("run_deep_agent", { task: "Have it read" });
  expect(structured).toMatchObject({ status: "completed", answer: "done" });
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  expect(JSON.stringify(contents).match(/names the tool 'Gerp'[^"]*Did you mean/g)).toHaveLength(1);
  const { request } = world.brain.thoughts.find((thought) => thought.task.includes("read it")) ?? {};
  const tools = (request?.body["tools"] ?? []) as { name: string }[]; // the provider's request
  expect(tools.map(({ name }) => name).sort()).toEqual(["ask_user", "ls", "read_file", "write_todos"]);
});

test("subagents of files use models that the operator named, and the run tells once which others they asked for", async () => {
  const agent = (name: string, model: string): string =>
    `---\nname: ${name}\ndescription: Reads.\nmodel: ${model}\n---\nYou are ${name}.\n`;
  const task = (name: string) => ({
    id: name,
    name: "task",
    args: { description: `${name} reads`, subagent_type: name },
  });
  const names = ["stranger", "cheap", "family", "same"];
  const world = await openWorld("memory", {
    files: {
      ".claude/agents/stranger.md": agent("stranger", "openai:gpt-5.4"),
      ".claude/agents/cheap.md": agent("cheap", "anthropic:claude-cheap-1"),
      ".deepagent/agents/family.md": agent("family", "cheap"),
      ".deepagent/agents/same.md": agent("same", "inherit"),
    },
    env: { DEEPAGENT_ALLOWED_MODELS: "anthropic:claude-cheap-1", OPENAI_API_KEY: "sk-not-to-be-used" },
    think: play({
      "Have it read": [
        { toolCalls: [...names, "stranger"].map((name, at) => ({ ...task(name), id: `c${at}` })) },
        { text: "done" },
      ],
      ...Object.fromEntries(names.map((name) => [`${name} reads`, [{ text: "read" }]])),
    }),
  });
  const client = await world.connect("v1");
  const { structured } = await client.call("run_deep_agent", { task: "Have it read" });
  expect(structured).toMatchObject({ status: "completed", answer: "done" });
  const used = (name: string) =>
    world.brain.thoughts.find((thought) => thought.task.includes(`${name} reads`))?.request.body["model"];
  expect(names.map(used)).toEqual(["claude-test", "claude-cheap-1", "claude-cheap-1", "claude-test"]);
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  const events = JSON.stringify(contents);
  expect(events.match(/asks in its file for the model/g)).toHaveLength(1);
  expect(events).toMatch(
    /Subagent 'stranger' asks in its file for the model 'openai:gpt-5\.4', which this server/,
  );
});

test("a run tells once that its prompt has no room for all skills and subagents of a workspace", async () => {
  const long = "d".repeat(400);
  const files = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => `x${index}`).flatMap((name) => [
      [`.claude/agents/${name}.md`, `---\nname: ${name}\ndescription: ${long}\n---\nWork.\n`],
      [`skills/${name}/SKILL.md`, `---\nname: ${name}\ndescription: ${long}\n---\nWork.\n`],
    ]),
  );
  const world = await openWorld("memory", {
    files,
    think: play({
      "Say hello": [{ toolCalls: [{ id: "a", name: "ls", args: { path: "/" } }] }, { text: "hello" }],
    }),
  });
  const client = await world.connect("v1");
  const { structured } = await client.call("run_deep_agent", { task: "Say hello" });
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  expect(
    JSON.stringify(contents)
      .match(/The prompt has no room for all (skills|subagents)/g)
      ?.sort(),
  ).toEqual(["The prompt has no room for all skills", "The prompt has no room for all subagents"]);
  const [first] = world.brain.thoughts;
  const body = JSON.stringify(first?.request.body);
  expect(body.length).toBeLessThan(40_000);
  // The skills of the package come before those of a workspace.
  for (const own of ["codebase-research", "/workspace/skills", "/workspace/.claude/agents"])
    expect(body).toContain(own);
});

it("files of subagents and skills that are left out are named once in the run", async () => {
  const world = await openWorld("memory", {
    files: {
      ".claude/agents/nameless.md": "---\nname: A B\ndescription: d\n---\nWork.",
      ".claude/agents/long.md": `---\nname: long\ndescription: ${"d".repeat(2000)}\n---\nWork.`,
      ".claude/agents/empty.md": "---\nname: empty\n---\nWork.",
      "skills/lost/SKILL.md": "---\nname: lost\ndescription: []\n---\nWork.",
    },
    think: play({ Go: [{ toolCalls: [{ id: "c", name: "ls", args: { path: "/" } }] }, { text: "done" }] }),
  });
  const client = await world.connect("v1");
  const { structured } = await client.call("run_deep_agent", { task: "Go" });
  const { contents } = await client.readResource(`deepagent://runs/${String(structured["run_id"])}/events`);
  const events = JSON.stringify(contents);
  for (const notice of [
    /Subagent file: \/workspace\/\.claude\/agents\/nameless\.md: name 'A B' is read as 'a-b'/g,
    /Subagent file: \/workspace\/\.claude\/agents\/empty\.md is left out: [^"]*: description: /g,
    /Subagent file: \/workspace\/\.claude\/agents\/long\.md: description is longer than 1024 characters and was cut/g,
    /Skill: \/workspace\/skills\/lost\/SKILL\.md is left out: [^"]*: description must be a text/g,
  ])
    expect(events.match(notice)).toHaveLength(1);
});
