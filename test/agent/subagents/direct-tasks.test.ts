import { getEventListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { getContextVariable, setContextVariable } from "@langchain/core/context";
import { ToolMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import { Command, getConfig, MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { Middleware } from "../../../src/agent/contracts/middleware.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import {
  callingOnce,
  scriptedModel,
  scriptedSteps,
  type ScriptedToolCall,
} from "../../support/scripted-model.ts";

/** Keeps what each task wrote, by the step it belongs to. */
class RecordingSaver extends MemorySaver {
  readonly written: unknown[] = [];

  override async putWrites(...[config, writes, task]: Parameters<MemorySaver["putWrites"]>): Promise<void> {
    this.written.push(writes.map(([channel, value]) => [channel, withoutIds(value)]));
    return super.putWrites(config, writes, task);
  }
}

const VARYING = new Set(["id", "created_at", "modified_at"]);

/** What differs from run to run is left out. */
const withoutIds = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), (key, item: unknown) => (VARYING.has(key) ? undefined : item));

const callback = { handleLLMStart: () => undefined };

/** Runs the same script without and with somebody who observes it, and gives what each stored. */
async function bothWays(calls: ScriptedToolCall[], params: DeepAgentParams = {}) {
  const run = async (observing: boolean) => {
    const checkpointer = new RecordingSaver();
    const model = scriptedModel(({ tools, messages }) => {
      const isFirst = messages.every(({ type }) => type !== "ai");
      return isFirst && tools.includes("task") ? { text: "go", toolCalls: calls } : { text: "end" };
    });
    const agent = createDeepAgent({ model, checkpointer, ...params });
    const config: RunnableConfig = {
      configurable: { thread_id: "t" },
      ...(observing ? { callbacks: [callback] } : {}),
    };
    let failure: unknown;
    try {
      await agent.invoke({ messages: [{ role: "user", content: "go" }] }, config);
    } catch (thrown) {
      failure = thrown;
    }
    return { written: checkpointer.written, failure };
  };
  return { direct: await run(false), observed: await run(true) };
}

const returning = (name: string, result: unknown) =>
  tool(() => result, { name, description: "Answers.", schema: z.object({}) });

describe("tasks store the same whether somebody observes them or not", () => {
  const hooks: Middleware = {
    name: "hooks",
    beforeAgent: () => ({ todos: [] }),
    beforeModel: () => undefined,
    afterModel: () => undefined,
    afterAgent: () => undefined,
  };

  it.each<[string, ScriptedToolCall[], DeepAgentParams]>([
    ["a reply without calls", [], {}],
    ["parallel calls", [1, 2, 3].map((n) => ({ name: "ls", args: { path: `/${n}` } })), {}],
    ["files and todos", [{ name: "write_file", args: { file_path: "/a", content: "b" } }], {}],
    ["a subagent", [{ name: "task", args: { description: "d", subagent_type: "general-purpose" } }], {}],
    ["hooks of all kinds", [{ name: "ls", args: {} }], { middleware: [hooks] }],
    [
      "a hook that jumps",
      [{ name: "ls", args: {} }],
      { middleware: [{ name: "jump", afterModel: () => ({ jumpTo: "end" as const }) }] },
    ],
    [
      "a command with a channel that is none",
      [{ name: "odd", args: {} }],
      { tools: [returning("odd", new Command({ update: { messages: [], nowhere: 1 } }))] },
    ],
    [
      "a command to a graph that is not there",
      [{ name: "above", args: {} }],
      { tools: [returning("above", new Command({ graph: Command.PARENT, goto: "model" }))] },
    ],
    [
      "a command that goes on elsewhere",
      [{ name: "away", args: {} }],
      { tools: [returning("away", new Command({ update: { messages: [] }, goto: "model" }))] },
    ],
  ])("%s", async (_name, calls, params) => {
    const { direct, observed } = await bothWays(calls, params);
    expect(direct.failure).toBeUndefined();
    expect(direct.written).toEqual(observed.written);
    expect(direct.written).not.toEqual([]);
  });
});

it("a tool finds the running configuration and the variables of its caller", async () => {
  const found: unknown[] = [];
  const look = tool(
    async () => {
      await Promise.resolve();
      found.push(getConfig()?.configurable?.["thread_id"], getContextVariable("who"));
      return "seen";
    },
    { name: "look", description: "Looks.", schema: z.object({}) },
  );
  const model = callingOnce({ name: "look", args: {} });
  const agent = createDeepAgent({ model, tools: [look], checkpointer: new MemorySaver() });
  setContextVariable("who", "me");
  await agent.invoke(
    { messages: [{ role: "user", content: "go" }] },
    { configurable: { thread_id: "thread-7" } },
  );
  expect(found).toEqual(["thread-7", "me"]);
});

it("many calls and subagents at once raise no warning and leave no listeners behind", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error): void => void warnings.push(warning);
  process.on("warning", listen);
  const task = { name: "task", args: { description: "d", subagent_type: "general-purpose" } };
  const model = scriptedModel(({ messages, tools }) => {
    const isFirst = messages.every(({ type }) => type !== "ai");
    if (!isFirst) return { text: "end" };
    return {
      toolCalls: Array.from({ length: 15 }, () => (tools.includes("task") ? task : { name: "ls", args: {} })),
    };
  });
  const limits = { parallelSubagents: 15, parallelTools: 15 };
  const agent = createDeepAgent({ model, limits });
  const input = { messages: [{ role: "user", content: "go" }] };
  await agent.invoke(input);
  const { signal } = new AbortController();
  await agent.invoke(input, { signal });
  await new Promise(setImmediate);
  process.off("warning", listen);
  expect(warnings).toEqual([]);
  // LangGraph keeps one for each run, none for each task.
  expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
});

it("with one tool call at a time all calls of a reply are made, one after the other", async () => {
  const [running, most] = [new Set<string>(), { count: 0 }];
  const work = {
    name: "work",
    description: "Works",
    schema: z.object({ id: z.string() }),
    invoke: async ({ id }: Record<string, unknown>) => {
      running.add(String(id));
      most.count = Math.max(most.count, running.size);
      await delay(5);
      running.delete(String(id));
      return `did ${String(id)}`;
    },
  };
  const ids = ["a", "b", "c", "d"];
  const model = scriptedSteps([
    { toolCalls: ids.map((id) => ({ name: "work", args: { id } })) },
    { text: "end" },
  ]);
  const agent = createDeepAgent({ model, tools: [work], limits: { parallelTools: 1 } });
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: "go" }] });
  const told = messages.filter((message) => ToolMessage.isInstance(message)).map(({ text }) => text);
  expect({ told, most: most.count, end: messages.at(-1)?.text }).toEqual({
    told: ids.map((id) => `did ${id}`),
    most: 1,
    end: "end",
  });
});
