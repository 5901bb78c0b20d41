// @module-tag long
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AgentEvent,
  type AgentInput,
  type HitlResponse,
  type PendingInterrupt,
} from "../../../src/agent/agent.ts";
import type { Decision } from "../../../src/tools/request.ts";
import { effectLogOf, type End, MortalProcess } from "../../support/mortal-process.ts";
import {
  allowedValue,
  answerTo,
  batch,
  type Call,
  decisionOf,
  type Leaf,
  leavesOf,
} from "./approvals/batch.ts";
import { World } from "./approvals/world.ts";
import { attempts, IS_LONG } from "../../support/effort.ts";
import { resumeAgentInput } from "../../support/run-agent.ts";

/** How one pause is answered: which of the open requests (cyclic picks), in which order, and badly before. */
const round = fc.record({
  picks: fc.array(fc.nat({ max: 15 }), { minLength: 1, maxLength: 5 }),
  bad: fc.boolean(),
});
type Round = typeof round extends fc.Arbitrary<infer Value> ? Value : never;
const end = fc.record({
  steps: fc.integer({ min: 1, max: 160 }),
  how: fc.constantFrom<End["how"]>("kill", "abort"),
});

const NEVER: End = { steps: Infinity, how: "kill" };

/** What one process did: everything it told, and whether it ended before its work did. */
interface Life {
  events: AgentEvent[];
  isOver: boolean;
}

/** Everything that happens to one task, over all the processes that work on it. */
class Story {
  readonly world = new World();
  readonly #leaves: ReadonlyMap<string, Leaf>;
  readonly #task: AgentInput;
  readonly #processes: MortalProcess[] = [];
  readonly #ends: End[];
  readonly #answers = new Map<string, HitlResponse>();
  /** Answered questions that were open at the end of a process all the same. */
  readonly #openAgain = new Set<string>();
  /** Interrupt ids by the call they ask about, as it is shown. */
  readonly #asked = new Map<string, string>();
  /** Processes that ended before their work did. */
  ended = 0;

  constructor(calls: readonly Call[], ends: readonly End[]) {
    this.#leaves = new Map(leavesOf(calls).map((leaf) => [leaf.key, leaf]));
    this.#task = { kind: "task", task: JSON.stringify({ calls, prefix: "" }) };
    this.#ends = [...ends];
  }

  async tell(rounds: readonly Round[]): Promise<AgentEvent | undefined> {
    for (let turn = 0; turn < 100; turn += 1) {
      const { picks, bad } = rounds[turn % rounds.length] ?? { picks: [0], bad: false };
      const { events, isOver } = await this.#live(this.#next());
      const last = events.at(-1);
      if (!isOver && last?.kind !== "paused") return last;
      const open = last?.kind === "paused" && !isOver ? last.interrupts : [];
      expect(new Set(open.map(({ id }) => id)).size).toBe(open.length);
      if (bad && open[0]) await this.#answerBadly(open[0], open);
      // Of a process that ended, the person has seen the requests it told.
      for (const request of picked(isOver ? requestsIn(events) : open, picks)) this.#answer(request, isOver);
    }
    throw new Error("the approvals never end");
  }

  /** What the thread's files hold in the end. */
  async files(): Promise<Record<string, unknown>> {
    const process = new MortalProcess();
    this.#processes.push(process);
    const { files } = await this.world.agentOf(process).snapshot("t1");
    return Object.fromEntries(Object.entries(files).map(([path, { content }]) => [path, content]));
  }

  close(): void {
    for (const process of this.#processes) process.close();
  }

  #next(): AgentInput {
    return this.#answers.size === 0 ? this.#task : resumeAgentInput(Object.fromEntries(this.#answers));
  }

