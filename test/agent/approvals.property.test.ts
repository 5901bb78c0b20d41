import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentEvent,
  buildAgent,
  type Decision,
  type PendingInterrupt,
  resumeAgentInput,
} from "../../src/agent/agent-core.ts";
import { createCheckpointer } from "../../src/storage/checkpointer.ts";
import { openDatabase } from "../../src/storage/database.ts";
import { collect, toolMessages } from "../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../support/scripted-model.ts";

type Answer = "approve" | "edit" | "reject" | "edit_invalid";
/** One call of a batch: a tool that needs approval, one that does not, or a subagent with a batch of its own. */
type Call = { kind: "gated"; answer: Answer } | { kind: "free" } | { kind: "task"; calls: Call[] };

const gated = fc
  .constantFrom<Answer>("approve", "edit", "reject", "edit_invalid")
  .map((answer): Call => ({ kind: "gated", answer }));
const free = fc.constant<Call>({ kind: "free" });
const task = (calls: fc.Arbitrary<Call[]>): fc.Arbitrary<Call> =>
  calls.map((own) => ({ kind: "task", calls: own }));
const leaf = fc.oneof({ weight: 3, arbitrary: gated }, { weight: 1, arbitrary: free });
const inner = fc.array(leaf, { minLength: 1, maxLength: 3 });
const middle = fc.array(fc.oneof({ weight: 3, arbitrary: leaf }, { weight: 1, arbitrary: task(inner) }), {
  minLength: 1,
  maxLength: 3,
});
const batch = fc.array(fc.oneof({ weight: 3, arbitrary: leaf }, { weight: 2, arbitrary: task(middle) }), {
  minLength: 1,
  maxLength: 8,
});

/** How one pause is answered: which of the open requests (cyclic picks), in which order, and badly before. */
const round = fc.record({
  picks: fc.array(fc.nat({ max: 15 }), { minLength: 1, maxLength: 5 }),
  bad: fc.boolean(),
});

interface Leaf {
  key: string;
  call: Exclude<Call, { kind: "task" }>;
}

/** Calls as a model makes them; a key says where in the tree a call is. */
function toolCallsOf(calls: readonly Call[], prefix: string): ScriptedToolCall[] {
  return calls.map((call, index) => {
    const key = `${prefix}${index}`;
    if (call.kind !== "task") return { id: key, name: call.kind, args: { key, value: "asked" } };
    const description = JSON.stringify({ calls: call.calls, prefix: `${key}.` });
    return { id: key, name: "task", args: { description, subagent_type: "general-purpose" } };
  });
}

const leavesOf = (calls: readonly Call[], prefix: string): Leaf[] =>
  calls.flatMap((call, index) =>
    call.kind === "task" ? leavesOf(call.calls, `${prefix}${index}.`) : [{ key: `${prefix}${index}`, call }],
  );

/** One world outside of the agent: what ran, over all processes. */
function world() {
  const runs: Array<{ key: string; value: string }> = [];
  const replies: string[] = [];
  const histories = new Map<string, BaseMessage[]>();
  const database = openDatabase(":memory:");
  const schema = z.object({ key: z.string(), value: z.enum(["asked", "changed"]) });
  const effect = (name: string) =>
    tool(
      (args) => {
        runs.push(args);
        return `did ${args.key}`;
      },
      { name, description: name, schema },
    );
  /** As a new process would make it: nothing but the database is shared. */
  const agent = () =>
    buildAgent({
      checkpointer: createCheckpointer(database),
      tools: [effect("gated"), effect("free")],
      interruptOn: { gated: true },
      limits: { subagentDepth: 2 },
      model: scriptedModel(({ messages }) => {
        const plan = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
        const { calls, prefix } = JSON.parse(plan) as { calls: Call[]; prefix: string };
        if (messages.some((message) => ToolMessage.isInstance(message))) {
          histories.set(prefix, messages);
          replies.push(`end ${prefix}`);
          return { text: "end" };
        }
        replies.push(`start ${prefix}`);
        return { toolCalls: toolCallsOf(calls, prefix) };
      }),
    });
  return { agent, runs, replies, histories, close: () => database.close() };
}

