import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { loadSkills } from "../../../src/agent/layers/skills.ts";
import { loadAgentFiles, parseAgentFile, loadSubagents } from "../../../src/agent/build/agent-files.ts";
import type { FileData, FilesUpdate } from "../../../src/backends/backend.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { createLogger, silentLogger } from "../../../src/core/logger.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const file = (name: string, prompt = "Review it.", more = ""): string =>
  `---\nname: ${name}\ndescription: Reviews a change.\n${more}---\n\n${prompt}\n`;

function backendWith(files: Record<string, string>): StateBackend {
  const all = new Map<string, FileData>();
  const thread = {
    get: (path: string) => all.get(path),
    entries: () => all.entries(),
    apply: (update: FilesUpdate) => {
      for (const [path, data] of Object.entries(update)) if (data) all.set(path, data);
    },
  };
  const backend = new StateBackend({ files: thread });
  for (const [path, text] of Object.entries(files)) backend.write(path, text);
  return backend;
}

describe("an agent file", () => {
  it("gives name, description, prompt and a model with a provider", () => {
    const text = file(
      "reviewer",
      "Review {it} $&.\n\n---\nend",
      "model: anthropic:claude-haiku-4-5\ntools: Read, Grep\n",
    );
    expect(parseAgentFile("/a.md", text)).toEqual({
      ok: true,
      described: {
        name: "reviewer",
        description: "Reviews a change.",
        systemPrompt: "Review {it} $&.\n\n---\nend",
        model: "anthropic:claude-haiku-4-5",
        tools: ["Read", "Grep"],
      },
      warnings: [],
    });
    const other = parseAgentFile("/a.md", file("reviewer", "x", "model: sonnet\n"));
    expect(other).toHaveProperty("described", expect.not.objectContaining({ model: expect.anything() }));
  });

  it.each([
    ["no front matter", "just text", "does not start with front matter"],
    ["no prompt", file("a", ""), "has no prompt"],
    ["the name of the built-in subagent", file("general-purpose"), "is the built-in subagent"],
    ["tools that are no names", file("a", "x", "tools: 5\n"), "tools: use names"],
    ["the mode of a main agent", file("a", "x", "mode: primary\n"), "mode is primary"],
    ["the note that it is off", file("a", "x", "disable: yes\n"), "it is switched off"],
    ["the note that people start it", file("a", "x", "disable-model-invocation: true\n"), "only a person"],
    ["work on another server", file("a", "x", "kind: remote\n"), "kind is remote"],
    ["rules for reading files", file("a", "x", "permission: { read: { '*.env': deny } }\n"), "single files"],
    ["rules in an unknown form", file("a", "x", "permission: [deny]\n"), "permission"],
    [
      "front matter that takes long to parse",
      `---\n${"k:\n".repeat(50_000)}---\nx`,
      "the front matter is longer than 65536",
    ],
    ["front matter without an end", `---\n${"x".repeat(70_000)}`, "the front matter is longer than 65536"],
    ["broken YAML", "---\n: [\n---\nx", "front matter"],
  ])("with %s is refused with the reason", (_what, text, problem) => {
    expect(parseAgentFile("/a.md", text)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });

  it.each([
    ["tools: Read, Bash(git log:*, git diff:*),Grep", ["Read", "Bash(git log:*, git diff:*)", "Grep"]],
    ["tools: [Read, mcp__search__find]", ["Read", "mcp__search__find"]],
    ["tools:\n  - Read\n  - 'Grep, Glob'", ["Read", "Grep", "Glob"]],
    ["tools: []", []],
    ["tools:", undefined],
    ["tools: '*'", undefined],
    ["tools: [Read, '*']", undefined],
    ["color: blue", undefined],
    ["tools: Read Grep", ["Read", "Grep"]],
    ["tools: { '*': false, read: true, edit: no }", ["read"]],
    ["tools: { read: true }", undefined],
  ])("names its tools: %s", (line, tools) => {
    const parsed = parseAgentFile("/a.md", file("reviewer", "x", `${line}\ndisallowedTools: Write\n`));
    expect(parsed).toMatchObject({ ok: true });
    expect(parsed.ok && parsed.described.disallowedTools?.[0]).toBe("Write");
    expect(parsed.ok && parsed.described.tools).toEqual(tools);
  });

  it.each([
    ["TechNickAI/ai-coding-config#9", "name: Code Reviewer", "code-reviewer"],
    ["wshobson/agents#489", "color: red", "prompt-crafter"],
    ["an empty name", "name:", "prompt-crafter"],
    ["a number", "name: 007", "7"],
    ["accents", "name: Élise_B", "elise-b"],
    ["other scripts", "name: 审查", "prompt-crafter"],
  ])("%s: %j is the agent %s, with a warning", (_source, line, name) => {
    const text = `---\n${line}\ndescription: d\nmodel:\n---\nWork.`;
    expect(parseAgentFile("/.claude/agents/prompt-crafter.md", text)).toEqual({
      ok: true,
      described: { name, description: "d", systemPrompt: "Work." },
      warnings: /^name: ./.test(line) ? [expect.stringContaining(`is read as '${name}'`)] : [],
    });
  });

  const editing = ["edit/*", "delete"];
  it.each<[string, object]>([
    ["readonly: true", { disallowedTools: [...editing, "execute", "job"] }],
    ["permissionMode: plan", { disallowedTools: [...editing, "execute", "job"] }],
    ["permissionMode: bypassPermissions", {}],
    [
      "permission: { edit: deny, bash: ask, webfetch: allow }",
      { disallowedTools: editing, askedTools: ["bash"] },
    ],
    ["permission: { bash: { '*': deny, 'git log': allow } }", { disallowedTools: ["bash"] }],
    ["permission: ask", { askedTools: ["*"] }],
    ["permission: deny", { tools: [] }],
    ["permission: { '*': deny, read: allow }", { tools: ["read"] }],
    ["tools: { write: false, bash: off }", { disallowedTools: [...editing, "bash"] }],
    ["permissions: { deny: [Bash], ask: [Write] }", { disallowedTools: ["Bash"], askedTools: ["Write"] }],
    ["agents: []", { disallowedTools: ["task"] }],
    ["max_turns: 5\ntimeout_mins: 2", { limits: { maxIterations: 5, wallTimeMs: 120_000 } }],
    [
      "model: [GPT-5, 'Claude Sonnet 4.5 (copilot)']",
      { modelAlias: ["GPT-5", "Claude Sonnet 4.5 (copilot)"] },
    ],
  ])("keeps the restrictions of other programs, and no powers: %s", (line, kept) => {
    const parsed = parseAgentFile("/a.md", file("reviewer", "x", `${line}\n`));
    const {
      name: _,
      description: _d,
      systemPrompt: _p,
      ...rest
    } = parsed.ok ? parsed.described : { name: "" };
    expect(rest).toEqual(kept);
  });

  it("reads TOML, and says what is wrong with it", () => {
    const toml =
      'name = "a"\ndescription = "d"\ndeveloper_instructions = "Work."\nsandbox_mode = "read-only"\n';
    expect(parseAgentFile("/a.toml", toml)).toMatchObject({
      ok: true,
      described: { name: "a", systemPrompt: "Work.", disallowedTools: expect.arrayContaining(["execute"]) },
    });
    expect(parseAgentFile("/a.toml", "name = ")).toMatchObject({
      problem: expect.stringContaining("is not TOML"),
    });
  });

  it("with nested aliases in its front matter costs nothing", () => {
    const bomb = Array.from({ length: 30 }, (_, at) => `k${at}: [*k${at - 1}, *k${at - 1}]`).join("\n");
    const parsed = parseAgentFile(
      "/a.md",
      `---\nname: a\ndescription: d\nk-1: &k-1 x\n${bomb}\n---\nWork.\n`,
    );
    expect(parsed).toMatchObject({ ok: true, described: { name: "a" } });
  });

  it("cannot become the built-in subagent by another spelling", () => {
    expect(parseAgentFile("/a.md", file("General Purpose"))).toMatchObject({
      ok: false,
      problem: expect.stringContaining("is the built-in subagent"),
    });
  });

  it("with a description that is too long is cut with a warning", () => {
    const text = `---\nname: a\ndescription: ${"d".repeat(2000)}\n---\nWork.`;
    expect(parseAgentFile("/a.md", text)).toEqual({
      ok: true,
      described: { name: "a", description: "d".repeat(1024), systemPrompt: "Work." },
      warnings: ["/a.md: description is longer than 1024 characters and was cut"],
    });
  });

  it("anthropics/claude-code#58950: may be in a group", async () => {
    const backend = backendWith({
      "/w/agents/top.md": file("top"),
      "/w/agents/review/security/auditor.md": file("auditor"),
      "/w/agents/node_modules/x/y.md": file("y"),
      "/w/agents/1/2/3/deep.md": file("deep"),
    });
    const agents = await loadAgentFiles(backend, ["/w/agents"], silentLogger);
    expect(agents.map(({ name }) => name)).toEqual(["auditor", "top"]);
  });

  it("of a later folder counts; folders that are missing and files that are broken are left out", async () => {
    const backend = backendWith({
      "/w/.claude/agents/reviewer.md": file("reviewer", "old"),
      "/w/.claude/agents/notes.txt": "not an agent",
      "/w/.deepagent/agents/a.md": file("reviewer", "new"),
      "/w/.deepagent/agents/broken.md": "nothing",
      "/w/.deepagent/agents/b.md": file("asker", "ask"),
    });
    const folders = ["/missing", "/w/.claude/agents", "/w/.deepagent/agents"];
    const agents = await loadAgentFiles(backend, folders, silentLogger);
    expect(agents.map(({ name, systemPrompt }) => [name, systemPrompt])).toEqual([
      ["asker", "ask"],
      ["reviewer", "new"],
    ]);
  });
});

it("subagents, skills and instructions that are too large are left out or cut, which the log says", async () => {
  const long = "x".repeat(2_000_000);
  const backend = backendWith({
    "/agents/a.md": file("a", long),
    "/skills/b/SKILL.md": `---\nname: b\ndescription: c\n---\n${long}`,
    "/AGENTS.md": long,
  });
  const lines: string[] = [];
  const log = createLogger("warn", (line) => void lines.push(line));
  expect(await loadAgentFiles(backend, ["/agents"], log)).toEqual([]);
  expect(await loadSkills(backend, ["/skills"], log)).toEqual({});
  const model = scriptedModel(() => ({ text: "end" }));
  const agent = createDeepAgent({ model, backend, memory: ["/AGENTS.md"], log });
  await agent.invoke({ messages: [new HumanMessage("go")] });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { event: "agent_file_skipped", problem: expect.stringContaining("too large to load at once") },
    { event: "skill_skipped", problem: expect.stringContaining("too large to load at once") },
    { event: "memory_cut", path: "/AGENTS.md", characters: 2_000_000, shown: 40_000 },
  ]);
});

