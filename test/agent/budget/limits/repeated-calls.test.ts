import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { tool } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../../src/agent/agent.ts";
import {
  FAILURES_NOTE,
  REPEATED_NOTE,
  repeatedTurns,
} from "../../../../src/agent/messages/repeated-calls.ts";
import type { AgentLimits } from "../../../../src/agent/contracts/limits.ts";
import { sanitizeToolCallId } from "../../../../src/backends/paths.ts";
import { collect, toolMessages } from "../../../support/run-agent.ts";
import { type ScriptedToolCall, scriptedModel } from "../../../support/scripted-model.ts";

/** Answers with its argument; `count` answers with a number that grows. */
let count = 0;
const say = tool(({ text }) => text, {
  name: "say",
  description: "",
  schema: z.object({ text: z.string() }),
});
const next = tool(() => String((count += 1)), { name: "count", description: "", schema: z.object({}) });
const SAY = (text: string): ScriptedToolCall => ({ name: "say", args: { text } });

async function work(plan: (turn: number) => ScriptedToolCall[], limits: AgentLimits = {}) {
  const model = scriptedModel(({ call, toolChoice }) => {
    if (toolChoice === "none") return { text: "It says the same again and again." };
    const toolCalls = plan(call);
    return toolCalls.length === 0 ? { text: "end" } : { toolCalls };
  });
  const agent = buildAgent({ model, tools: [say, next], checkpointer: new MemorySaver(), limits });
  const events = await collect(agent, { kind: "task", task: "go" });
  const results = await toolMessages(agent);
  return { last: events.at(-1), results, told: results.filter(({ text }) => text.startsWith(REPEATED_NOTE)) };
}

describe("an agent that repeats its calls", () => {
  it.each<[string, (turn: number) => ScriptedToolCall[]]>([
    ["one call", () => [SAY("a")]],
    ["two calls in turn", (turn) => [SAY(turn % 2 === 0 ? "a" : "b")]],
    ["three calls in turn", (turn) => [SAY("abc"[turn % 3] ?? "")]],
    ["two calls at once", () => [SAY("a"), SAY("b")]],
    ["a call that does not exist", () => [{ name: "nothing", args: { x: 1 } }]],
    ["a call with wrong arguments", () => [{ name: "say", args: { texts: 1 } }]],
  ])("is told, and stops with its reason: %s", async (_name, plan) => {
    const { last, told, results } = await work(plan, { repeatedTurns: 6 });
    expect(last).toMatchObject({ kind: "finished", stopReason: "repeated_calls" });
    expect(last).toMatchObject({ answer: expect.stringContaining("6 turns of repeated calls") });
    expect(last).toMatchObject({ answer: expect.stringContaining("again and again") });
    expect(told.length).toBeGreaterThan(2);
    expect(results[0]?.text).not.toContain(REPEATED_NOTE);
    expect(results[1]?.text).not.toContain(REPEATED_NOTE);
  });

  it.each<[string, (turn: number) => ScriptedToolCall[]]>([
    ["new arguments", (turn) => (turn < 30 ? [SAY(String(turn))] : [])],
    ["new results", (turn) => (turn < 30 ? [{ name: "count", args: {} }] : [])],
    [
      "something new in every third turn",
      (turn) => (turn < 30 ? [turn % 3 === 2 ? SAY(`${turn}`) : SAY("a")] : []),
    ],
    ["something new beside it", (turn) => (turn < 30 ? [SAY("a"), { name: "count", args: {} }] : [])],
  ])("goes on while there is something new: %s", async (_name, plan) => {
    const { last } = await work(plan, { repeatedTurns: 6 });
    expect(last).toEqual({ kind: "finished", answer: "end" });
  });

  it("stops where the limit says, and not at all without one", async () => {
    expect((await work(() => [SAY("a")], { repeatedTurns: 20 })).results).toHaveLength(21);
    const { last, told } = await work((turn) => (turn < 40 ? [SAY("a")] : []));
    expect([last, told.length]).toEqual([{ kind: "finished", answer: "end" }, 38]);
  });
});

describe("the count of repeated turns", () => {
  const turn = (id: number, result: string) => [
    new AIMessage({ id: `m${id}`, content: "", tool_calls: [{ id: `call/${id}`, name: "t", args: {} }] }),
    new ToolMessage({ tool_call_id: `call/${id}`, content: result }),
  ];
  const turns = (from: number, to: number, result: (id: number) => string) =>
    Array.from({ length: to - from }, (_, n) => turn(from + n, result(from + n))).flat();

  it("begins anew with a message of a person, and ignores the file that keeps a long result", () => {
    const task = new HumanMessage("go");
    const before = [task, ...turns(0, 5, () => "same")];
    expect(repeatedTurns(before, 20)).toBe(4);
    expect(repeatedTurns([...before, new HumanMessage("other"), ...turns(5, 7, () => "same")], 20)).toBe(1);
    const inFile = (id: number) => `[too large: /large_tool_results/${sanitizeToolCallId(`call/${id}`)}]`;
    expect(repeatedTurns([task, ...turns(0, 4, inFile)], 20)).toBe(3);
  });

  it("looks at a bounded part of a long run", () => {
    const long = [new HumanMessage("go"), ...turns(0, 5000, () => "same")];
    expect(repeatedTurns(long, 20)).toBeLessThanOrEqual(27);
  });
});

describe("an agent whose calls fail alike", () => {
  const read = (path: string): ScriptedToolCall => ({ name: "read_file", args: { file_path: path } });
  const noted = async (plan: (turn: number) => ScriptedToolCall[], failures?: boolean) => {
    const model = scriptedModel(({ call }) => {
      const toolCalls = plan(call);
      return toolCalls.length === 0 ? { text: "end" } : { toolCalls };
    });
    const hints = failures === undefined ? {} : { failures };
    const agent = buildAgent({ model, tools: [say], checkpointer: new MemorySaver(), hints });
    await collect(agent, { kind: "task", task: "go" });
    return (await toolMessages(agent)).map(({ text }) => text.startsWith(FAILURES_NOTE));
  };
  const paths = ["/src/a.ts", "/src/bb.ts", "/lib/ccc.ts", "/d.ts"];

  it("is told from the third one on", async () => {
    expect(await noted((turn) => (turn < 4 ? [read(paths[turn] ?? "")] : []))).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });

  it.each<[string, (turn: number) => ScriptedToolCall[], number]>([
    [
      "another call of the tool worked in between",
      (turn) => [turn === 2 ? read("/") : read(paths[turn] ?? "/d")],
      4,
    ],
    ["they were made at once", (turn) => (turn === 0 ? paths.map(read) : []), 4],
    ["they succeed", (turn) => [SAY(paths[turn] ?? "")], 4],
  ])("is not told when %s", async (_when, plan, most) => {
    const told = await noted((turn) => (turn < most ? plan(turn) : []));
    expect(told.slice(0, 3)).not.toContain(true);
  });

  it("is not told where that is off", async () => {
    const told = await noted((turn) => (turn < 4 ? [read(paths[turn] ?? "")] : []), false);
    expect(told).toEqual([false, false, false, false]);
  });
});
