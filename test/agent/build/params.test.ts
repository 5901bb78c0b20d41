import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createMiddleware, providerStrategy, toolStrategy } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { collect, paused, toolMessages } from "../../support/run-agent.ts";
import { callingOnce } from "../../support/scripted-model.ts";

/** What callers without types pass. */
const untyped = (value: unknown): never => value as never;

const BOTH = "the agent and its subagents";

describe("parameters of an agent", () => {
  const gate = tool(() => "", { name: "gate", description: "g", schema: z.object({}) });
  const worker = { name: "w", description: "d", systemPrompt: "p" };
  const format = z.object({ a: z.string() });
  it.each<[string, DeepAgentParams, string | undefined]>([
    [
      "a file tool that there is not",
      { filesystem: { tools: ["read" as "read_file"] } },
      "filesystem names 'read', which is not a file tool. File tools are ls, read_file,",
    ],
    [
      "a text for no file tool, of a subagent",
      {
        subagents: [
          {
            name: "a",
            description: "d",
            systemPrompt: "p",
            filesystem: { toolDescriptions: { ["cat" as "ls"]: "x" } },
          },
        ],
      },
      "filesystem names 'cat'",
    ],
    ["the name of a tool", { tools: ["ls"] as never }, '"ls" is not a tool.'],
    [
      "the name of a tool for a subagent",
      { subagents: [{ ...worker, tools: ["ls"] as never }] },
      '"ls" is not a tool.',
    ],
    ["a skill source twice", { skills: ["/skills", "/more/", "/skills/"] }, "'/skills' is given twice"],
    [
      "a subagent's skill source twice",
      { subagents: [{ ...worker, skills: ["/s/", "/s/"] }] },
      "'/s' is given twice",
    ],
    [
      "an answer with a tool's name",
      { tools: [gate], responseFormat: format.meta({ title: "gate" }) },
      "'gate' is both a tool and",
    ],
    [
      "a JSON schema with a tool's name",
      { responseFormat: { type: "object", title: "ls" } },
      "'ls' is both a tool and",
    ],
    [
      "a strategy with a tool's name",
      { responseFormat: toolStrategy(format.meta({ title: "task" })) },
      "'task' is both a tool and",
    ],
    [
      "an answer for the provider alone",
      { responseFormat: providerStrategy(format.meta({ title: "ls" })) },
      undefined,
    ],
    [
      "a subagent without a name",
      { subagents: [untyped({ description: "d" })] },
      "subagents[0] needs a name",
    ],
    ["what is no subagent", { subagents: [untyped("helper")] }, "subagents[0] needs a name"],
    [
      "a subagent on a server",
      { subagents: [untyped({ name: "far", description: "d", graphId: "g" })] },
      "an assistant of a LangGraph server",
    ],
    ["a gate that is a text", { interruptOn: { ls: untyped("yes") } }, "interruptOn has \"yes\" for 'ls'"],
    ["a gate that is nothing", { interruptOn: { ls: untyped(null) } }, "interruptOn has null for 'ls'"],
    [
      "a memory that is no list",
      { memory: untyped("/AGENTS.md") },
      "'memory' takes a list of non-empty texts",
    ],
    ["skills that are no list", { skills: untyped("/skills") }, "'skills' takes a list"],
    [
      "a subagent's skills",
      { subagents: [{ ...worker, skills: untyped("/s") }] },
      "subagents[0]: 'skills' takes a list",
    ],
    ["a mode of a subagent", { subagents: [{ ...worker, mode: untyped("forked") }] }, "the mode 'forked'"],
    ["a middleware without a name", { middleware: [untyped({})] }, "needs a name"],
    ["what is no middleware", { middleware: [untyped(undefined)] }, "needs a name"],
    ["no place for a subagent", { limits: { parallelSubagents: 0 } }, "limits.parallelSubagents is 0"],
    ["a limit below nothing", { limits: { maxIterations: -1 } }, "limits.maxIterations is -1"],
    [
      "a limit of a subagent",
      { subagents: [{ ...worker, limits: { tokens: NaN } }] },
      "limits.tokens is NaN",
    ],
    ["limits of nothing and without end", { limits: { maxIterations: 0, tokens: Infinity } }, undefined],
    [
      "an operation of a permission",
      { permissions: [{ operations: [untyped("delete")], paths: ["/**"], mode: "deny" }] },
      "A permission has 'delete'",
    ],
    [
      "a permission without a mode",
      { permissions: [untyped({ operations: ["read"], paths: ["/**"] })] },
      "A permission needs a `mode`",
    ],
    [
      "a mode of a permission",
      { permissions: [{ operations: ["read"], paths: ["/**"], mode: untyped("ask") }] },
      "A permission has 'ask'",
    ],
    ["a prompt of other parts", { systemPrompt: untyped({ before: "p" }) }, "has no part 'before'"],
    ["a prompt part", { systemPrompt: untyped({ prefix: 7 }) }, "is a text or a SystemMessage"],
  ])("are checked when the agent is made: %s", (_what, params, problem) => {
    const made = () => createDeepAgent(params);
    if (problem === undefined) made();
    else expect(made).toThrow(problem);
  });

  it.each<[string, DeepAgentParams, Array<[tools: string[], owner: string]>]>([
    ["no tool", { interruptOn: { wrte_file: true, ls: true, tsk: {} } }, [[["wrte_file", "tsk"], BOTH]]],
    ["a tool that is off", { interruptOn: { job: true, write_todos: true }, todos: false }, []],
    ["no tool, which is not to be asked about", { interruptOn: { wrte_file: false } }, []],
    ["a subagent's tool", { interruptOn: { gate: true }, subagents: [{ ...worker, tools: [gate] }] }, []],
    [
      "a tool that a subagent's middleware has",
      { interruptOn: { gate: true }, subagents: [{ ...worker, middleware: [{ name: "m", tools: [gate] }] }] },
      [],
    ],
    [
      "no tool of the subagent, at any depth once",
      {
        limits: { subagentDepth: 3 },
        tools: [gate],
        subagents: [{ ...worker, tools: [], interruptOn: { gate: true } }],
      },
      [[["gate"], "the subagent 'w'"]],
    ],
    ["no tool anywhere", { interruptOn: { x: true }, subagents: [worker] }, [[["x"], BOTH]]],
  ])("a gate for %s", (_what, params, expected) => {
    const lines: string[] = [];
    createDeepAgent({ ...params, log: createLogger("warn", (line) => void lines.push(line)) });
    const warned = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const ofGates = warned.filter(({ event }) => event === "unknown_tools_gated");
    expect(ofGates.map(({ tools, owner }) => [tools, owner])).toEqual(expected);
  });

  it("a gate holds back a tool that middleware brings later", async () => {
    let ran = 0;
    const brought = tool(() => `ran ${++ran}`, { name: "gate", description: "g", schema: z.object({}) });
    const bringing = createMiddleware({
      name: "Bringing",
      wrapModelCall: (request, handler) => handler({ ...request, tools: [...request.tools, brought] }),
      wrapToolCall: (request, handler) =>
        handler(request.toolCall.name === "gate" ? { ...request, tool: brought } : request),
    });
    const model = callingOnce({ id: "a", name: "gate", args: {} });
    const log = createLogger("silent");
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      middleware: [bringing],
      model,
      interruptOn: { gate: true },
      log,
    });
    const [question] = paused(await collect(agent, { kind: "task", task: "go" }));
    expect(ran).toBe(0);
    await collect(agent, {
      kind: "resume",
      answers: { [question?.id ?? ""]: { decisions: [{ type: "approve" }] } },
    });
    expect([ran, (await toolMessages(agent)).map(({ text }) => text)]).toEqual([1, ["ran 1"]]);
  });

  it.each<[string, DeepAgentParams["interruptOn"], boolean]>([
    ["the gate of writing", { write_file: true }, true],
    ["no gate where it is named", { write_file: true, delete: false }, false],
    ["no gate where writing has none", { write_file: false, edit_file: true }, false],
    [
      "the predicate of writing",
      { write_file: { when: ({ args }) => args["file_path"] !== "/a.md" } },
      false,
    ],
  ])("deleting has %s", async (_what, interruptOn, asks) => {
    const model = callingOnce({ name: "delete", args: { file_path: "/a.md" } });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      interruptOn: interruptOn ?? {},
    });
    const last = (await collect(agent, { kind: "task", task: "go" })).at(-1);
    expect(last?.kind).toBe(asks ? "paused" : "finished");
    const results = asks ? [] : ["Error: File '/a.md' not found"];
    expect((await toolMessages(agent)).map(({ text }) => text).slice(asks ? 1 : 0)).toEqual(results);
  });
});
