import { HumanMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { DynamicTool, tool } from "@langchain/core/tools";
import {
  Command,
  GraphRecursionError,
  type LangGraphRunnableConfig,
  MemorySaver,
  type StreamTransformer,
  isInterrupted,
} from "@langchain/langgraph";
import * as deepagents from "deepagents";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { StateBackend } from "../../src/backends/stores/state.ts";
import type {
  AnyBackendProtocol,
  BackendProtocol,
  CreateDeepAgentParams,
  DeepAgent,
  HitlRequest,
} from "../../src/index.ts";
import { scriptedModel, scriptedSteps } from "../support/scripted-model.ts";

/** The same program with each library. */
const libraries = [
  ["deepagents", deepagents.createDeepAgent as unknown as typeof createDeepAgent],
  ["this library", createDeepAgent],
] as const;

const go = { messages: [new HumanMessage("go")] };

describe.each(libraries)("a program for deepagents, with %s", (_name, create) => {
  it("gets in stream mode `custom` what its tools write, and nothing else", async () => {
    const note = tool(
      (_args, config: LangGraphRunnableConfig) => {
        config.writer?.({ mine: 1 });
        return "noted";
      },
      { name: "note", description: "d", schema: z.object({}) },
    );
    const model = scriptedSteps([{ toolCalls: [{ name: "note", args: {} }] }, { text: "end" }]);
    const chunks: unknown[] = [];
    for await (const chunk of await create({ model, tools: [note] }).stream(go, { streamMode: "custom" }))
      chunks.push(chunk);
    expect(chunks).toEqual([{ mine: 1 }]);
  });

  it("gets no answer by a schema that it did not ask for, and messages under the agent's name", async () => {
    const model = scriptedSteps([{ toolCalls: [{ name: "ls", args: {} }] }, { text: "end" }]);
    const result = await create({ model, name: "main" }).invoke(go);
    expect(Object.keys(result)).not.toContain("structuredResponse");
    expect(result.messages.map(({ name }) => name)).toEqual([undefined, "main", "ls", "main"]);
  });

  it("offers tools of the provider as they are, and runs tools of other forms", async () => {
    const provided = [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }, { googleSearch: {} }];
    const plain = new DynamicTool({ name: "plain", description: "d", func: async (text) => `plain ${text}` });
    const runnable = RunnableLambda.from(({ text }: { text: string }) => `ran ${text}`).asTool({
      name: "runnable",
      schema: z.object({ text: z.string() }),
    });
    const model = scriptedSteps([
      { toolCalls: [{ name: "plain", args: { input: "a" } }] },
      { toolCalls: [{ name: "runnable", args: { text: "b" } }] },
      { text: "end" },
    ]);
    const bound: unknown[] = [];
    const bindTools = model.bindTools.bind(model);
    model.bindTools = (tools, options) => {
      bound.push(...tools);
      return bindTools(tools, options);
    };
    const { messages } = await create({ model, tools: [...provided, plain, runnable] }).invoke(go);
    expect(bound).toEqual(expect.arrayContaining(provided));
    expect(messages.filter(({ type }) => type === "tool").map(({ text }) => text)).toEqual([
      "plain a",
      "ran b",
    ]);
  });

  it("transforms the streams of its events", async () => {
    let seen = 0;
    const count = (): StreamTransformer<{ count: () => number }> => ({
      init: () => ({ count: () => seen }),
      process: () => {
        seen += 1;
        return true;
      },
    });
    const agent = create({ model: scriptedSteps([{ text: "end" }]), streamTransformers: [count] });
    const run = await agent.streamEvents(go, { version: "v3" });
    for await (const _event of run) continue;
    const { count: counted } = run.extensions as unknown as { count: () => number };
    expect(counted()).toBeGreaterThan(0);
  });

  it.each(["invoke", "withConfig"])("throws at the limit of steps that it gave to %s", async (place) => {
    const model = scriptedModel(() => ({ toolCalls: [{ name: "ls", args: { path: "/" } }] }));
    const limit = { recursionLimit: 8 };
    const run =
      place === "invoke"
        ? create({ model }).invoke(go, limit)
        : create({ model }).withConfig(limit).invoke(go);
    await expect(run).rejects.toThrow(GraphRecursionError);
  });

  it("answers all calls of a reply that wait with one list, in the order of the calls", async () => {
    const { agent, thread, done } = asking(create, [1, 2, 3]);
    await agent.invoke(go, thread);
    const edit = { type: "edit", editedAction: { name: "act", args: { n: 20 } } };
    const decisions = [{ type: "approve" }, edit, { type: "approve" }];
    const { messages } = await agent.invoke(new Command({ resume: { decisions } }), thread);
    expect(done.toSorted((a, b) => a - b)).toEqual([1, 3, 20]);
    expect(messages.at(-1)?.text).toBe("end");
  });

  it.each(["", "general-purpose"])(
    "finds all calls that wait in the first interrupt, one by one in order (in subagent: '%s')",
    async (within) => {
      const { agent, thread, done } = asking(create, [1, 2], within);
      let result: unknown = await agent.invoke(go, thread);
      const { tasks } = await agent.getState(thread);
      expect(tasks.map(({ interrupts }) => interrupts.length)).toEqual([1]);
      expect(result).toMatchObject({ __interrupt__: [{ id: tasks[0]?.interrupts[0]?.id }] });
      for (let round = 0; isInterrupted<HitlRequest>(result) && round < 3; round += 1) {
        const [open] = result.__interrupt__;
        const { actionRequests = [], reviewConfigs = [] } = open?.value ?? {};
        expect(actionRequests.map(({ name, args }) => [name, args])).toEqual([
          ["act", { n: 1 }],
          ["act", { n: 2 }],
        ]);
        for (const { description } of actionRequests)
          expect(description).toMatch(/^Tool execution requires approval\n\nTool: act\n/);
        const allowedDecisions = ["approve", "edit", "reject"];
        const config = { actionName: "act", allowedDecisions };
        expect(reviewConfigs).toEqual([config, config]);
        const decisions = actionRequests.map(() => ({ type: "approve" }));
        result = await agent.invoke(new Command({ resume: { decisions } }), thread);
      }
      expect(done).toEqual([1, 2]);
    },
  );

  it("is told when its list has another length than the calls that wait, and nothing runs", async () => {
    const { agent, thread, done } = asking(create, [1, 2]);
    await agent.invoke(go, thread);
    const resume = { decisions: [{ type: "approve" }] };
    await expect(agent.invoke(new Command({ resume }), thread)).rejects.toThrow(/1.*2|2.*1/);
    expect(done).toEqual([]);
  });

  it("may act without a person while calls wait, and each call runs once", async () => {
    const done: string[] = [];
    const effect = (name: string) =>
      tool(() => void done.push(name), { name, description: "d", schema: z.object({}) });
    const names = ["free", "gated", "gated2"];
    const toolCalls = names.map((name) => ({ name, args: {} }));
    const agent = create({
      model: scriptedSteps([{ toolCalls }, { text: "end" }]),
      tools: names.map(effect),
      interruptOn: { gated: true, gated2: true },
      checkpointer: new MemorySaver(),
    });
    const thread = { configurable: { thread_id: "t" } };
    let result: unknown = await agent.invoke(go, thread);
    while (isInterrupted<HitlRequest>(result)) {
      const decisions = result.__interrupt__[0]?.value?.actionRequests.map(() => ({ type: "approve" }));
      result = await agent.invoke(new Command({ resume: { decisions } }), thread);
    }
    expect(done.toSorted()).toEqual(names);
    expect((await agent.getState(thread)).next).toEqual([]);
  });
});

