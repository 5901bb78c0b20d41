import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { createLogger } from "../../src/core/logger.ts";
import { callingOnce, scriptedModel } from "../support/scripted-model.ts";

describe("an agent", () => {
  it("can be drawn, with its model, its tools and the gate before them", async () => {
    const gated = createDeepAgent({ name: "helper", interruptOn: { write_file: true } });
    const drawing = (await gated.getGraphAsync()).drawMermaid();
    for (const part of [
      "model_request(",
      "approval(",
      "tools(",
      "approval --> tools",
      "tools --> model_request",
    ]) {
      expect(drawing).toContain(part);
    }
    expect(gated.getGraph().drawMermaid()).toBe(drawing);
    expect(drawing).toMatch(/model_request -\.->\s*approval|model_request -\. .*\.-> approval/);
    expect((await createDeepAgent().getGraphAsync()).drawMermaid()).not.toContain("approval");
  });

  it("shows every message once in stream mode `messages`, with the id it has in the thread", async () => {
    const model = scriptedModel(({ messages }) => {
      if (messages.some(({ text }) => text === "look")) return { text: "seen" };
      if (messages.some(({ type }) => type === "tool")) return { toolCalls: [{ name: "ls", args: {} }] };
      const delegate = { name: "task", args: { subagent_type: "general-purpose", description: "look" } };
      return {
        text: "first",
        toolCalls: [{ name: "ls", args: {} }, delegate, { name: "nothing", args: {} }],
      };
    });
    const checkpointer = new MemorySaver();
    const agent = createDeepAgent({ model, checkpointer, limits: { maxIterations: 2 } });
    const config = { configurable: { thread_id: "t" } };
    const input = { messages: [new HumanMessage("go")] };
    const shown = new Map<string, string>();
    let results = 0;
    // LangGraph 1.7 shows the messages of subagents only with `subgraphs`.
    const options = { ...config, streamMode: "messages" as const, subgraphs: true as const };
    for await (const [, [message]] of await agent.stream(input, options)) {
      const { id = "", text } = message;
      if (ToolMessage.isInstance(message)) results += 1;
      shown.set(id, (shown.get(id) ?? "") + text);
    }
    const { values } = await agent.getState(config);
    const thread = (values.messages as BaseMessage[]).slice(1);
    expect(thread.map(({ id = "" }) => shown.get(id))).toEqual(thread.map(({ text }) => text));
    expect(thread.at(-1)?.text).toContain("the limit of 2 model calls");
    expect([results, shown.size]).toEqual([4, thread.length + 1]);
  });

  it("with `debug` logs each model call and each tool call", async () => {
    const lines: string[] = [];
    const agent = createDeepAgent({
      debug: true,
      log: createLogger("debug", (line) => void lines.push(line)),
      model: callingOnce({ id: "a", name: "ls", args: { path: "/" } }),
    });
    await agent.invoke({ messages: [new HumanMessage("go")] });
    const logged = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(logged).toMatchObject([
      { level: "debug", event: "model_call", agent: "", calls: ["ls"] },
      { event: "tool_call", callId: "a", call: "ls /", status: "success" },
      { event: "model_call", calls: [] },
    ]);
  });

  it("and its subagents are told apart in traces by their names", async () => {
    const names: unknown[] = [];
    const whoami = tool(
      (_args, config: RunnableConfig) => void names.push(config.metadata?.["lc_agent_name"]),
      {
        name: "whoami",
        description: "w",
        schema: z.object({}),
      },
    );
    const task = { name: "task", args: { subagent_type: "general-purpose", description: "d" } };
    const agent = createDeepAgent({
      name: "helper",
      tools: [whoami],
      model: scriptedModel(({ call }) =>
        call < 2
          ? { toolCalls: [{ name: "whoami", args: {} }, ...(call === 0 ? [task] : [])] }
          : { text: "end" },
      ),
    });
    await agent.invoke({ messages: [new HumanMessage("go")] });
    expect(names).toEqual(["helper", "general-purpose"]);
  });
});
