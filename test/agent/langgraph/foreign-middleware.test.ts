import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver } from "@langchain/langgraph";
import { createMiddleware, type ToolRuntime } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { collect, graphOf } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

describe("middleware made with LangChain", () => {
  it("may answer a model call with a command: its update joins the reply, and it may end the run", async () => {
    const commander = createMiddleware({
      name: "Commander",
      stateSchema: z.object({ calls: z.number().default(0) }),
      wrapModelCall: async (request, handler) => {
        await handler(request);
        const calls = request.state.calls + 1;
        if (calls < 2) return new Command({ update: { calls } });
        return new Command({
          update: { calls, messages: [new AIMessage({ id: "x", content: "closing" })] },
          goto: "__end__",
        });
      },
    });
    const model = scriptedModel(() => ({ toolCalls: [{ name: "ls", args: {} }] }));
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, middleware: [commander] });
    expect((await collect(agent, { kind: "task", task: "go" })).at(-1)).toMatchObject({ answer: "closing" });
    expect(model.requests).toHaveLength(2);
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    expect(values).toHaveProperty("calls", 2);
  });

  it("reads the run's context by its own schema, defaults included", async () => {
    const seen: unknown[] = [];
    const reader = createMiddleware({
      name: "Reader",
      contextSchema: z.object({ user: z.string(), tone: z.string().default("plain") }),
      beforeModel: (_state, runtime) => void seen.push({ ...runtime.context }),
      wrapModelCall: (request, handler) => {
        seen.push(request.runtime.context);
        return handler(request);
      },
    });
    const agent = createDeepAgent({ model: scriptedModel(() => ({ text: "end" })), middleware: [reader] });
    await agent.invoke({ messages: [new HumanMessage("go")] }, { context: { user: "jane" } });
    expect(seen).toEqual([
      { user: "jane", tone: "plain" },
      { user: "jane", tone: "plain" },
    ]);
    await expect(agent.invoke({ messages: [new HumanMessage("go")] }, { context: {} })).rejects.toThrow(
      "The context of this run does not fit middleware Reader",
    );
  });
});

it("a run's context is checked, and reaches tools, backend factories and subagents", async () => {
  const seen: unknown[] = [];
  const whoami = tool(
    (_args, runtime: ToolRuntime<unknown, { user: string }>) =>
      `user ${runtime.context.user} in ${runtime.toolCallId}`,
    {
      name: "whoami",
      description: "tells the user",
      schema: z.object({}),
    },
  );
  const agent = createDeepAgent({
    contextSchema: z.object({ user: z.string() }),
    model: scriptedModel(({ tools, messages }) => {
      if (messages.some((message) => ToolMessage.isInstance(message)))
        return { text: messages.at(-1)?.text ?? "" };
      if (!tools.includes("task")) return { toolCalls: [{ id: "inner", name: "whoami", args: {} }] };
      return {
        toolCalls: [{ name: "task", args: { description: "d", subagent_type: "general-purpose" } }],
      };
    }),
    tools: [whoami],
    backend: (runtime) => {
      seen.push(runtime.context);
      return new StateBackend(runtime);
    },
  });
  const { messages } = await agent.invoke(
    { messages: [new HumanMessage("go")] },
    { context: { user: "jane" } },
  );
  expect(messages?.at(-1)?.text).toBe("user jane in inner");
  expect(new Set(seen.map((context) => JSON.stringify(context)))).toEqual(new Set(['{"user":"jane"}']));
  await expect(
    agent.invoke({ messages: [new HumanMessage("go")] }, { context: { user: 7 } as never }),
  ).rejects.toThrow(/user/);
});
