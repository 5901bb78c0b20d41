import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import type { Decision } from "../../../src/tools/request.ts";
import type { Middleware } from "../../../src/agent/contracts/middleware.ts";
import { collect, graphOf, paused, toolMessages, resumeAgentInput } from "../../support/run-agent.ts";
import { callingOnce, type ScriptedToolCall } from "../../support/scripted-model.ts";

/** An agent whose first reply makes these calls, and whose second ends. */
function agentCalling(toolCalls: ScriptedToolCall[], params: DeepAgentParams = {}) {
  const model = callingOnce(...toolCalls);
  return { model, agent: buildAgent({ checkpointer: new MemorySaver(), model, ...params }) };
}

const texts = async (agent: Parameters<typeof toolMessages>[0]) =>
  (await toolMessages(agent)).map(({ text, status }) => ({ text, status }));

describe("a tool call", () => {
  it("with an unknown name or bad arguments is answered, and its siblings run", async () => {
    const { agent } = agentCalling([
      { name: "launch", args: {} },
      { name: "read_file", args: { file_path: ["/a", "/b"] } },
      { name: "ls", args: {} },
    ]);
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const [unknown, invalid, listed] = await texts(agent);
    expect(unknown?.text).toMatch(/^Error: launch is not a valid tool, try one of \[write_todos, ls, /);
    expect(invalid?.text).toMatch(/^Error: .*file_path/);
    expect(listed).toEqual({ text: "No files found in /", status: "success" });
  });

  it("that throws becomes an error result without a stack", async () => {
    const broken = tool(
      () => {
        throw new Error("disk on fire");
      },
      { name: "broken", description: "breaks", schema: z.object({}) },
    );
    const { agent } = agentCalling([{ name: "broken", args: {} }], { tools: [broken] });
    await collect(agent, { kind: "task", task: "go" });
    expect(await texts(agent)).toEqual([{ text: "Error: disk on fire", status: "error" }]);
  });

  it("may be a LangChain tool that returns a value or a command", async () => {
    const add = tool(({ a, b }) => a + b, {
      name: "add",
      description: "adds",
      schema: z.object({ a: z.number(), b: z.number() }),
    });
    const note = tool(
      (_args, config) =>
        new Command({
          update: {
            files: {
              "/note.md": { content: "noted", mimeType: "text/markdown", created_at: "", modified_at: "" },
            },
            messages: [{ role: "tool", content: "ok", tool_call_id: config.toolCall.id }],
          },
        }),
      { name: "note", description: "notes", schema: z.object({}) },
    );
    const { agent } = agentCalling(
      [
        { name: "add", args: { a: 2, b: 3 } },
        { name: "note", args: {} },
      ],
      { tools: [add, note] },
    );
    await collect(agent, { kind: "task", task: "go" });
    expect((await texts(agent)).map(({ text }) => text)).toEqual(["5", "ok"]);
    expect(Object.keys((await agent.snapshot("t1")).files)).toEqual(["/note.md"]);
  });

  it("sees what a finished call of an earlier step wrote, and two calls of one step do not mix", async () => {
    const { agent } = agentCalling([
      { name: "write_file", args: { file_path: "/a.md", content: "a" } },
      { name: "write_file", args: { file_path: "/a.md", content: "b" } },
    ]);
    await collect(agent, { kind: "task", task: "go" });
    const results = await texts(agent);
    expect(results.map(({ status }) => status).sort()).toEqual(["error", "success"]);
    expect(Object.keys((await agent.snapshot("t1")).files)).toEqual(["/a.md"]);
  });

  it("of write_todos twice in one reply changes nothing", async () => {
    const todos = [{ content: "x", status: "pending" }];
    const { agent } = agentCalling([
      { name: "write_todos", args: { todos } },
      { name: "write_todos", args: { todos } },
    ]);
    await collect(agent, { kind: "task", task: "go" });
    const refused =
      "Error: The write_todos tool must be called at most once per reply; the list was not changed.";
    expect((await texts(agent)).map(({ text }) => text)).toEqual([refused, refused]);
    expect((await agent.snapshot("t1")).todos).toEqual([]);
  });

  it("with a large result leaves a preview and a file to page through", async () => {
    const line = "x".repeat(99);
    const long = tool(() => Array.from({ length: 1000 }, (_, i) => `${i} ${line}`).join("\n"), {
      name: "long",
      description: "is long",
      schema: z.object({}),
    });
    const { agent } = agentCalling([{ id: "c1", name: "long", args: {} }], { tools: [long] });
    await collect(agent, { kind: "task", task: "go" });
    const [result] = await texts(agent);
    const [path] = Object.keys((await agent.snapshot("t1")).files);
    expect(path).toMatch(/^\/large_tool_results\/c1$/);
    expect(result?.text).toContain(`It is saved in ${path}.`);
    expect(result?.text).toContain("9 xxx");
    expect(result?.text).not.toContain("10 xxx");
  });
});

describe("an approval", () => {
  const changer: Middleware = {
    name: "Changer",
    wrapToolCall: (request, next) =>
      next({ ...request, toolCall: { ...request.toolCall, args: { file_path: "/w.md", content: "other" } } }),
  };
  const call = { id: "call_w", name: "write_file", args: { file_path: "/w.md", content: "one" } };

  async function decide(decision: Decision, params: DeepAgentParams = {}) {
    const { agent, model } = agentCalling([call], { interruptOn: { write_file: true }, ...params });
    const [open] = paused(await collect(agent, { kind: "task", task: "go" }));
    const events = await collect(agent, resumeAgentInput({ [open?.id ?? ""]: { decisions: [decision] } }));
    return { agent, model, open, events };
  }

  it("shows the exact call with a diff", async () => {
    const { open } = await decide({ type: "approve" });
    expect(open?.request.actionRequests[0]).toMatchObject({
      name: "write_file",
      args: call.args,
      toolCallId: "call_w",
    });
    expect(open?.request.actionRequests[0]?.preview?.kind).toBe("diff");
    expect(open?.request.actionRequests[0]?.preview?.detail).toContain("+one");
  });

  it("edited runs the edited call, and the history shows it", async () => {
    const { agent, events } = await decide({
      type: "edit",
      editedAction: { name: "write_file", args: { file_path: "/w.md", content: "two" } },
    });
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    const { files } = await agent.snapshot("t1");
    expect(files["/w.md"]?.content).toBe("two");
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    const calls = ((values["messages"] ?? []) as BaseMessage[]).flatMap((one) =>
      AIMessage.isInstance(one) ? (one.tool_calls ?? []) : [],
    );
    expect(calls).toEqual([
      expect.objectContaining({ id: "call_w", args: { file_path: "/w.md", content: "two" } }),
    ]);
    const [message] = await toolMessages(agent);
    expect(message?.text).not.toContain("person");
    expect(message?.tool_call_id).toBe("call_w");
  });

  it("rejected does not run, and the reason reaches the model", async () => {
    const { agent } = await decide({ type: "reject", message: "not there" });
    expect(await texts(agent)).toEqual([{ text: "not there", status: "error" }]);
    expect((await agent.snapshot("t1")).files).toEqual({});
  });

  it("that was given to a call does not count for what a wrapper makes of it, under whatever id it comes", async () => {
    const { agent, events, open } = await decide({ type: "approve" }, { middleware: [changer] });
    const [changed] = paused(events);
    expect(changed?.id).not.toBe(open?.id);
    expect(changed?.request.actionRequests[0]?.args).toEqual({ file_path: "/w.md", content: "other" });
    expect((await agent.snapshot("t1")).files).toEqual({});
    const again = { [open?.id ?? ""]: { decisions: [{ type: "approve" as const }] } };
    expect(paused(await collect(agent, resumeAgentInput(again)))).toEqual([changed]);
    await collect(agent, resumeAgentInput({ [changed?.id ?? ""]: { decisions: [{ type: "reject" }] } }));
    expect((await agent.snapshot("t1")).files).toEqual({});
  });

  it("is not asked for twice about the same, nor about a call that a wrapper changes when it has run", async () => {
    const ran: unknown[] = [];
    const failing = tool(
      (args) => {
        ran.push(args);
        throw new Error("no");
      },
      { name: "failing", description: "f", schema: z.object({ n: z.number() }) },
    );
    const retry: Middleware = {
      name: "Retry",
      wrapToolCall: async (request, next) => {
        const changed = (n: number) => ({ ...request, toolCall: { ...request.toolCall, args: { n } } });
        await next(changed(2)).catch(() => undefined);
        await next(changed(2)).catch(() => undefined);
        return next(changed(3));
      },
    };
    const { agent } = agentCalling([{ id: "f", name: "failing", args: { n: 1 } }], {
      tools: [failing],
      interruptOn: { failing: true },
      middleware: [retry],
    });
    let events = await collect(agent, { kind: "task", task: "go" });
    for (const asked of [1, 2]) {
      const [open] = paused(events);
      expect(open?.request.actionRequests[0]?.args).toEqual({ n: asked });
      events = await collect(
        agent,
        resumeAgentInput({ [open?.id ?? ""]: { decisions: [{ type: "approve" }] } }),
      );
    }
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
    expect(ran).toEqual([{ n: 2 }, { n: 2 }]);
    expect((await texts(agent))[0]?.text).toMatch(/^Error: failing was changed after it had run/);
  });
});
