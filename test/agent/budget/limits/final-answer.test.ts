import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../../src/agent/agent.ts";
import type { AgentLimits } from "../../../../src/agent/contracts/limits.ts";
import { handSetTime } from "../../../support/hand-set-time.ts";
import { collect } from "../../../support/run-agent.ts";
import { scriptedModel, type ScriptedReply } from "../../../support/scripted-model.ts";
import { agentWith, go, ran, turns } from "./planned.ts";

const HOUR = 3_600_000;
const prices = { scripted: { input: 1_000_000, output: 0 } };

it.each<[string, { limits?: AgentLimits; recursionLimit?: number }]>([
  ["model calls", { limits: { maxIterations: 3 } }],
  ["tool calls", { limits: { toolCalls: 2 } }],
  ["tokens", { limits: { tokens: 30 } }],
  ["money", { limits: { costUsd: 30, prices } }],
  ["graph steps", { recursionLimit: 8 }],
])("a limit that the final answer uses up ends nothing early: %s", async (_what, given) => {
  expect((await go(agentWith(given), turns("a", 2))).at(-1)).toEqual({ kind: "finished", answer: "end" });
  expect(ran).toHaveLength(2);
  expect((await go(agentWith(given), turns("b", 3))).at(-1)).toHaveProperty("stopReason");
});

describe("a limit that is reached before the structured answer is there", () => {
  const responseFormat = z.object({ price: z.number() });
  const cases: Array<[string, AgentLimits]> = [
    ["max_iterations", { maxIterations: 2 }],
    ["max_tokens", { tokens: 30 }],
    ["max_cost", { costUsd: 20, prices }],
    ["max_wall_time", { wallTimeMs: HOUR }],
  ];
  /** The same each time; before the second one an hour goes by. */
  const slowly = (reply: ScriptedReply) => {
    const time = handSetTime();
    return (n: number): ScriptedReply => {
      if (n === 1) time.pass(HOUR);
      return reply;
    };
  };
  const run = async (params: DeepAgentParams, replies: (n: number) => ScriptedReply) => {
    const model = scriptedModel(({ call }) => replies(call));
    const events = await collect(
      buildAgent({ model, responseFormat, checkpointer: new MemorySaver(), ...params }),
      {
        kind: "task",
        task: "go",
      },
    );
    return { last: events.at(-1), calls: model.requests.length };
  };

  it.each(cases)("ends the run with what was said, while it reminds: %s", async (reason, limits) => {
    const { last, calls } = await run({ limits }, slowly({ text: "It is 7." }));
    expect(last).toMatchObject({ kind: "finished", stopReason: reason });
    expect(last).not.toHaveProperty("structured");
    // The last one asks for a report.
    expect(calls).toBe(reason === "max_iterations" ? 3 : 2);
  });

  it.each(cases)("ends the run: %s, when its form did not fit", async (reason, limits) => {
    const toolCalls = [{ name: "structured_response", args: { price: "seven" } }];
    const { last } = await run({ limits }, slowly({ toolCalls }));
    expect(last).toMatchObject({ kind: "finished", stopReason: reason });
  });

  it("ends nothing when the last call that is left gives it", async () => {
    const limits = { maxIterations: 2, tokens: 30 };
    const { last } = await run({ limits }, (n) =>
      n === 0 ? { text: "7" } : { toolCalls: [{ name: "structured_response", args: { price: 7 } }] },
    );
    expect(last).toMatchObject({ kind: "finished", structured: { price: 7 } });
    expect(last).not.toHaveProperty("stopReason");
  });
});
