import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { BaseCache, InMemoryCache } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { collect, paused, graphOf, resumeAgentInput } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

class BrokenCache extends BaseCache {
  override get = async (): Promise<never> => Promise.reject(new Error("no cache today"));
  override set = async (): Promise<never> => Promise.reject(new Error("no cache today"));
  override clear = async (): Promise<void> => undefined;
}

function setup(params: DeepAgentParams = {}) {
  let ran = 0;
  const count = tool(() => `ran ${(ran += 1) > 0}`, {
    name: "count",
    description: "c",
    schema: z.object({}),
  });
  const model = scriptedModel(({ messages }) =>
    messages.some(({ type }) => type === "tool")
      ? { text: "end" }
      : { toolCalls: [{ id: "c", name: "count", args: {} }] },
  );
  const cache = new InMemoryCache();
  const agent = (more: DeepAgentParams = {}) =>
    buildAgent({ checkpointer: new MemorySaver(), model, tools: [count], cache, ...params, ...more });
  return { agent, model, runs: () => ran };
}

describe("a cache", () => {
  it("answers requests that were made before, in other threads and agents too, and runs calls anew", async () => {
    const { agent, model, runs } = setup();
    const first = agent();
    await collect(first, { kind: "task", task: "go" });
    const again = await collect(first, { kind: "task", task: "go" }, { threadId: "t2", runId: "run_2" });
    const other = await collect(agent(), { kind: "task", task: "go" }, { runId: "run_3" });
    expect([again.at(-1), other.at(-1)]).toMatchObject([{ answer: "end" }, { answer: "end" }]);
    expect([model.requests.length, runs()]).toEqual([2, 3]);
    const used = (events: typeof again) =>
      events.flatMap((event) => (event.kind === "model_called" ? [event.usage.inputTokens] : []));
    expect(used(again)).toEqual([0, 0]);
    const ids = await Promise.all(
      ["t1", "t2"].map(async (thread_id) => {
        const { values } = await graphOf(first).getState({ configurable: { thread_id } });
        return (values["messages"] as BaseMessage[]).find((message) => AIMessage.isInstance(message))?.id;
      }),
    );
    expect(new Set(ids).size).toBe(2);
  });

  it.each<[string, DeepAgentParams, string]>([
    ["message", {}, "stop"],
    ["system prompt", { systemPrompt: "Be brief." }, "go"],
    ["set of tools", { todos: false }, "go"],
  ])("does not answer a request with another %s", async (_other, params, task) => {
    const { agent, model } = setup();
    await collect(agent(), { kind: "task", task: "go" });
    await collect(agent(params), { kind: "task", task }, { threadId: "t2", runId: "run_2" });
    expect(model.requests).toHaveLength(4);
  });

  it("approves nothing: a gated call is asked about each time", async () => {
    const { agent, runs } = setup({ interruptOn: { count: true } });
    for (const threadId of ["t1", "t2"]) {
      const own = agent();
      const at = { threadId, runId: threadId };
      const [open] = paused(await collect(own, { kind: "task", task: "go" }, at));
      const answers = { [open?.id ?? ""]: { decisions: [{ type: "reject" as const }] } };
      await collect(own, resumeAgentInput(answers), at);
    }
    expect(runs()).toBe(0);
  });

  it("that fails is done without", async () => {
    const { agent, model } = setup({ cache: new BrokenCache() });
    expect((await collect(agent(), { kind: "task", task: "go" })).at(-1)).toMatchObject({ answer: "end" });
    expect(model.requests).toHaveLength(2);
  });
});
