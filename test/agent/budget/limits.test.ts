import { setTimeout as delay } from "node:timers/promises";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it, test, vi } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { currentRun } from "../../../src/agent/budget/limits.ts";
import { inboxMessage } from "../../../src/agent/messages/messages.ts";
import { withDeadline, addSpent, Meter } from "../../../src/agent/budget/meter.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { collect, paused, toolMessages, graphOf, withInternals } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedReplyFunction } from "../../support/scripted-model.ts";

const HOUR = 3_600_000;
const go = { kind: "task", task: "go" } as const;

function agentOf(reply: ScriptedReplyFunction, params: DeepAgentParams) {
  const model = scriptedModel(reply);
  return { model, agent: buildAgent({ checkpointer: new MemorySaver(), model, ...params }) };
}
const stopOf = async (reply: ScriptedReplyFunction, params: DeepAgentParams) => {
  const { agent, model } = agentOf(reply, params);
  const last = (await collect(agent, go)).at(-1);
  return { last, calls: model.requests.length, results: await toolMessages(agent) };
};

describe("a run ends in order, with a stable reason,", () => {
  it("at its limit of money, by the price of the model that answered", async () => {
    const prices = { script: { input: 1_000_000, output: 0, cachedInput: 0 } };
    const reply: ScriptedReplyFunction = (request) => ({
      toolCalls: [{ id: `c${request.call}`, name: "ls", args: {} }],
      usage: { inputTokens: 3, outputTokens: 9, cachedInputTokens: 1 },
    });
    const { last, calls } = await stopOf(reply, { limits: { costUsd: 5, prices } }); // 2 dollars a call
    expect(last).toMatchObject({ stopReason: "max_cost" });
    expect(calls).toBe(3);
    await expect(stopOf(reply, { limits: { costUsd: 5 } })).rejects.toThrow(
      "price of the model 'scripted' is not known",
    );
  });

  it("when more tool calls are asked for than its limit; those beyond do not run", async () => {
    const { last, results } = await stopOf(
      () => ({
        toolCalls: [
          { name: "ls", args: {} },
          { name: "ls", args: {} },
        ],
      }),
      { limits: { toolCalls: 3 } },
    );
    expect(last).toMatchObject({ stopReason: "max_tool_calls" });
    expect(results.map(({ status }) => status)).toEqual(["success", "success", "success", "error"]);
    expect(results[3]?.text).toBe("Error: ls was not run: the limit of tool calls for this run is reached.");
  });

  it("when its time is over, also in the middle of a model call", async () => {
    const { last } = await stopOf(() => ({ delayMs: 60_000 }), { limits: { wallTimeMs: 30 } });
    expect(last).toMatchObject({ kind: "finished", stopReason: "max_wall_time" });
  });

  it("and the next run of the thread starts anew", async () => {
    const { agent } = agentOf(
      ({ messages }) =>
        messages.at(-1)?.text === "more" ? { text: "ok" } : { toolCalls: [{ name: "ls", args: {} }] },
      {
        limits: { tokens: 20 },
      },
    );
    expect((await collect(agent, go)).at(-1)).toMatchObject({ stopReason: "max_tokens" });
    const events = await collect(agent, { kind: "task", task: "more" }, { runId: "run_2" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "ok" });
  });
});

it("one tool call is stopped when its time is over, and the run goes on", async () => {
  const stuck = tool(() => new Promise<string>(() => undefined), {
    name: "stuck",
    description: "s",
    schema: z.object({}),
  });
  const reply: ScriptedReplyFunction = ({ call }) =>
    call === 0
      ? {
          toolCalls: [
            { name: "stuck", args: {} },
            { name: "ls", args: {} },
          ],
        }
      : { text: "end" };
  const time = handSetTime();
  const { agent } = agentOf(reply, { tools: [stuck], limits: { toolTimeoutMs: HOUR } });
  const events = await collect(agent, go, {}, (told) => {
    if (told.at(-1)?.kind === "tool_finished") time.pass(HOUR);
  });
  expect(events.at(-1)).toEqual({ kind: "finished", answer: "end" });
  const results = await toolMessages(agent);
  expect(results.map(({ text }) => text)).toEqual([
    "Error: stuck did not finish in the time for one call and was stopped.",
    "No files found in /",
  ]);
});

