import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { type Interrupt, isInterrupted } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { Agent } from "../../../../src/agent/agent.ts";
import type { AgentLimits } from "../../../../src/agent/contracts/limits.ts";
import type { HitlRequest } from "../../../../src/agent/contracts/question.ts";
import { handSetTime } from "../../../support/hand-set-time.ts";
import { paused, graphOf } from "../../../support/run-agent.ts";
import type { ScriptedToolCall } from "../../../support/scripted-model.ts";
import {
  agentWith,
  approveFirst,
  ask,
  call,
  effects,
  go,
  ran,
  results,
  task,
  team,
  turns,
  write,
} from "./planned.ts";

const HOUR = 3_600_000;

/** Ends only with its signal. */
const stuck = tool(
  () => {
    ran.push("stuck");
    return new Promise<string>(() => undefined);
  },
  { name: "stuck", description: "s", schema: z.object({}) },
);
const STUCK: ScriptedToolCall = { id: "stuck", name: "stuck", args: {} };
const prices = { scripted: { input: 1_000_000, output: 0 } };
const amountOf = ({ tokens, costUsd, wallTimeMs }: AgentLimits): string =>
  tokens ? `${tokens} tokens` : costUsd ? `${costUsd} US dollars` : `${wallTimeMs} ms at work`;
/** How many calls of the main agent wait for a person, in whatever agent below it. */
async function waiting(agent: Agent): Promise<number> {
  const { tasks } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
  const open: Array<Interrupt<HitlRequest>> = tasks.flatMap(({ interrupts }) => interrupts);
  const requests = open.flatMap(({ value }) => value?.actionRequests ?? []);
  return new Set(requests.map((request) => request.agent?.[0]?.callId ?? request.toolCallId)).size;
}
const asked = () => ran.filter((one) => one.startsWith("ask"));