/** What the person says; an edit that does not fit is refused, or told to the model, and not tried again. */
function decisionFor(
  { id, request }: PendingInterrupt,
  leaves: ReadonlyMap<string, Leaf>,
  answered: Set<string>,
): Decision {
  const key = request.actionRequests[0]?.toolCallId ?? "";
  const leaf = leaves.get(key);
  if (leaf?.call.kind !== "gated") throw new Error(`asked about ${key}, which needs no approval`);
  const { answer } = leaf.call;
  const again = answered.has(id);
  answered.add(id);
  if (again && answer !== "edit_invalid") throw new Error(`asked twice about ${key}`);
  if (again) return { type: "reject" };
  if (answer === "approve" || answer === "reject") return { type: answer };
  const value = answer === "edit" ? "changed" : "nonsense";
  return { type: "edit", editedAction: { name: "gated", args: { key, value } } };
}

const openOf = (events: readonly AgentEvent[]): PendingInterrupt[] => {
  const last = events.at(-1);
  return last?.kind === "paused" ? last.interrupts : [];
};

function check(calls: readonly Call[], { runs, replies, histories }: ReturnType<typeof world>): void {
  for (const { key, call } of leavesOf(calls, "")) {
    const ran = runs.filter((run) => run.key === key);
    const allowed = call.kind === "free" || call.answer === "approve" || call.answer === "edit";
    expect(ran, key).toHaveLength(allowed ? 1 : 0);
    if (call.kind === "gated" && allowed)
      expect(ran[0]?.value).toBe(call.answer === "edit" ? "changed" : "asked");
  }
  expect(new Set(replies).size, "no agent thinks twice about the same").toBe(replies.length);
  for (const messages of histories.values()) {
    const asked = messages.flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [],
    );
    const answered = messages.filter((message) => ToolMessage.isInstance(message));
    expect(answered.map(({ tool_call_id }) => tool_call_id)).toEqual(asked.map(({ id }) => id));
  }
}

describe("approvals", () => {
  it("hold for any batch, any tree of subagents, answers in any order and restarts in between", async () => {
    await fc.assert(
      fc.asyncProperty(batch, fc.array(round, { minLength: 1, maxLength: 6 }), async (calls, rounds) => {
        const outside = world();
        try {
          const leaves = new Map(leavesOf(calls, "").map((found) => [found.key, found]));
          let events = await collect(outside.agent(), {
            kind: "task",
            task: JSON.stringify({ calls, prefix: "" }),
          });
          const answered = new Set<string>();
          for (let turn = 0; openOf(events).length > 0; turn += 1) {
            if (turn > 100) throw new Error("the approvals never end");
            const open = openOf(events);
            expect(new Set(open.map(({ id }) => id)).size).toBe(open.length);
            const { picks, bad } = rounds[turn % rounds.length] ?? { picks: [0], bad: false };
            const chosen = [...new Set(picks.flatMap((pick) => open[pick % open.length] ?? []))];
            if (bad && chosen[0]) {
              const before = outside.runs.length;
              events = await collect(
                outside.agent(),
                resumeAgentInput({ [chosen[0].id]: { decisions: [] } }),
              );
              expect(
                openOf(events)
                  .map(({ id }) => id)
                  .sort(),
              ).toEqual(open.map(({ id }) => id).sort());
              expect(outside.runs).toHaveLength(before);
            }
            const answers = Object.fromEntries(
              chosen.map((interrupt) => [
                interrupt.id,
                { decisions: [decisionFor(interrupt, leaves, answered)] },
              ]),
            );
            events = await collect(outside.agent(), resumeAgentInput(answers));
          }
          expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
          expect(answered.size).toBe([...leaves.values()].filter(({ call }) => call.kind === "gated").length);
          expect(await toolMessages(outside.agent())).toHaveLength(calls.length);
          check(calls, outside);
        } finally {
          outside.close();
        }
      }),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 12) },
    );
  }, 120_000);
});