describe("limits and subagents", () => {
  /** Delegates once; the subagent lists for ever; the main agent then goes on listing. */
  const delegating: ScriptedReplyFunction = ({ tools, messages }) => {
    const isMain = tools.includes("task");
    if (isMain && !messages.some((message) => ToolMessage.isInstance(message))) {
      return {
        toolCalls: [{ id: "t", name: "task", args: { description: "d", subagent_type: "general-purpose" } }],
      };
    }
    return isMain ? { text: "end" } : { text: "so far", toolCalls: [{ name: "ls", args: {} }] };
  };

  it("a subagent may have limits of its own", async () => {
    const worker = { name: "general-purpose", description: "d", systemPrompt: "p" };
    const own = await stopOf(delegating, { subagents: [{ ...worker, limits: { maxIterations: 1 } }] });
    expect(own.last).toEqual({ kind: "finished", answer: "end" });
    expect(own.results[0]?.text).toContain("the limit of 1 model calls for one subagent is reached");
    const steps = await stopOf(delegating, { subagents: [{ ...worker, recursionLimit: 4 }] });
    expect(steps.last).toEqual({ kind: "finished", answer: "end" });
    expect(steps.results[0]?.text).toContain("failed: Stopped: the limit of graph steps");
    expect(steps.calls).toBe(4);
  });

  it("what a subagent uses counts for the run, while it works", async () => {
    const { last, calls } = await stopOf(delegating, { limits: { tokens: 50 } });
    expect(last).toMatchObject({ stopReason: "max_tokens" });
    expect(calls).toBe(4); // 15 of the main agent, 45 of the subagent
  });
});

it("the time of tool calls counts beyond a pause, the time of waiting does not", async () => {
  const slow = tool(() => delay(60, "slow"), { name: "slow", description: "s", schema: z.object({}) });
  const { agent } = agentOf(
    ({ call }) =>
      call === 0
        ? {
            toolCalls: [
              { name: "slow", args: {} },
              { name: "write_file", args: { file_path: "/a", content: "" } },
            ],
          }
        : { text: "end" },
    { tools: [slow], interruptOn: { write_file: true }, limits: { wallTimeMs: 50_000 } },
  );
  paused(await collect(agent, go));
  const thread = { configurable: { thread_id: "t1" } };
  const { tasks } = await withInternals(graphOf(agent)).getState(thread);
  const kept = tasks.flatMap(
    ({ result }) => (result as { _spent?: { workedMs?: number } } | undefined)?._spent ?? [],
  );
  expect(kept).toHaveLength(1);
  expect(kept[0]?.workedMs).toBeGreaterThanOrEqual(59);
});

describe("the meter", () => {
  it("counts no setting of the system's clock", () => {
    const meter = new Meter({ wallTimeMs: 1e9 });
    vi.spyOn(Date, "now").mockReturnValue(0);
    const { workedMs } = meter;
    vi.restoreAllMocks();
    expect(workedMs).toBeGreaterThanOrEqual(0);
    expect(workedMs).toBeLessThan(1e9);
  });

  it("gives no more time than a timer can wait", () => {
    for (const ms of [undefined, 2 ** 31, 1e15]) expect(withDeadline(undefined, ms).signal).toBeUndefined();
    const { signal, isOver } = withDeadline(undefined, 2 ** 31 - 1);
    expect([signal?.aborted, isOver()]).toEqual([false, false]);
  });

  it("leaves out the time between two processes", () => {
    let now = 1000;
    const limits = { wallTimeMs: 100 };
    const state = { messages: [], _spent: {} };
    const first = new Meter(limits, undefined, () => now);
    first.load(state);
    now += 60;
    const kept = addSpent({}, [first.carried([]) ?? {}]);
    expect(first.reached([])).toBeUndefined();
    now += 100_000;
    const second = new Meter(limits, undefined, () => now);
    second.load({ ...state, _spent: kept });
    expect(second.reached([])).toBeUndefined();
    expect(second.remainingMs).toBe(40);
    now += 40;
    expect(second.reached([])).toMatchObject({ reason: "max_wall_time" });
  });
});

test("what an agent is told at work belongs to its task: nothing is counted anew", () => {
  const reply = (text: string) => new AIMessage(text);
  const thread = [
    new HumanMessage({ id: "run_0", content: "before" }),
    reply("0"),
    new HumanMessage({ id: "run_1", content: "task" }),
    reply("1"),
    inboxMessage({ id: "msg_1", text: "more" }),
    reply("2"),
  ];
  const { id, messages } = currentRun(thread);
  expect(id).toBe("run_1");
  expect(messages.map(({ text }) => text)).toEqual(["1", "more", "2"]);
  expect(new Meter({ maxIterations: 2 }).reached(thread)).toMatchObject({ reason: "max_iterations" });
});
