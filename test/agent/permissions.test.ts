import { ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../src/agent/agent.ts";
import { createDeepAgent } from "../../src/agent/definition/create-deep-agent.ts";
import { collect, paused, toolMessages, resumeAgentInput } from "../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";

const write = (path: string): ScriptedToolCall => ({
  name: "write_file",
  args: { file_path: path, content: "x" },
});
const go = { kind: "task", task: "go" } as const;
const deny = (operation: "read" | "write", ...paths: string[]) => ({ operations: [operation], paths });

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