describe("a limit of the run that is reached while calls wait for a person ends the run there:", () => {
  const waits: Array<[string, ScriptedToolCall[]]> = [
    ["of the main agent", [ask("a")]],
    ["of a subagent", [task("s", [{ calls: [ask("a"), call("b"), write("c")] }])]],
    ["of one below that", [task("s", [{ calls: [write("c"), task("t", [{ calls: [ask("a")] }])] }])]],
    ["of three agents", [ask("x"), task("s", [{ calls: [ask("y"), task("t", [{ calls: [ask("a")] }])] }])]],
    ["of a fork", [task("s", [{ calls: [ask("a"), write("c")] }], "twin")]],
    ["of one compiled before", [task("s", [{ calls: [ask("a"), write("c")] }], "compiled")]],
  ];
  const limits: Array<[string, AgentLimits, ScriptedToolCall]> = [
    ["max_tokens", { tokens: 100 }, task("eager", turns("e", 20))],
    ["max_cost", { costUsd: 100, prices }, task("eager", [{ calls: [task("f", turns("e", 20))] }])],
    ["max_wall_time", { wallTimeMs: HOUR }, STUCK],
  ];
  const cases = waits.flatMap(([whose, calls]) =>
    limits.map(([reason, given, eager]) => ({ whose, calls, reason, given, eager })),
  );

  it.each(cases)("$reason, calls $whose", async ({ calls, reason, given, eager }) => {
    const agent = agentWith({ limits: given, tools: [...effects(), stuck], subagents: team() });
    const time = handSetTime();
    const running = go(agent, [{ calls: [...calls, call("free"), eager] }]);
    if (eager === STUCK) {
      await expect.poll(() => waiting(agent), { interval: 5 }).toBe(calls.length);
      await expect.poll(() => ran).toEqual(expect.arrayContaining(["stuck", "act free"]));
      time.pass(HOUR);
    }
    const events = await running;
    expect(events.at(-1)).toMatchObject({ kind: "finished", stopReason: reason });
    expect(asked()).toEqual([]);
    expect(ran).toContain("act free");
    const told = await results(agent);
    const closed = Object.values(told).join("\n");
    expect(closed).toMatch(/waited (there )?for a person's approval/);
    expect(closed).toContain(`${amountOf(given)} for one run was reached`);
    if (JSON.stringify(calls).includes("write_file")) expect(closed).toContain("are kept: /c.md");
    // The thread goes on, with limits of its own, and nothing that waited before runs then.
    const again = await go(agent, [{ calls: [ask("later")] }], "run_2");
    expect(paused(again)).toHaveLength(1);
    expect((await approveFirst(agent, again)).at(-1)).toEqual({ kind: "finished", answer: "end" });
    expect(asked()).toEqual(["ask later"]);
  });
});

describe("a limit of a subagent", () => {
  const worker = { name: "worker", description: "works", systemPrompt: "Work." };
  const eager = task("eager", turns("e", 20));

  it("ends the subagent with what waits in it, and its siblings go on", async () => {
    const subagents = [{ ...worker, limits: { tokens: 100 } }, ...team().slice(1)];
    const agent = agentWith({ subagents });
    const inside = task("s", [{ calls: [ask("x"), write("c"), task("t", [{ calls: [ask("y")] }]), eager] }]);
    const events = await go(agent, [
      { calls: [inside, ask("a"), task("f", [{ calls: [ask("b")] }], "twin")] },
    ]);
    expect(
      paused(events)
        .map(({ request }) => request.actionRequests[0]?.toolCallId)
        .toSorted(),
    ).toEqual(["a", "b"]);
    const ended = await approveFirst(agent, await approveFirst(agent, events));
    expect(ended.at(-1)).toEqual({ kind: "finished", answer: "end" });
    expect(asked().toSorted()).toEqual(["ask a", "ask b"]);
    const told = await results(agent);
    expect(told["s"]).toContain(
      "Error: subagent 'worker' failed: Stopped: the limit of 100 tokens for one subagent is reached.",
    );
    expect(told["s"]).toContain("Files it had changed are kept: /c.md");
  });

  it.each<[string, { limits?: AgentLimits; recursionLimit?: number }]>([
    ["model calls", { limits: { maxIterations: 3 } }],
    ["tool calls", { limits: { toolCalls: 3 } }],
    ["tokens", { limits: { tokens: 40 } }],
    ["US dollars", { limits: { costUsd: 40, prices } }],
    ["graph steps", { recursionLimit: 7 }],
  ])("of %s is its own: a person is asked about the calls of its siblings as before", async (what, own) => {
    const subagents = [worker, { ...worker, name: "short", ...own }];
    const agent = agentWith({ subagents });
    const tired = (id: string) => task(id, [{ calls: [write(`f-${id}`)] }, ...turns(id, 20)], "short");
    const waiting = [task("s", [{ calls: [ask("x"), tired("inner")] }]), ask("a")];
    const events = await go(agent, [{ calls: [...waiting, tired("outer")] }]);
    expect(paused(events)).toHaveLength(2);
    const ended = await approveFirst(agent, await approveFirst(agent, events));
    expect(ended.at(-1)).toEqual({ kind: "finished", answer: "end" });
    expect(asked().toSorted()).toEqual(["ask a", "ask x"]);
    const { outer } = await results(agent);
    expect(outer).toMatch(
      new RegExp(`^Error: subagent 'short' failed: Stopped: the limit of (\\d+ )?${what}`),
    );
    expect(outer).toContain("Files it had changed are kept: /f-outer.md");
  });
});

it("the calls of the reply that reaches a limit are asked about, and run when they are approved", async () => {
  const agent = agentWith({ limits: { tokens: 10 } });
  const events = await go(agent, [{ calls: [ask("a")] }]);
  expect((await approveFirst(agent, events)).at(-1)).toMatchObject({ stopReason: "max_tokens" });
  expect(ran).toEqual(["ask a"]);
});

it("an answer that is there when the limit is reached is followed before the run ends", async () => {
  const agent = agentWith({ limits: { tokens: 100 } });
  const plan = [{ calls: [ask("a"), task("eager", turns("e", 20))] }];
  const events = await go(agent, plan, "run_1", { hasAnswers: () => true });
  expect((await approveFirst(agent, events)).at(-1)).toMatchObject({ stopReason: "max_tokens" });
  expect(asked()).toEqual(["ask a"]);
});

it("`invoke` tells of no question when the run has ended", async () => {
  const graph = graphOf(agentWith({ limits: { tokens: 100 } }));
  const thread = { configurable: { thread_id: "t1" } };
  const plan = JSON.stringify([{ calls: [ask("a"), task("eager", turns("e", 20))] }]);
  const ended = await graph.invoke({ messages: [new HumanMessage(plan)] }, thread);
  expect(isInterrupted(ended)).toBe(false);
  const messages = ended["messages"] as BaseMessage[]; // the agent's channel
  expect(messages.at(-1)?.text).toContain("Stopped: the limit of 100 tokens");
  const open = await graph.invoke(
    { messages: [new HumanMessage(JSON.stringify([{ calls: [ask("b")] }]))] },
    thread,
  );
  expect(isInterrupted(open)).toBe(true);
  expect(asked()).toEqual([]);
});
