import { todoListMiddleware } from "langchain";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { type AgentEvent, buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const kinds = (events: AgentEvent[]): string[] => events.map(({ kind }) => kind);

describe("a deep agent", () => {
  it("calls tools, keeps files in the thread and answers", async () => {
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model: scriptedModel(({ call }) =>
        call === 0
          ? { toolCalls: [{ name: "write_file", args: { file_path: "/a.txt", content: "hello" } }] }
          : call === 1
            ? { toolCalls: [{ name: "read_file", args: { file_path: "/a.txt" } }] }
            : { text: "done" },
      ),
    });
    const events = await collect(agent, { kind: "task", task: "write a file" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "done" });
    expect(kinds(events)).toContain("file_changed");
    const state = await agent.snapshot("t1");
    expect(Object.keys(state.files)).toEqual(["/a.txt"]);
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual([
      "Successfully wrote to '/a.txt'",
      "1\thello",
    ]);
  });

  it("runs subagents in parallel, isolated, one report each, files merged", async () => {
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model: scriptedModel(({ messages, tools }) => {
        if (!tools.includes("task")) {
          const task = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
          const wrote = messages.some((message) => ToolMessage.isInstance(message));
          return wrote
            ? { text: `report of ${task}` }
            : { toolCalls: [{ name: "write_file", args: { file_path: `/${task}.md`, content: task } }] };
        }
        const reports = messages.filter((message) => ToolMessage.isInstance(message));
        if (reports.length > 0) return { text: reports.map(({ text }) => text).join("; ") };
        return {
          toolCalls: ["one", "two", "three", "four"].map((description) => ({
            name: "task",
            args: { description, subagent_type: "general-purpose" },
          })),
        };
      }),
    });
    const events = await collect(agent, { kind: "task", task: "delegate" });
    expect(events.at(-1)).toEqual({
      kind: "finished",
      answer: "report of one; report of two; report of three; report of four",
    });
    const started = events.filter(({ kind }) => kind === "subagent_started");
    expect(started).toHaveLength(4);
    const state = await agent.snapshot("t1");
    expect(Object.keys(state.files).sort()).toEqual(["/four.md", "/one.md", "/three.md", "/two.md"]);
  });

  it.each([
    ["as many calls as may work", { parallelTools: 2 }],
    ["as many subagents as may work", { parallelSubagents: 2 }],
  ])("tells which subagents wait because %s do", async (_case, limits) => {
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      limits,
      model: scriptedModel(({ messages, tools }) => {
        if (!tools.includes("task") || messages.some((message) => ToolMessage.isInstance(message))) {
          return { text: "end" };
        }
        return {
          toolCalls: ["one", "two", "three", "four"].map((description) => ({
            name: "task",
            args: { description, subagent_type: "general-purpose" },
          })),
        };
      }),
    });
    const events = await collect(agent, { kind: "task", task: "delegate" });
    const told = events.flatMap((event) =>
      event.kind === "subagent_queued" || event.kind === "subagent_started"
        ? [`${event.kind} ${event.description}`]
        : [],
    );
    expect(told.toSorted()).toEqual([
      "subagent_queued four",
      "subagent_queued three",
      ...["four", "one", "three", "two"].map((task) => `subagent_started ${task}`),
    ]);
    expect(told.indexOf("subagent_queued four")).toBeLessThan(told.indexOf("subagent_started four"));
  });

  it("does not add a task twice when it is handed over again", async () => {
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model: scriptedModel(() => ({ text: "ok" })),
    });
    await collect(agent, { kind: "task", task: "once" });
    const events = await collect(agent, { kind: "task", task: "once" });
    expect(events).toEqual([{ kind: "finished", answer: "ok" }]);
  });
});

it("planning of one's own in the place of the built-in one needs `todos: false`, and the error says so", () => {
  const tools = todoListMiddleware().tools;
  expect(() => createDeepAgent({ tools })).toThrow("leave the built-in one out with `todos: false`");
  expect(() => createDeepAgent({ tools, todos: false })).not.toThrow();
});