/** An agent that acts in one reply once with each number, if a person approves. */
function asking(create: typeof createDeepAgent, numbers: readonly number[], within = "") {
  const done: number[] = [];
  const act = tool(({ n }: { n: number }) => void done.push(n), {
    name: "act",
    description: "d",
    schema: z.object({ n: z.number() }),
  });
  const acting = { toolCalls: numbers.map((n) => ({ name: "act", args: { n } })) };
  const delegating = {
    toolCalls: [{ name: "task", args: { subagent_type: "general-purpose", description: "act" } }],
  };
  const steps =
    within === "" ? [acting, { text: "end" }] : [delegating, acting, { text: "in" }, { text: "end" }];
  const params = { tools: [act], interruptOn: { act: true }, checkpointer: new MemorySaver() };
  const agent = create({ model: scriptedSteps(steps), ...params });
  return { agent, done, thread: { configurable: { thread_id: "t" } } };
}

it("has types under the names that they have in deepagents", () => {
  const params: CreateDeepAgentParams = {
    permissions: [{ operations: ["read"], paths: ["/**"], mode: "allow" }],
  };
  const agent: DeepAgent = createDeepAgent(params as object);
  const backend: AnyBackendProtocol & BackendProtocol = new StateBackend();
  expect([agent.name, backend.capabilities]).toEqual(["deepagent", expect.anything()]);
});

it.each(libraries)("shows an edited call in the history, and its result, with %s", async (_name, create) => {
  const { agent, thread } = asking(create, [1]);
  await agent.invoke(go, thread);
  const editedAction = { name: "act", args: { n: 5 } };
  const { messages } = await agent.invoke(
    new Command({ resume: { decisions: [{ type: "edit", editedAction }] } }),
    thread,
  );
  expect(messages[1]).toMatchObject({ tool_calls: [{ name: "act", args: { n: 5 } }] });
  expect(messages[2]?.text).toBe("");
});

describe("here, calls", () => {
  it("that wait in a subagent are answered by one list too", async () => {
    const { agent, thread, done } = asking(createDeepAgent, [1, 2], "general-purpose");
    await agent.invoke(go, thread);
    const decisions = [{ type: "reject" }, { type: "approve" }];
    await agent.invoke(new Command({ resume: { decisions } }), thread);
    expect(done).toEqual([2]);
  });

  it.each([
    ["scripted", ["main"]],
    ["google", [undefined]],
  ])("are sent to a model of the kind %s under names that it takes", async (kind, names) => {
    const model = scriptedSteps([{ toolCalls: [{ name: "ls", args: {} }] }, { text: "end" }]);
    Object.assign(model, { _llmType: () => kind });
    await createDeepAgent({ model, name: "main" }).invoke(go);
    const sent = model.requests[1]?.messages.filter(({ type }) => type === "ai");
    expect(sent?.map(({ name }) => name)).toEqual(names);
  });

  it("that wait are not answered by list and id at once", async () => {
    const { agent, thread, done } = asking(createDeepAgent, [1, 2]);
    const result: unknown = await agent.invoke(go, thread);
    const [open] = isInterrupted<HitlRequest>(result) ? result.__interrupt__ : [];
    const one = { decisions: [{ type: "approve" }] };
    const mixed = { [open?.id ?? ""]: one, ...one };
    await expect(agent.invoke(new Command({ resume: mixed }), thread)).rejects.toThrow("not both");
    expect(done).toEqual([]);
  });
});
