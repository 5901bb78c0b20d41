import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, MemorySaver } from "@langchain/langgraph";
import { createMiddleware, toolRetryMiddleware } from "langchain";
import { tool } from "@langchain/core/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import type { AgentMiddleware, Middleware } from "../../../src/agent/contracts/middleware.ts";
import { collect, toolMessages, graphOf } from "../../support/run-agent.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";

const tracing = (name: string, trace: string[]): Middleware => ({
  name,
  beforeAgent: () => void trace.push(`${name} beforeAgent`),
  beforeModel: () => void trace.push(`${name} beforeModel`),
  wrapModelCall: async (request, next) => {
    trace.push(`${name} call`);
    const reply = await next(request);
    trace.push(`${name} reply`);
    return reply;
  },
  wrapToolCall: async (request, next) => {
    trace.push(`${name} tool`);
    return next(request);
  },
  afterModel: () => void trace.push(`${name} afterModel`),
  afterAgent: () => void trace.push(`${name} afterAgent`),
});

const agentWith = (middleware: AgentMiddleware[], params: DeepAgentParams = {}) =>
  buildAgent({
    checkpointer: new MemorySaver(),
    model: callingOnce({ name: "ls", args: {} }),
    middleware,
    ...params,
  });

describe("middleware", () => {
  it("runs before-hooks first to last, after-hooks last to first, and nests wrappers", async () => {
    const trace: string[] = [];
    await collect(agentWith([tracing("a", trace), tracing("b", trace)]), { kind: "task", task: "go" });
    const turn = [
      "a beforeModel",
      "b beforeModel",
      "a call",
      "b call",
      "b reply",
      "a reply",
      "b afterModel",
      "a afterModel",
    ];
    expect(trace).toEqual([
      "a beforeAgent",
      "b beforeAgent",
      ...turn,
      "a tool",
      "b tool",
      ...turn,
      "b afterAgent",
      "a afterAgent",
    ]);
  });

  it("knows the thread and the run, in subagents too", async () => {
    const told: unknown[] = [];
    const asking: Middleware = {
      name: "Asking",
      beforeAgent: (_state, { threadId, runId }) => void told.push([threadId, runId]),
    };
    const model = callingOnce({ name: "task", args: { description: "d", subagent_type: "w" } });
    const worker = { name: "w", description: "d", systemPrompt: "p", middleware: [asking] };
    await collect(agentWith([asking], { model, subagents: [worker] }), { kind: "task", task: "go" });
    expect(told).toEqual([
      ["t1", "run_1"],
      ["t1", "run_1"],
    ]);
  });

  it("made with LangChain plugs in: state schema, object hooks and jumps", async () => {
    const counting = createMiddleware({
      name: "Counting",
      stateSchema: z.object({ modelCalls: z.number().default(0) }),
      beforeModel: {
        canJumpTo: ["end"],
        hook: (state) =>
          state.modelCalls >= 1
            ? { jumpTo: "end", messages: [new AIMessage("stopped by the counter")] }
            : { modelCalls: state.modelCalls + 1 },
      },
    });
    const events = await collect(agentWith([counting]), { kind: "task", task: "go" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "stopped by the counter" });
  });

  it("may state its channels as an annotation, and not as just anything", async () => {
    const annotated: Middleware = {
      name: "Annotated",
      stateSchema: Annotation.Root({
        seen: Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 }),
      }),
      beforeModel: () => ({ seen: 1 }),
    };
    const agent = agentWith([annotated]);
    await collect(agent, { kind: "task", task: "go" });
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(values).toHaveProperty("seen", 2);
    expect(() => agentWith([{ name: "Wrong", stateSchema: { seen: 0 } }])).toThrow(
      "The state schema of Wrong must be",
    );
  });

  it("of LangChain that retries tools works on ours", async () => {
    let attempts = 0;
    const flaky = tool(
      () => {
        attempts += 1;
        if (attempts < 3) throw new Error("not yet");
        return "at last";
      },
      { name: "ls_remote", description: "flaky", schema: z.object({}) },
    );
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model: callingOnce({ name: "ls_remote", args: {} }),
      tools: [flaky],
      middleware: [
        toolRetryMiddleware({ maxRetries: 3, initialDelayMs: 1, backoffFactor: 1, jitter: false }),
      ],
    });
    await collect(agent, { kind: "task", task: "go" });
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["at last"]);
  });

  it("may change messages, tools and the system prompt of one request only", async () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const changer: Middleware = {
      name: "Changer",
      wrapModelCall: (request, next) =>
        next({
          ...request,
          systemPrompt: "short",
          messages: [new HumanMessage("other")],
          tools: request.tools.filter(({ name }) => name === "ls"),
        }),
    };
    const agent = agentWith([changer], { model });
    await collect(agent, { kind: "task", task: "go" });
    expect(model.requests[0]?.messages.map(({ text }) => text)).toEqual(["short", "other"]);
    expect(model.requests[0]?.tools).toEqual(["ls"]);
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(values["messages"]?.map(({ text }: { text: string }) => text)).toEqual(["go", "end"]);
  });

  it("with the name of a default one takes its place", async () => {
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = agentWith([{ name: "TodoListMiddleware" }], { model });
    await collect(agent, { kind: "task", task: "go" });
    expect(model.requests[0]?.tools).not.toContain("write_todos");
  });

  it("names must differ, and so must tool names", () => {
    expect(() => agentWith([{ name: "x" }, { name: "x" }])).toThrow("Two middleware are named 'x'");
    const ls = tool(() => "", { name: "ls", description: "mine", schema: z.object({}) });
    expect(() => agentWith([], { tools: [ls] })).toThrow("Two tools are named 'ls'");
    const dotted = tool(() => "", { name: "files.ls", description: "mine", schema: z.object({}) });
    expect(() => agentWith([], { tools: [dotted] })).toThrow("'files.ls' cannot be the name of a tool");
    const worker = { name: "w", description: "d", systemPrompt: "p" };
    expect(() => agentWith([], { subagents: [{ ...worker, tools: [ls] }] })).toThrow(
      "Two tools are named 'ls'",
    );
    expect(() => agentWith([], { subagents: [worker, worker] })).toThrow("Two subagents are named 'w'");
  });
});
