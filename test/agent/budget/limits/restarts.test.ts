import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import type { AgentLimits } from "../../../../src/agent/contracts/limits.ts";
import { addSpent, Meter } from "../../../../src/agent/budget/meter.ts";
import { agentWith, approveAll, ask, go, ran, results, task, type Turn, turns } from "./planned.ts";

const asking = (count: number): Turn[] =>
  Array.from({ length: count }, (_, n) => ({ calls: [ask(`a${n}`)], tokens: 10 }));

describe("what counts survives the end of the process", () => {
  it.each<[string, number, { limits?: AgentLimits; recursionLimit?: number }]>([
    ["max_iterations", 3, { limits: { maxIterations: 3 } }],
    ["max_tool_calls", 3, { limits: { toolCalls: 3 } }],
    ["max_tokens", 3, { limits: { tokens: 30 } }],
    ["max_cost", 3, { limits: { costUsd: 30, prices: { scripted: { input: 1_000_000, output: 0 } } } }],
    ["max_steps", 5, { recursionLimit: 12 }],
  ])("%s", async (reason, calls, given) => {
    const params = { checkpointer: new MemorySaver(), ...given };
    const events = await approveAll(params, await go(agentWith(params), asking(10)));
    expect(events.at(-1)).toMatchObject({ kind: "finished", stopReason: reason });
    expect(ran).toHaveLength(calls);
    await results(agentWith(params));
    // In the subagent of one task the same counts.
    const inside = { ...params, checkpointer: new MemorySaver() };
    const nested = await go(agentWith(inside), [{ calls: [task("s", asking(10))], tokens: 0 }]);
    await approveAll(inside, nested);
    expect(ran.length).toBe(calls);
  });

  it("steps that were made in one process count as those of several", async () => {
    const params = { recursionLimit: 12 };
    await go(agentWith(params), turns("a", 10));
    expect(ran).toHaveLength(5);
  });

  it("the use of a subagent counts once", async () => {
    const params = { checkpointer: new MemorySaver(), limits: { tokens: 400 } };
    const plan = [{ calls: [task("s", [{ calls: [ask("a")], tokens: 200 }])] }];
    const events = await approveAll(params, await go(agentWith(params), plan));
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "end" }); // 10 + 200 + 10 + 10
  });

  it.each(["worker", "twin", "compiled"])("a finished %s counts while its sibling goes on", async (kind) => {
    const params = { checkpointer: new MemorySaver(), limits: { tokens: 500 } };
    const done = task("d", [{ calls: [], tokens: 400, text: "done" }], kind);
    const plan = [{ calls: [task("s", [{ calls: [ask("a")] }, ...turns("x", 40)], kind), done] }];
    const events = await approveAll(params, await go(agentWith(params), plan));
    expect(events.at(-1)).toMatchObject({ stopReason: "max_tokens" });
    expect(ran.length).toBeLessThan(12);
  });
});

describe("the time at work", () => {
  const limits = { wallTimeMs: 100 };

  it("of a subagent that waits for a person is that of the agent that delegated", () => {
    let now = 0;
    const clock = () => now;
    const main = new Meter(limits, undefined, clock);
    now = 20;
    const sub = new Meter(limits, main.account(), clock);
    now = 70;
    const kept = addSpent({}, [sub.carried([]) ?? {}]);
    now = 1_000_000;
    const again = new Meter(limits, undefined, clock);
    again.load({ messages: [] });
    const below = new Meter(limits, again.account(), clock);
    below.load({ messages: [], _spent: kept });
    expect([again.remainingMs, below.remainingMs]).toEqual([30, 30]);
    now += 30;
    expect(below.reached([])).toMatchObject({ reason: "max_wall_time", whose: "run" });
    expect(again.stop).toMatchObject({ reason: "max_wall_time" });
  });

  it("of calls that finished before a pause counts before the next reply", () => {
    let now = 0;
    const meter = new Meter(limits, undefined, () => now);
    meter.load({ messages: [], _spent: { run: "", workedMs: 10 } }, [{ run: "", workedMs: 60 }]);
    expect(meter.remainingMs).toBe(40);
    now = 15;
    expect(meter.remainingMs).toBe(25);
  });
});
