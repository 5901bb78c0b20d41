// @module-tag long
import { join } from "node:path";
import { ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentEvent, type AgentInput, type HitlResponse, buildAgent } from "../../../src/agent/agent.ts";
import type { ToolFunction } from "../../../src/agent/contracts/middleware.ts";
import { attempts } from "../../support/effort.ts";
import { effectLogOf, type End, MortalProcess, type StoredEffects } from "../../support/mortal-process.ts";
import { resumeAgentInput, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

/** One call of a program. */
interface Step {
  tool: "look" | "act" | "ask";
  /** The person's decision about a call of `ask`. */
  isApproved: boolean;
}

/** Groups of calls: those of a group are made together, group by group. */
type Plan = Step[][];

/** Makes the calls of a plan, each with what came before it, and returns their results. */
const sourceOf = (plan: Plan): string => `
  const plan = ${JSON.stringify(plan)};
  const results = [];
  let made = 0;
  for (const group of plan) {
    const before = results.length + ":" + Math.floor(Math.random() * 1e9) + ":" + (Date.now() % 1000);
    results.push(...(await Promise.all(group.map(async ({ tool }) => {
      const key = String((made += 1));
      try {
        const first = await tools[tool]({ key, before });
        return first + (await tools.look({ key: key + "b", before: first }));
      } catch (error) {
        return key + " failed: " + error.message;
      }
    }))));
  }
  return results;`;

const step = fc.record({
  tool: fc.constantFrom<Step["tool"]>("look", "act", "ask"),
  isApproved: fc.boolean(),
});
const plans = fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 });
const ends = fc.array(
  fc.record({ steps: fc.integer({ min: 1, max: 90 }), how: fc.constantFrom<End["how"]>("kill", "abort") }),
  { maxLength: 5, size: "max" },
);

/** What outlives processes. */
class World {
  readonly ran: Array<{ name: string; key: string; before: string }> = [];
  readonly effects: StoredEffects = new Map();
  readonly #folder = filesIn();
  readonly #plan: Plan;

  constructor(plan: Plan) {
    this.#plan = plan;
  }

  agentOf(process: MortalProcess) {
    const tool = (name: string, kind: "read" | "execute"): ToolFunction => ({
      name,
      description: name,
      kind,
      schema: z.object({ key: z.string(), before: z.string() }),
      invoke: ({ key, before }) =>
        process.trace(() => {
          this.ran.push({ name, key: String(key), before: String(before) });
          return `${name} ${String(key)};`;
        }),
    });
    return buildAgent({
      model: scriptedModel(({ messages }) =>
        process.trace(() =>
          messages.some((message) => ToolMessage.isInstance(message))
            ? { text: "end" }
            : { toolCalls: [{ id: "outer", name: "run_program", args: { source: sourceOf(this.#plan) } }] },
        ),
      ),
      programs: true,
      tools: [tool("look", "read"), tool("act", "execute"), tool("ask", "execute")],
      interruptOn: { ask: true },
      generalPurpose: false,
      checkpointer: process.checkpointer(join(this.#folder, "checkpoints.db"), () => undefined),
    });
  }
}

/** Works on the program until it has ended, over as many processes as it takes; gives what the model read. */
async function tell(plan: Plan, world: World, ends: readonly End[]): Promise<string> {
  const left = [...ends];
  const answers = new Map<string, HitlResponse>();
  const steps = plan.flat();
  const processes: MortalProcess[] = [];
  // Ends the threads of processes that were killed.
  const gone = new AbortController();
  try {
    for (let turn = 0; turn < 60; turn += 1) {
      const process = new MortalProcess(left.shift());
      processes.push(process);
      const agent = world.agentOf(process);
      const input: AgentInput =
        answers.size === 0 ? { kind: "task", task: "go" } : resumeAgentInput(Object.fromEntries(answers));
      const events: AgentEvent[] = [];
      const signal = AbortSignal.any([process.signal, gone.signal]);
      const effects = effectLogOf(process, world.effects);
      const options = { runId: "run_1", signal, effects, events: process.journal(events) };
      const working = agent
        .work("t1", input, options)
        .then((end) => process.trace(() => void events.push(end)));
      await Promise.race([working, process.died]).catch((error: unknown) => {
        if (!process.isEnded) throw error;
        return process.settled();
      });
      const last = events.at(-1);
      if (last?.kind === "finished") return (await toolMessages(agent))[0]?.text ?? "";
      if (last?.kind !== "paused") continue;
      for (const { id, request } of last.interrupts) {
        expect(answers.has(id), "a question is asked again").toBe(false);
        const decisions = request.actionRequests.map(({ args }) => {
          const { isApproved } = steps[Number(args["key"]) - 1] ?? { isApproved: false };
          return isApproved ? ({ type: "approve" } as const) : ({ type: "reject", message: "no" } as const);
        });
        answers.set(id, { decisions });
      }
    }
    throw new Error("the program never ends");
  } finally {
    for (const process of processes) process.close();
    gone.abort();
  }
}

function check(plan: Plan, { ran }: World, text: string): void {
  const results = JSON.parse(text) as string[];
  expect(results).toHaveLength(plan.flat().length);
  for (const [index, { tool, isApproved }] of plan.flat().entries()) {
    const key = String(index + 1);
    const made = ran.filter((call) => call.key === key);
    const result = results[index] ?? "";
    if (tool === "ask" && !isApproved) {
      expect(made, key).toEqual([]);
      expect(result).toBe(`${key} failed: no`);
      continue;
    }
    expect(
      new Set(made.map(({ before }) => before)).size,
      "it is the same call each time",
    ).toBeLessThanOrEqual(1);
    if (tool !== "look") expect(made.length, `${key} takes effect once`).toBeLessThanOrEqual(1);
    if (result.includes("unknown whether")) expect(tool).not.toBe("look");
    else {
      expect(made.length).toBeGreaterThan(0);
      expect(result).toBe(`${tool} ${key};look ${key}b;`);
    }
  }
}

async function tellAndCheck(plan: Plan, ends: readonly End[]): Promise<void> {
  const world = new World(plan);
  try {
    check(plan, world, await tell(plan, world, ends));
  } finally {
  }
}

it("each effect of a program takes place at most once, wherever processes end", async () => {
  await fc.assert(fc.asyncProperty(plans, ends, tellAndCheck), attempts(10));
}, 600_000);

it("a program is finished after a kill at every step", async () => {
  const plan: Plan = [
    [
      { tool: "act", isApproved: true },
      { tool: "ask", isApproved: true },
      { tool: "look", isApproved: true },
    ],
    [{ tool: "ask", isApproved: false }],
  ];
  for (let steps = 1; steps < 80; steps += 3) await tellAndCheck(plan, [{ steps, how: "kill" }]);
}, 600_000);
