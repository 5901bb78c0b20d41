import { HumanMessage } from "@langchain/core/messages";
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { LangChainTracer } from "@langchain/core/tracers/tracer_langchain";
import { MemorySaver } from "@langchain/langgraph";
import { SystemMessage, todoListMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { createDeepAgent } from "../../src/agent/create-deep-agent.ts";
import type { DeepAgentParams } from "../../src/agent/params.ts";
import { BASE_PROMPT } from "../../src/agent/prompts.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const go = { messages: [new HumanMessage("go")] };

type TracingClient = NonNullable<NonNullable<ConstructorParameters<typeof LangChainTracer>[0]>["client"]>;

/** What the model is told first. */
async function systemOf(params: DeepAgentParams): Promise<string> {
  const model = scriptedModel(() => ({ text: "end" }));
  await createDeepAgent({ ...params, model }).invoke(go);
  return model.requests[0]?.messages[0]?.text ?? "";
}

describe("a program written for deepagents", () => {
  it("puts LangChain's planning in the place of the built-in one", async () => {
    const todos = [{ content: "one", status: "in_progress" as const }];
    const model = scriptedModel(({ call }) =>
      call === 0 ? { toolCalls: [{ name: "write_todos", args: { todos } }] } : { text: "end" },
    );
    const agent = createDeepAgent({
      model,
      middleware: [todoListMiddleware({ systemPrompt: "Plan ahead." })],
    });
    expect((await agent.invoke(go)).todos).toEqual(todos);
    expect(model.requests[0]?.messages[0]?.text).toContain("Plan ahead.");
    expect(model.requests[0]?.messages[0]?.text).not.toContain("## Planning");
  });

  it("says what stands where in the system prompt", async () => {
    expect(await systemOf({ systemPrompt: { prefix: "First.", suffix: "Last." } })).toContain(
      `First.\n\n${BASE_PROMPT}\n\nLast.`,
    );
    const own = await systemOf({ systemPrompt: { base: new SystemMessage("Mine."), suffix: "Last." } });
    expect(own).toMatch(/^Mine\.\n\nLast\.\n\n## Planning/);
    const none = await systemOf({ systemPrompt: { prefix: null, base: null } });
    expect(none).toMatch(/^## Planning/);
    const misspelt = { sufix: "x" } as object;
    expect(() => createDeepAgent({ systemPrompt: misspelt })).toThrow(
      "`systemPrompt` has no part 'sufix'; its parts are prefix, base, suffix.",
    );
  });

  it("tells words of the model from results of tools by the names of nodes", async () => {
    const model = scriptedModel(({ call }) =>
      call === 0 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "end" },
    );
    const agent = createDeepAgent({ model });
    const updates: string[] = [];
    for await (const update of await agent.stream(go, { streamMode: "updates" }))
      updates.push(...Object.keys(update));
    expect(updates).toEqual(["model_request", "tools", "model_request"]);
    const nodes = new Set<unknown>();
    for await (const [, metadata] of await createDeepAgent({
      model: scriptedModel(() => ({ text: "end" })),
    }).stream(go, { streamMode: "messages" })) {
      nodes.add(metadata["langgraph_node"]);
    }
    expect([...nodes]).toEqual(["model_request"]);
  });

  it("goes on with threads that were stored when the model's node had another name", async () => {
    const checkpointer = new MemorySaver();
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = createDeepAgent({ model, checkpointer });
    const config = { configurable: { thread_id: "t" } };
    await agent.invoke(go, { ...config, interruptBefore: ["model_request"] });
    expect(model.requests).toHaveLength(0);
    const { storage } = checkpointer;
    for (const checkpoints of Object.values(storage["t"] ?? {})) {
      for (const saved of Object.values(checkpoints)) {
        const text = new TextDecoder().decode(saved[0]).replaceAll("model_request", "model");
        saved[0] = new TextEncoder().encode(text);
      }
    }
    const { messages } = await agent.invoke(null, config);
    expect(messages.map(({ text }) => text)).toEqual(["go", "end"]);
    expect((await agent.getState(config)).next).toEqual([]);
  });

  it("finds in LangSmith which agent is the root and which are subagents", async () => {
    const told: unknown[] = [];
    const seen = BaseCallbackHandler.fromMethods({
      handleChainStart: (_chain, _inputs, _run, _parent, _tags, metadata) =>
        void told.push(metadata?.["ls_agent_type"]),
    });
    const posted: Array<{ name: string; type: unknown }> = [];
    const client: TracingClient = {
      createRun: async ({ name, extra }) => {
        posted.push({
          name,
          type: (extra as { metadata?: Record<string, unknown> }).metadata?.["ls_agent_type"],
        });
      },
      updateRun: async () => undefined,
    };
    const model = scriptedModel(({ messages }) => {
      if (messages.some(({ text, type }) => type === "human" && text === "look")) return { text: "seen" };
      if (messages.some(({ type }) => type === "tool")) return { text: "end" };
      return {
        toolCalls: [{ name: "task", args: { subagent_type: "general-purpose", description: "look" } }],
      };
    });
    const tracer = new LangChainTracer({ client });
    await createDeepAgent({ model, name: "main" }).invoke(go, { callbacks: [tracer, seen] });
    await expect.poll(() => posted.find(({ name }) => name === "general-purpose")?.type).toBe("subagent");
    expect(posted.find(({ name }) => name === "main")?.type).toBe("root");
    expect(told.filter((type) => type !== undefined)).toEqual([]);
  });
});
