import { mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { collect, paused, toolMessages, resumeAgentInput } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

const write = (path: string): ScriptedToolCall => ({
  name: "write_file",
  args: { file_path: path, content: "x" },
});
const go = { kind: "task", task: "go" } as const;
const deny = (operation: "read" | "write", ...paths: string[]) => ({
  operations: [operation],
  paths,
  mode: "deny" as const,
});

/** Main agent and subagent alike make their calls one reply after another, then end. */
function agentMaking(
  replies: ScriptedToolCall[][],
  params: DeepAgentParams,
  inner: ScriptedToolCall[][] = [],
) {
  const model = scriptedModel(({ messages, tools }) => {
    const turn = messages.filter((message) => message.type === "ai").length;
    const toolCalls = (tools.includes("task") ? replies : inner)[turn];
    if (toolCalls) return { toolCalls };
    return { text: messages.findLast((message) => ToolMessage.isInstance(message))?.text ?? "" };
  });
  return { agent: buildAgent({ checkpointer: new MemorySaver(), model, ...params }), model };
}
const texts = async (agent: Parameters<typeof toolMessages>[0]) =>
  (await toolMessages(agent)).map(({ text }) => text);

describe("permissions", () => {
  it("deny by the first rule that fits, and allow what none fits", async () => {
    const permissions = [
      { operations: ["write" as const], paths: ["/docs/open/**"], mode: "allow" as const },
      deny("write", "/docs/**"),
    ];
    const { agent } = agentMaking([[write("/docs/a"), write("/docs/open/b"), write("/c")]], { permissions });
    await collect(agent, go);
    expect(await texts(agent)).toEqual([
      "Error: permission denied for write on /docs/a",
      "Successfully wrote to '/docs/open/b'",
      "Successfully wrote to '/c'",
    ]);
  });

  it("filter listings and searches", async () => {
    const { agent } = agentMaking(
      [
        [write("/secret/a.md"), write("/b.md")],
        [
          { name: "glob", args: { pattern: "**/*.md" } },
          { name: "grep", args: { pattern: "x" } },
          { name: "ls", args: { path: "/" } },
          { name: "read_file", args: { file_path: "/secret/a.md" } },
        ],
      ],
      { permissions: [deny("read", "/secret/**")] },
    );
    await collect(agent, go);
    const [, , ...seen] = await texts(agent);
    expect(seen[0]).toBe("/b.md");
    expect(seen[1]).not.toContain("secret");
    expect(seen[2]).toContain("/b.md");
    expect(seen[3]).toBe("Error: permission denied for read on /secret/a.md");
  });

  it("ask a person where a rule says so, and an edit cannot lead around a rule", async () => {
    const permissions = [
      deny("write", "/never/**"),
      { ...deny("write", "/ask/**"), mode: "interrupt" as const },
    ];
    const { agent } = agentMaking([[write("/ask/a"), write("/ask/b"), write("/c")]], { permissions });
    const open = paused(await collect(agent, go));
    expect(open.map(({ request }) => request.actionRequests[0]?.args["file_path"])).toEqual([
      "/ask/a",
      "/ask/b",
    ]);
    const [first, second] = open;
    const events = await collect(
      agent,
      resumeAgentInput({
        [first?.id ?? ""]: { decisions: [{ type: "approve" }] },
        [second?.id ?? ""]: {
          decisions: [
            {
              type: "edit",
              editedAction: { name: "write_file", args: { file_path: "/never/b", content: "x" } },
            },
          ],
        },
      }),
    );
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(agent.checkCall("write_file", { file_path: "/never/b", content: "x" })).toEqual({
      ok: false,
      message: "permission denied for write on /never/b",
    });
    expect(Object.keys((await agent.snapshot("t1")).files).sort()).toEqual(["/ask/a", "/c"]);
    expect((await texts(agent))[1]).toContain("permission denied for write on /never/b");
  });

  it("of a subagent add to the agent's", async () => {
    const task = { name: "task", args: { description: "d", subagent_type: "writer" } };
    const writer = {
      name: "writer",
      description: "d",
      systemPrompt: "p",
      permissions: [
        { operations: ["write" as const], paths: ["/main/**"], mode: "allow" as const },
        deny("write", "/sub/**"),
      ],
    };
    const { agent } = agentMaking(
      [[task], [write("/sub/a")]],
      { permissions: [deny("write", "/main/**")], subagents: [writer] },
      [[write("/main/a")], [write("/sub/a")]],
    );
    const events = await collect(agent, go);
    const inner = events.flatMap((event) =>
      event.kind === "tool_finished" && event.agent.length === 1 ? [event.summary] : [],
    );
    expect(inner).toEqual([
      "Error: permission denied for write on /main/a",
      "Error: permission denied for write on /sub/a",
    ]);
    expect((await texts(agent))[1]).toBe("Successfully wrote to '/sub/a'");
  });

  it("must name absolute paths", () => {
    expect(() => createDeepAgent({ permissions: [deny("read", "docs/**")] })).toThrow(
      "The permission path 'docs/**' is not usable: it must be absolute",
    );
  });
});

/** A workspace with folders and links, as a repository can bring them. */
function workspace(links: Record<string, string>) {
  const root = filesIn();
  for (const folder of ["docs", "private", "open"]) {
    mkdirSync(join(root, folder));
    writeFileSync(join(root, folder, "f.txt"), `${folder} text`);
  }
  for (const [at, target] of Object.entries(links)) symlinkSync(target, join(root, at));
  const disk = new FilesystemBackend({ rootDir: root, virtualMode: true });
  return { root, backend: new CompositeBackend(StateBackend, { "/workspace/": disk }) };
}

const read = (path: string): ScriptedToolCall => ({ name: "read_file", args: { file_path: path } });
const edit = (path: string, text: string): ScriptedToolCall => ({
  name: "edit_file",
  args: { file_path: path, old_string: text, new_string: "changed" },
});
const interrupt = (operation: "read" | "write", ...paths: string[]) => ({
  ...deny(operation, ...paths),
  mode: "interrupt" as const,
});

describe("permissions where links lead to another place", () => {
  it("deny by the place too, without asking anybody", async () => {
    const { root, backend } = workspace({ d: "docs", self: ".", p: "private", "p.txt": "private/f.txt" });
    const calls = [
      write("/workspace/d/new.txt"),
      write("/workspace/self/docs/deep/new.txt"),
      edit("/workspace/d/f.txt", "docs text"),
      read("/workspace/d/f.txt"),
      read("/workspace/p.txt"),
      read("/workspace/self/private/f.txt"),
      edit("/workspace/p.txt", "private text"),
      write("/workspace/p/new.txt"),
      { name: "ls", args: { path: "/workspace/p" } },
      { name: "grep", args: { pattern: "text", path: "/workspace/self" } },
      { name: "glob", args: { pattern: "**/*", path: "/workspace" } },
      { name: "delete", args: { file_path: "/workspace/d/f.txt" } },
      { name: "delete", args: { file_path: "/workspace/self/docs" } },
      write("/workspace/open/new.txt"),
    ];
    const { agent } = agentMaking([calls], {
      backend,
      permissions: [deny("write", "/workspace/docs/**"), deny("read", "/workspace/private/**")],
    });
    const events = await collect(agent, go);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(await texts(agent)).toEqual([
      "Error: permission denied for write on /workspace/d/new.txt",
      "Error: permission denied for write on /workspace/self/docs/deep/new.txt",
      "Error: permission denied for write on /workspace/d/f.txt",
      "1\tdocs text",
      "Error: File '/workspace/p.txt' not found",
      "Error: File '/workspace/self/private/f.txt' not found",
      "Error: File '/workspace/p.txt' not found",
      "Error: Permission denied: /workspace/p/new.txt",
      "No files found in /workspace/p",
      expect.not.stringContaining("private"),
      "/workspace/docs/f.txt\n/workspace/open/f.txt",
      "Error: permission denied for write on /workspace/d/f.txt",
      "Error: Deletes are not allowed under /workspace/self/docs",
      "Successfully wrote to '/workspace/open/new.txt'",
    ]);
    expect(readdirSync(join(root, "docs"))).toEqual(["f.txt"]);
    expect(readFileSync(join(root, "docs/f.txt"), "utf8")).toBe("docs text");
    expect(readFileSync(join(root, "private/f.txt"), "utf8")).toBe("private text");
  });

  it("ask a person because of the place, and say which place it is", async () => {
    const { root, backend } = workspace({ d: "docs", "p.txt": "private/f.txt" });
    const calls = [
      read("/workspace/p.txt"),
      { name: "grep", args: { pattern: "text", path: "/workspace/d" } },
      write("/workspace/d/new.txt"),
      edit("/workspace/d/f.txt", "docs text"),
      read("/workspace/open/f.txt"),
    ];
    const { agent } = agentMaking([calls], {
      backend,
      permissions: [
        interrupt("read", "/workspace/private/**", "/workspace/docs"),
        interrupt("write", "/workspace/docs/**"),
      ],
    });
    const open = paused(await collect(agent, go));
    const summaries = open.map(({ request }) => request.actionRequests[0]?.preview?.summary);
    expect(summaries.sort()).toEqual([
      expect.stringContaining("/workspace/docs/new.txt"),
      expect.stringContaining("/workspace/docs/f.txt"),
      expect.stringContaining("/workspace/d, which leads to /workspace/docs"),
      expect.stringContaining("/workspace/p.txt, which leads to /workspace/private/f.txt"),
    ]);
    const answers = open.map(({ id }) => [id, { decisions: [{ type: "approve" as const }] }]);
    await collect(agent, resumeAgentInput(Object.fromEntries(answers) as never)); // pairs of ids and answers
    expect((await texts(agent))[0]).toContain("private text");
    expect(readFileSync(join(root, "docs/f.txt"), "utf8")).toBe("changed");
    expect(readFileSync(join(root, "docs/new.txt"), "utf8")).toBe("x");
  });

  it("leave lines out of a search that nobody was asked about", async () => {
    const { backend } = workspace({ p: "private", "p.txt": "private/f.txt", self: "." });
    const search = (path: string) => ({ name: "grep", args: { pattern: "text", path } });
    const { agent } = agentMaking(
      [[search("/workspace"), search("/workspace/self"), search("/workspace/p")]],
      {
        backend,
        permissions: [interrupt("read", "/workspace/private/**")],
      },
    );
    const [asked, ...others] = paused(await collect(agent, go));
    expect(others).toEqual([]);
    expect(asked?.request.actionRequests[0]?.args).toMatchObject({ path: "/workspace/p" });
    const approve = { decisions: [{ type: "approve" as const }] };
    await collect(agent, resumeAgentInput({ [asked?.id ?? ""]: approve }));
    const [above, around, inside] = await texts(agent);
    for (const text of [above, around]) {
      expect(text).toContain("open text");
      expect(text).not.toContain("private text");
      expect(text).toContain("[not searched: files that need a person's approval to be read.");
    }
    expect(inside).toContain("private text");
  });

  it("ask again when a link was turned after the question", async () => {
    const { root, backend } = workspace({ "p.txt": "private/f.txt" });
    const { agent } = agentMaking([[read("/workspace/p.txt")]], {
      backend,
      permissions: [interrupt("read", "/workspace/private/**", "/workspace/docs/**")],
    });
    const [asked] = paused(await collect(agent, go));
    rmSync(join(root, "p.txt"));
    symlinkSync("docs/f.txt", join(root, "p.txt"));
    const approve = { decisions: [{ type: "approve" as const }] };
    const [again] = paused(await collect(agent, resumeAgentInput({ [asked?.id ?? ""]: approve })));
    expect(again?.id).not.toBe(asked?.id);
    expect(again?.request.actionRequests[0]?.preview?.summary).toContain("leads to /workspace/docs/f.txt");
    await collect(agent, resumeAgentInput({ [again?.id ?? ""]: approve }));
    expect((await texts(agent))[0]).toContain("docs text");
  });

  it("of a subagent hold for the place as well", async () => {
    const { root, backend } = workspace({ d: "docs", p: "private" });
    const task = { name: "task", args: { description: "d", subagent_type: "writer" } };
    const writer = {
      name: "writer",
      description: "d",
      systemPrompt: "p",
      permissions: [deny("write", "/workspace/docs/**"), deny("read", "/workspace/private/**")],
    };
    const { agent } = agentMaking(
      [[task], [write("/workspace/d/main.txt")]],
      { backend, subagents: [writer] },
      [[write("/workspace/d/sub.txt"), read("/workspace/p/f.txt")]],
    );
    const events = await collect(agent, go);
    const inner = events.flatMap((event) =>
      event.kind === "tool_finished" && event.agent.length === 1 ? [event.summary] : [],
    );
    expect(inner.sort()).toEqual([
      "Error: File '/workspace/p/f.txt' not found",
      "Error: permission denied for write on /workspace/d/sub.txt",
    ]);
    expect(readdirSync(join(root, "docs")).sort()).toEqual(["f.txt", "main.txt"]);
  });

  it("hold for the target of a link that a rule names, and for other spellings", async () => {
    const { root, backend } = workspace({ manual: "docs" });
    const calls = [
      write("/workspace/docs/new.txt"),
      write("/workspace/PRIVATE/new.txt"),
      write("/workspace/\u017fecret/new.txt"),
      write("/workspace/open/new.txt"),
    ];
    const { agent } = agentMaking([calls], {
      backend,
      permissions: [deny("write", "/workspace/manual/**", "/workspace/private/**", "/workspace/secret/**")],
    });
    await collect(agent, go);
    expect(await texts(agent)).toEqual([
      "Error: permission denied for write on /workspace/docs/new.txt",
      "Error: permission denied for write on /workspace/PRIVATE/new.txt",
      "Error: permission denied for write on /workspace/\u017fecret/new.txt",
      "Successfully wrote to '/workspace/open/new.txt'",
    ]);
    expect(readdirSync(root).sort()).toEqual(["docs", "manual", "open", "private"]);
  });
});

it("changes of a read-only part of the tree are refused without asking anybody", async () => {
  const { root } = workspace({});
  const disk = new FilesystemBackend({ rootDir: root, virtualMode: true });
  const backend = new CompositeBackend(StateBackend, {
    "/workspace/": new PolicyBackend(disk, { denyPrefixes: ["/docs"] }),
    "/frozen/": new PolicyBackend(StateBackend, { readOnly: true }),
  });
  const refused = [
    write("/workspace/docs/new.txt"),
    edit("/workspace/DOCS/f.txt", "docs text"),
    { name: "delete", args: { file_path: "/workspace/docs/f.txt" } },
    write("/frozen/new.txt"),
  ];
  const { agent } = agentMaking([[...refused, write("/workspace/open/new.txt")]], {
    backend,
    interruptOn: { write_file: true, edit_file: true, delete: true },
  });
  const open = paused(await collect(agent, go));
  expect(open.map(({ request }) => request.actionRequests[0]?.args["file_path"])).toEqual([
    "/workspace/open/new.txt",
  ]);
});
