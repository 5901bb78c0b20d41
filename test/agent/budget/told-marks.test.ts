import { MemorySaver } from "@langchain/langgraph";
import { expect, test } from "vitest";
import type { DeepAgentParams } from "../../../src/agent/agent.ts";
import { toolMessages } from "../../support/run-agent.ts";
import { agentWith, approveAll, ask, go, task, type Turn, turns } from "./limits/planned.ts";

const notesIn = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => text.match(/\[\d+ % of the limit [^\]]*\]/g) ?? []);
const notesOf = async (params: DeepAgentParams): Promise<string[]> =>
  notesIn((await toolMessages(agentWith(params))).map(({ text }) => text));
const MARKS = (what: string) => [
  `[50 % of the limit of ${what} is used.]`,
  `[80 % of the limit of ${what} is used. Do what matters most first.]`,
  `[95 % of the limit of ${what} is used. Finish now, and say what is done, what is not done, and what is not verified.]`,
];

test.each<[string, DeepAgentParams["limits"] & object]>([
  ["200 tokens for one run", { tokens: 200 }],
  ["20 model calls for one run", { maxIterations: 20 }],
  ["20 tool calls for one run", { toolCalls: 20, maxIterations: 1000 }],
])("the model is told once at each mark: %s", async (what, limits) => {
  const params = { checkpointer: new MemorySaver(), limits };
  await go(agentWith(params), turns("a", 30));
  expect(await notesOf(params)).toEqual(MARKS(what));
});

test("a mark is told of once when the process ends in between", async () => {
  const params = { checkpointer: new MemorySaver(), limits: { maxIterations: 10 } };
  const asking: Turn[] = Array.from({ length: 12 }, (_, n) => ({ calls: [ask(`a${n}`)] }));
  await approveAll(params, await go(agentWith(params), asking));
  expect(await notesOf(params)).toEqual(MARKS("10 model calls for one run"));
});

test("a subagent is told of the limit of the run", async () => {
  const params = { checkpointer: new MemorySaver(), limits: { tokens: 1000 } };
  const tired: Turn[] = [
    { calls: [ask("one")], tokens: 600 },
    { calls: [], text: "done", tokens: 10 },
  ];
  const events = await approveAll(params, await go(agentWith(params), [{ calls: [task("s", tired)] }]));
  expect(notesIn([JSON.stringify(events)])).toEqual([]);
  expect(await notesOf(params)).toEqual(MARKS("1000 tokens for one run").slice(0, 1));
});

test("no limit, no note", async () => {
  const params = { checkpointer: new MemorySaver() };
  await go(agentWith(params), turns("a", 30));
  expect(await notesOf(params)).toEqual([]);
});