  async #live(input: AgentInput, end = this.#ends.shift()): Promise<Life> {
    const process = new MortalProcess(end);
    this.#processes.push(process);
    const effects = effectLogOf(process, this.world.effects);
    const events: AgentEvent[] = [];
    const options = { runId: "run_1", signal: process.signal, effects, events: process.journal(events) };
    const working = this.world
      .agentOf(process)
      .work("t1", input, options)
      .then((end) => process.trace(() => void events.push(end)));
    try {
      await Promise.race([working, process.died]);
    } catch (error) {
      if (!process.isEnded) throw error;
      await process.settled(); // a server that stops hands its runs over with what they stored last
    }
    if (process.isEnded) this.ended += 1;
    const last = events.at(-1)?.kind;
    return { events, isOver: process.isEnded && last !== "finished" && last !== "paused" };
  }

  /** An answer that does not fit changes nothing. */
  async #answerBadly({ id }: PendingInterrupt, open: readonly PendingInterrupt[]): Promise<void> {
    const before = this.world.runs.length;
    const answers = { ...Object.fromEntries(this.#answers), [id]: { decisions: [] } };
    if (Object.keys(answers).length > 1) return; // what was answered would be taken
    const { events } = await this.#live(resumeAgentInput(answers), NEVER);
    const last = events.at(-1);
    expect(last?.kind === "paused" && last.interrupts.map((each) => each.id).sort()).toEqual(
      open.map((each) => each.id).sort(),
    );
    expect(this.world.runs).toHaveLength(before);
  }

  #answer({ id, request }: PendingInterrupt, early: boolean): void {
    const { toolCallId: key = "", args = {} } = request.actionRequests[0] ?? {};
    const leaf = this.#leaves.get(key);
    const answer = leaf && answerTo(leaf, args["value"]);
    if (!leaf || !answer) throw new Error(`asked about ${key}, which needs no approval`);
    const question = JSON.stringify([key, args]);
    expect(this.#asked.get(question) ?? id, "a question keeps its id").toBe(id);
    this.#asked.set(question, id);
    if (!this.#answers.has(id)) return this.#say(id, decisionOf(leaf, answer));
    if (early) return;
    if (answer === "edit_invalid") return this.#say(id, { type: "reject" });
    // The question was stored after its answer was given at the earliest.
    expect(this.#openAgain.has(id), `asked twice about ${key}`).toBe(false);
    this.#openAgain.add(id);
  }

  #say(id: string, decision: Decision): void {
    this.#answers.set(id, { decisions: [decision] });
  }
}

const picked = (open: readonly PendingInterrupt[], picks: readonly number[]): PendingInterrupt[] => [
  ...new Set(picks.flatMap((pick) => open[pick % open.length] ?? [])),
];

const requestsIn = (events: readonly AgentEvent[]): PendingInterrupt[] =>
  events.flatMap((event) =>
    event.kind === "approval_requested" ? [{ id: event.interruptId, request: event.request }] : [],
  );

/** The results of each call, in every agent's thread. */
function resultsByCall({ histories }: World): Map<string, string> {
  const results = new Map<string, string>();
  for (const messages of histories.values()) {
    const asked = messages.flatMap((message) =>
      AIMessage.isInstance(message) ? (message.tool_calls ?? []).map(({ id }) => id ?? "") : [],
    );
    const answered = messages.filter((message) => ToolMessage.isInstance(message));
    expect(answered.map(({ tool_call_id }) => tool_call_id).sort()).toEqual(asked.sort());
    for (const { tool_call_id, text } of answered) results.set(tool_call_id, text);
  }
  return results;
}

function check(calls: readonly Call[], { world, ended }: Story, files: Record<string, unknown>): void {
  expect(world.repeated).toEqual([]);
  const results = resultsByCall(world);
  for (const leaf of leavesOf(calls)) {
    const { key, call } = leaf;
    const ran = world.runs.filter((run) => run.key === key);
    const result = results.get(key) ?? "";
    const value = allowedValue(leaf);
    for (const run of ran) expect(run.value, key).toBe(value);
    if (call.kind === "file") expect(files[`/${key}.md`], key).toBe(value);
    if (value === undefined || call.kind === "file") continue;
    if (call.kind === "look") expect(ran.length).toBeLessThanOrEqual(1 + ended);
    else if (result.includes("unknown whether")) {
      expect(ran.length).toBeLessThanOrEqual(1);
      expect(ended).toBeGreaterThan(0);
      continue;
    } else expect(ran, key).toHaveLength(1);
    expect(result).toContain(call.kind === "look" ? `saw ${key}` : `did ${key}`);
  }
  if (ended === 0) expect(new Set(world.replies).size, "no agent thinks twice").toBe(world.replies.length);
}

/** Gives how many processes ended before their work did. */
const tellAndCheck = async (calls: Call[], rounds: Round[], ends: End[]): Promise<number> => {
  const story = new Story(calls, ends);
  try {
    expect(await story.tell(rounds)).toMatchObject({ kind: "finished", answer: "end " });
    check(calls, story, await story.files());
    return story.ended;
  } finally {
    story.close();
  }
};

describe("approvals", () => {
  const rounds = fc.array(round, { minLength: 1, maxLength: 6 });

  it("hold for any batch, any tree of subagents, answers in any order, and processes that end anywhere", async () => {
    const ends = fc.array(end, { maxLength: 5, size: "max" });
    await fc.assert(
      fc.asyncProperty(batch, rounds, ends, async (...story) => void (await tellAndCheck(...story))),
      attempts(12),
    );
  }, 600_000);

  it("hold wherever a process ends that goes on with answers", async () => {
    const calls: Call[] = [
      { kind: "swap", answer: "approve", again: "reject" },
      { kind: "task", calls: [{ kind: "swap", answer: "approve", again: "edit" }, { kind: "free" }] },
    ];
    const all = { picks: [0, 1, 2], bad: false };
    let ended = 1;
    for (let steps = 1; ended > 0; steps += IS_LONG ? 1 : 3) {
      ended = await tellAndCheck(calls, [all], [NEVER, { steps, how: "kill" }]);
    }
  });
});