describe("subagents of a library user's files", () => {
  it("are read with the tools they name, and work", async () => {
    const search = tool(() => "found", { name: "search", description: "d", schema: z.object({}) });
    const send = tool(() => "sent", { name: "send", description: "d", schema: z.object({}) });
    const backend = backendWith({
      "/.claude/agents/a.md": file("scout", "Look.", "tools: Grep, search, Nonsense\n"),
      "/.claude/agents/b.md": file("free"),
      "/.claude/agents/c.md": "no front matter",
      "/.deepagent/agents/d.md": file("free", "Own prompt.", "disallowedTools: [send, Write]\n"),
    });
    const lines: string[] = [];
    const log = createLogger("warn", (line) => void lines.push(line));
    const subagents = await loadSubagents({ backend, tools: [search, send], log });
    expect(subagents).toMatchObject([
      { name: "free", systemPrompt: "Own prompt.", tools: [{ name: "search" }] },
      {
        name: "scout",
        tools: [{ name: "search" }],
        filesystem: { tools: ["ls", "read_file", "grep"] },
      },
    ]);
    expect(subagents[0]?.filesystem?.tools).not.toContain("write_file");
    expect(lines.join("")).toContain("/.claude/agents/c.md does not start with front matter");
    expect(lines.join("")).toContain("'Nonsense', which does not exist here");
    const model = scriptedModel(({ messages, call }) =>
      messages.some(({ text }) => text === "look")
        ? { text: "looked" }
        : call === 0
          ? { toolCalls: [{ name: "task", args: { subagent_type: "scout", description: "look" } }] }
          : { text: "end" },
    );
    const agent = createDeepAgent({ model, tools: [search, send], subagents });
    await agent.invoke({ messages: [new HumanMessage("go")] });
    expect(model.requests[1]?.tools.sort()).toEqual(["grep", "ls", "read_file", "search", "write_todos"]);
  });

  it("need a backend that is there", async () => {
    await expect(loadSubagents({ backend: () => backendWith({}) })).rejects.toThrow(
      "is created for each call",
    );
    expect(await loadSubagents({ backend: backendWith({}) })).toEqual([]);
  });
});
