import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createMiddleware, providerStrategy, toolStrategy } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { filesIn } from "../../support/files-in.ts";
import { collect, paused, toolMessages } from "../../support/run-agent.ts";
import { callingOnce } from "../../support/scripted-model.ts";

/** What callers without types pass. */
const untyped = (value: unknown): never => value as never;

const BOTH = "the agent and its subagents";

describe("parameters of an agent", () => {
  const gate = tool(() => "", { name: "gate", description: "g", schema: z.object({}) });
  const worker = { name: "w", description: "d", systemPrompt: "p" };
  const format = z.object({ a: z.string() });
  it.each<[problem: string, params: DeepAgentParams]>([
    [
      "filesystem names 'read', which is not a file tool. File tools are ls, read_file,",
      { filesystem: { tools: ["read" as "read_file"] } },
    ],
    [
      "filesystem names 'cat'",
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
    ],
    ['"ls" is not a tool.', { tools: ["ls"] as never }],
    ['"ls" is not a tool.', { subagents: [{ ...worker, tools: ["ls"] as never }] }],
    ["'/skills' is given twice", { skills: ["/skills", "/more/", "/skills/"] }],
    ["'/s' is given twice", { subagents: [{ ...worker, skills: ["/s/", "/s/"] }] }],
    ["'gate' is both a tool and", { tools: [gate], responseFormat: format.meta({ title: "gate" }) }],
    ["'ls' is both a tool and", { responseFormat: { type: "object", title: "ls" } }],
    ["'task' is both a tool and", { responseFormat: toolStrategy(format.meta({ title: "task" })) }],
    ["subagents[0] needs a name", { subagents: [untyped({ description: "d" })] }],
    ["subagents[0] needs a name", { subagents: [untyped("helper")] }],
    [
      "an assistant of a LangGraph server",
      { subagents: [untyped({ name: "far", description: "d", graphId: "g" })] },
    ],
    ["interruptOn has \"yes\" for 'ls'", { interruptOn: { ls: untyped("yes") } }],
    ["interruptOn has null for 'ls'", { interruptOn: { ls: untyped(null) } }],
    ["'memory' takes a list of non-empty texts", { memory: untyped("/AGENTS.md") }],
    ["'skills' takes a list", { skills: untyped("/skills") }],
    ["subagents[0]: 'skills' takes a list", { subagents: [{ ...worker, skills: untyped("/s") }] }],
    ["the mode 'forked'", { subagents: [{ ...worker, mode: untyped("forked") }] }],
    ["needs a name", { middleware: [untyped({})] }],
    ["needs a name", { middleware: [untyped(undefined)] }],
    ["limits.parallelSubagents is 0", { limits: { parallelSubagents: 0 } }],
    ["limits.maxIterations is -1", { limits: { maxIterations: -1 } }],
    ["limits.tokens is NaN", { subagents: [{ ...worker, limits: { tokens: NaN } }] }],
    [
      "A permission has 'delete'",
      { permissions: [{ operations: [untyped("delete")], paths: ["/**"], mode: "deny" }] },
    ],
    ["A permission needs a `mode`", { permissions: [untyped({ operations: ["read"], paths: ["/**"] })] }],
    [
      "A permission has 'ask'",
      { permissions: [{ operations: ["read"], paths: ["/**"], mode: untyped("ask") }] },
    ],
    ["has no part 'before'", { systemPrompt: untyped({ before: "p" }) }],
    ["is a text or a SystemMessage", { systemPrompt: untyped({ prefix: 7 }) }],
  ])("are checked when the agent is made: %s", (problem, params) => {
    expect(() => createDeepAgent(params)).toThrow(problem);
  });

  it.each<DeepAgentParams>([
    { responseFormat: providerStrategy(format.meta({ title: "ls" })) },
    { limits: { maxIterations: 0, tokens: Infinity } },
  ])("may be %j", (params) => {
    expect(() => createDeepAgent(params)).not.toThrow();
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
    const rootDir = filesIn();
    writeFileSync(join(rootDir, "a.md"), "a");
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      backend: new FilesystemBackend({ rootDir, virtualMode: true }),
      interruptOn: interruptOn ?? {},
    });
    const last = (await collect(agent, { kind: "task", task: "go" })).at(-1);
    expect(last?.kind).toBe(asks ? "paused" : "finished");
    const results = asks ? [] : ["Deleted /a.md"];
    expect((await toolMessages(agent)).map(({ text }) => text).slice(asks ? 1 : 0)).toEqual(results);
  });
});
