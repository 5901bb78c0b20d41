import { describe, expect, it } from "vitest";
import { loadAgentFiles, parseAgentFile } from "../../src/agent/agent-files.ts";
import type { FileData, FilesUpdate } from "../../src/backends/backend.ts";
import { StateBackend } from "../../src/backends/state.ts";
import { silentLogger } from "../../src/core/logger.ts";

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
      agent: {
        name: "reviewer",
        description: "Reviews a change.",
        systemPrompt: "Review {it} $&.\n\n---\nend",
        model: "anthropic:claude-haiku-4-5",
        tools: ["Read", "Grep"],
      },
    });
    const other = parseAgentFile("/a.md", file("reviewer", "x", "model: sonnet\n"));
    expect(other).toHaveProperty("agent", expect.not.objectContaining({ model: expect.anything() }));
  });

  it.each([
    ["no front matter", "just text", "does not start with front matter"],
    ["a bad name", file("My Agent"), "name: use lowercase letters"],
    ["no prompt", file("a", ""), "has no prompt"],
    ["tools that are no names", file("a", "x", "tools: { Read: true }\n"), "tools: use names"],
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
  ])("names its tools: %s", (line, tools) => {
    const parsed = parseAgentFile("/a.md", file("reviewer", "x", `${line}\ndisallowedTools: Write\n`));
    expect(parsed).toMatchObject({ ok: true, agent: { disallowedTools: ["Write"] } });
    expect(parsed.ok && parsed.agent.tools).toEqual(tools);
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
