import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../../src/agent/agent.ts";
import type { AgentLimits } from "../../../../src/agent/contracts/limits.ts";
import { Meter } from "../../../../src/agent/budget/meter.ts";
import { calls, isSummarizer, long } from "../../../support/long-results.ts";
import { collect } from "../../../support/run-agent.ts";
import { scriptedModel } from "../../../support/scripted-model.ts";

const USAGE = { inputTokens: 1000, outputTokens: 20 };

const tasks = Array.from({ length: 8 }, (_, n) => ({
  name: "task",
  args: { description: `part ${n}`, subagent_type: "general-purpose" },
}));

/** Eight subagents at once, each of which would work for ever. Returns the tokens that were used, and the run's end. */
async function spent(limits: AgentLimits) {
  const model = scriptedModel(async ({ call }) => {
    const looks = { name: "read_file", args: { file_path: `/${call}` } };
    return { toolCalls: call === 0 ? tasks : [looks], usage: USAGE, delayMs: 5 };
  });
  const agent = buildAgent({ model, checkpointer: new MemorySaver(), limits });
  const last = (await collect(agent, { kind: "task", task: "go" })).at(-1);
  return { tokens: model.requests.length * 1020, last };
}

describe("a budget under parallel work", () => {
  it.each([2500, 5000, 9000])("is exceeded by at most one reply: %d tokens", async (tokens) => {
    const { last, tokens: used } = await spent({ tokens });
    expect(last).toMatchObject({ kind: "finished", stopReason: "max_tokens" });
    expect(used).toBeLessThan(tokens + 1020);
  });

  it("of money is, too", async () => {
    const limits = { costUsd: 10, prices: { scripted: { input: 2000, output: 0 } } }; // 2 dollars a reply
    const { last, tokens } = await spent(limits);
    expect(last).toMatchObject({ kind: "finished", stopReason: "max_cost" });
    expect((tokens / 1020) * 2).toBeLessThanOrEqual(10);
  });

  it("is looked at again before a reply is asked for again", async () => {
    const model = scriptedModel(({ call }) => ({ text: call === 0 ? "" : "done" }));
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), limits: { tokens: 1000 } });
    const spent = async () => ({ tokens: model.requests.length * 1000, costUsd: 0 });
    const budget = { spent, reserve: async () => true };
    const events = await collect(agent, { kind: "task", task: "go" }, { budget });
    expect(events.at(-1)).toMatchObject({ kind: "finished", stopReason: "max_tokens" });
    expect(model.requests).toHaveLength(1);
  });

  it("that a summary used up ends the run before the reply", async () => {
    const model = scriptedModel(({ messages, call }) =>
      isSummarizer(messages)
        ? { text: "SUMMARY", usage: { inputTokens: 100_000, outputTokens: 0 } }
        : calls(call, [4000]),
    );
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      tools: [long],
      limits: { tokens: 50_000 },
      summarization: { trigger: { tokens: 5500 }, keep: { messages: 2 } },
    });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", stopReason: "max_tokens" });
    expect(isSummarizer(model.requests.at(-1)?.messages ?? [])).toBe(true);
  });

  it("lets all work at once while there is room for all", async () => {
    let isComplete = (): void => undefined;
    const all = new Promise<void>((resolve) => (isComplete = resolve));
    const model = scriptedModel(async ({ call }) => {
      if (call === 8) isComplete();
      if (call > 0 && call <= 8) await all; // hangs if one of them waits for another
      return call === 0 ? { toolCalls: tasks, usage: USAGE } : { text: "done", usage: USAGE };
    });
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), limits: { tokens: 100_000 } });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "done" });
  });
});

describe("a reservation", () => {
  it("waits for the calls at work, counts in each agent above, and ends with the signal", async () => {
    const run = new Meter({ tokens: 100 });
    const [one, other] = [run.account(), run.account()];
    const release = await one.reserve(() => 60, undefined);
    const controller = new AbortController();
    const aborted = other.reserve(() => 60, controller.signal);
    controller.abort(new Error("stopped"));
    await expect(aborted).rejects.toThrow("stopped");
    let isWaiting = true;
    const waiting = other.reserve(() => 60, undefined).then((end) => ((isWaiting = false), end));
    const small = await other.reserve(() => 40, undefined);
    small();
    expect(isWaiting).toBe(true);
    one.add({ tokens: 30, costUsd: 0 });
    release();
    (await waiting)();
    expect(run.spent.tokens).toBe(30);
  });

  it("asks for no estimate where nothing is limited", async () => {
    const end = await new Meter({ maxIterations: 3 }).reserve(() => {
      throw new Error("not needed");
    }, undefined);
    expect(end()).toBeUndefined();
  });
});
