import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import {
  type BaseCheckpointSaver,
  Command,
  type Interrupt,
  MemorySaver,
  interrupt,
  isInterrupted,
} from "@langchain/langgraph";
import type { PendingWrite } from "@langchain/langgraph-checkpoint";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { HitlRequest } from "../../../src/agent/contracts/question.ts";
import { MortalProcess } from "../../support/mortal-process.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";

const thread = { configurable: { thread_id: "t" } };
const go = { messages: [new HumanMessage("go")] };
const approve = { type: "approve" };
const act = (id: string): ScriptedToolCall => ({ id, name: "act", args: { id } });
const free = (id: string): ScriptedToolCall => ({ id, name: "free", args: { id } });
const delegate = (id: string): ScriptedToolCall => ({
  id,
  name: "task",
  args: { description: id, subagent_type: "general-purpose" },
});

interface World {
  checkpointer?: BaseCheckpointSaver;
  did?: (id: string) => unknown;
}

/** An agent whose tasks make the calls of `replies` by their text; `ran` is what took effect. */
function acting(replies: Record<string, ScriptedToolCall[]>, world: World = {}) {
  const ran: string[] = [];
  const { checkpointer = new MemorySaver(), did = (id: string) => ran.push(id) } = world;
  const take = async ({ id }: { id: string }): Promise<string> => `did ${String(await did(id)) && id}`;
  const schema = z.object({ id: z.string() });
  const ask = tool(() => String(interrupt("which?")), {
    name: "ask",
    description: "d",
    schema: z.object({}),
  });
  const agent = createDeepAgent({
    checkpointer,
    tools: [...["act", "free"].map((name) => tool(take, { name, description: "d", schema })), ask],
    interruptOn: { act: true },
    model: scriptedModel(({ messages }) => {
      if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "end" };
      return { toolCalls: replies[messages.findLast(HumanMessage.isInstance)?.text ?? ""] ?? [] };
    }),
  });
  const resume = (given: unknown): Promise<unknown> => agent.invoke(new Command({ resume: given }), thread);
  return { agent, ran, resume };
}

const openIn = (chunk: unknown): Array<Interrupt<HitlRequest>> =>
  isInterrupted<HitlRequest>(chunk) ? chunk.__interrupt__ : [];
const callsIn = ([first]: Array<Interrupt<HitlRequest>>): string[] =>
  first?.value?.actionRequests.map(({ toolCallId }) => toolCallId) ?? [];
const idsIn = ([first]: Array<Interrupt<HitlRequest>>): string[] =>
  first?.value?.actionRequests.map(({ interruptId = "" }) => interruptId) ?? [];
const two = { go: [act("a"), free("f"), act("b")] };

describe("calls that wait for approval", () => {
  it("are one interrupt in the order of the reply, while the others run, once", async () => {
    const { agent, ran, resume } = acting(two);
    const open = openIn(await agent.invoke(go, thread));
    expect(open).toHaveLength(1);
    expect(Object.keys(open[0]?.value ?? {}).sort()).toEqual(["actionRequests", "agent", "reviewConfigs"]);
    expect(callsIn(open)).toEqual(["a", "b"]);
    expect(ran).toEqual(["f"]);
    const editedAction = { name: "act", args: { id: "B" } };
    const rejected = { type: "reject", message: "not that" };
    await resume({ decisions: [rejected, { type: "edit", editedAction }] });
    expect(ran).toEqual(["f", "B"]);
    const { messages } = (await agent.getState(thread)).values;
    const results = (messages as ToolMessage[]).filter(({ type }) => type === "tool"); // the agent's own
    expect(results.map(({ tool_call_id, text }) => [tool_call_id, text])).toEqual(
      expect.arrayContaining([
        ["a", "not that"],
        ["b", "did B"],
      ]),
    );
  });

  it("are answered by the id of their interrupt, or each by its own", async () => {
    const { agent, ran, resume } = acting({ go: [act("a"), act("b"), act("c")] });
    const open = openIn(await agent.invoke(go, thread));
    const [, second = ""] = idsIn(open);
    const rest = openIn(await resume({ [second]: { decisions: [approve] } }));
    expect([callsIn(rest), ran]).toEqual([["a", "c"], ["b"]]);
    // The first list would now decide about other calls.
    const stale = { [open[0]?.id ?? ""]: { decisions: [approve, approve] } };
    await expect(resume(stale)).rejects.toMatchObject({ code: "INTERRUPT_NOT_PENDING" });
    const twice = { [rest[0]?.id ?? ""]: { decisions: [approve, approve] }, [idsIn(rest)[0] ?? ""]: approve };
    await expect(resume(twice)).rejects.toThrow("answered twice");
    expect(openIn(await resume({ [rest[0]?.id ?? ""]: { decisions: [approve, approve] } }))).toEqual([]);
    expect(ran.toSorted()).toEqual(["a", "b", "c"]);
  });

  it.each([
    ["a subagent", { go: [delegate("in")], in: [act("a"), act("b")] }, ["a", "b"]],
    [
      "two subagents",
      { go: [delegate("in"), delegate("also")], in: [act("a")], also: [act("b")] },
      ["a", "b"],
    ],
    [
      "an agent and its subagent",
      { go: [act("a"), delegate("in")], in: [act("b"), act("c")] },
      ["a", "b", "c"],
    ],
  ])("of %s are one interrupt, whose requests say whose they are", async (_what, replies, all) => {
    const { agent, ran, resume } = acting(replies);
    const open = openIn(await agent.invoke(go, thread));
    expect(open).toHaveLength(1);
    expect(callsIn(open)).toEqual(all);
    const { agent: shared, actionRequests = [] } = open[0]?.value ?? {};
    const owners = actionRequests.map((request) => request.agent?.map(({ callId }) => callId));
    expect(owners.every((owner) => owner !== undefined)).toBe(true);
    expect(shared === undefined).toBe(new Set(owners.map((owner) => owner?.join())).size > 1);
    await resume({ decisions: all.map(() => approve) });
    expect(ran.toSorted()).toEqual(all);
  });

  it("beside a question of another kind take the list, and the question stays open", async () => {
    const { agent, ran, resume } = acting({ go: [{ id: "q", name: "ask", args: {} }, act("a"), act("b")] });
    const open = openIn(await agent.invoke(go, thread));
    expect(callsIn(open)).toEqual(["a", "b"]);
    expect(open[1]?.value).toBe("which?");
    await expect(resume("this one")).rejects.toThrow("Several interrupts are pending");
    const rest = openIn(await resume({ decisions: [approve, approve] }));
    expect(ran.toSorted()).toEqual(["a", "b"]);
    expect(rest.map(({ value }) => value)).toEqual(["which?"]);
    expect(openIn(await resume("this one"))).toEqual([]);
  });

  it.each([[], [approve], [approve, approve, approve]])(
    "refuse a list of another length, by interrupt id too: %j",
    async (...decisions) => {
      const { agent, ran, resume } = acting(two);
      const open = openIn(await agent.invoke(go, thread));
      const [a, b] = idsIn(open);
      const text = `2 decisions expected, got ${decisions.length}. Give one for each waiting call, in this order: act (${a}), act (${b}).`;
      await expect(resume({ decisions })).rejects.toThrow(text);
      await expect(resume({ [open[0]?.id ?? ""]: { decisions } })).rejects.toThrow(text);
      expect(ran).toEqual(["f"]);
      expect(openIn({ __interrupt__: (await agent.getState(thread)).tasks[0]?.interrupts })).toEqual(open);
    },
  );
});

describe("the interrupt of all calls is shown", () => {
  it.each([
    ["values", { streamMode: "values" }],
    ["updates", { streamMode: "updates" }],
    ["several modes", { streamMode: ["values", "updates", "messages"] }],
    ["subgraphs", { streamMode: "values", subgraphs: true }],
    ["several modes and subgraphs", { streamMode: ["updates", "values"], subgraphs: true }],
  ])("last in a stream of %s, in the form of its chunks", async (_what, options) => {
    const { agent } = acting({ go: [act("a"), delegate("in"), free("f")], in: [act("b"), act("c")] });
    const chunks: unknown[] = [];
    // The types of LangGraph know each form by itself.
    const stream: AsyncIterable<unknown> = await agent.stream(go, { ...thread, ...options } as never);
    for await (const chunk of stream) chunks.push(chunk);
    const payload = (chunk: unknown): unknown => (Array.isArray(chunk) ? chunk.at(-1) : chunk);
    const shown = chunks.map((chunk) => openIn(payload(chunk))).filter((open) => open.length > 0);
    expect(shown.length).toBeGreaterThan(0);
    for (const open of shown) expect([open.length, callsIn(open)]).toEqual([1, ["a", "b", "c"]]);
    const places = new Set(
      chunks.map((chunk) => (Array.isArray(chunk) ? JSON.stringify(chunk.slice(0, -1)) : "")),
    );
    expect(shown.length).toBeLessThanOrEqual(places.size);
    expect(openIn(payload(chunks.at(-1)))).not.toEqual([]);
  });

  it("by streamEvents of both versions", async () => {
    const seen: string[][] = [];
    const options = { ...thread, version: "v2" as const, streamMode: "values" as const };
    for await (const { event, data } of acting(two).agent.streamEvents(go, options)) {
      const open = event === "on_chain_stream" ? openIn(data.chunk) : [];
      if (open.length > 0) seen.push(callsIn(open));
    }
    expect(seen).toEqual([["a", "b"]]);
    const run = await acting(two).agent.streamEvents(go, { ...thread, version: "v3" });
    await run.output;
    expect(run.interrupts.map(({ payload }) => callsIn([{ value: payload as HitlRequest }]))).toEqual([
      ["a", "b"],
    ]);
  });

  it("in the newest state by the first task that waits, and in earlier ones as it was", async () => {
    const { agent, resume } = acting({ go: [free("f"), act("a"), delegate("in"), act("c")], in: [act("b")] });
    const open = openIn(await agent.invoke(go, thread));
    for (const subgraphs of [false, true]) {
      const { tasks } = await agent.getState(thread, { subgraphs });
      expect(tasks.flatMap(({ interrupts }) => interrupts)).toEqual(open);
      expect(tasks).toHaveLength(2); // that of the free call, and one that stands for those that wait
    }
    for await (const { tasks } of agent.getStateHistory(thread, { limit: 1 }))
      expect(tasks.flatMap(({ interrupts }) => interrupts)).toEqual(open);
    await resume({ decisions: [approve, approve, approve] });
    const { tasks, next } = await agent.getState(thread);
    expect([tasks, next]).toEqual([[], []]);
  });
});

/** Resumes three calls in a process that is killed at a step, and then in one that lives. */
async function killedAt(steps: number) {
  const file = join(mkdtempSync(join(tmpdir(), "shared-")), "threads.db");
  const stored = new Set<string>();
  const ran: string[] = [];
  const note = (writes: PendingWrite[]): void => {
    const results = writes.flatMap(([, value]) => value).filter(ToolMessage.isInstance);
    for (const { tool_call_id } of results) stored.add(tool_call_id);
  };
  /** The calls take effect one after the other, so that the process can end between two results. */
  const didIn = (process: MortalProcess) => async (id: string) => {
    const earlier = ["a", "b", "c"].filter((other) => other < id);
    while (earlier.some((other) => !stored.has(other)) && !process.isEnded) await setImmediate();
    return process.trace(() => ran.push(stored.has(id) ? `${id} again` : id));
  };
  const begin = (process: MortalProcess) =>
    acting(
      { go: [act("a"), act("b"), act("c")] },
      { did: didIn(process), checkpointer: process.checkpointer(file, note) },
    );
  const asking = new MortalProcess();
  await begin(asking).agent.invoke(go, thread);
  asking.close();
  const mortal = new MortalProcess({ steps, how: "kill" });
  await Promise.race([begin(mortal).resume({ decisions: [approve, approve, approve] }), mortal.died]);
  const isKilled = mortal.isEnded;
  mortal.close();
  const kept = [...stored];

  const living = new MortalProcess();
  const { agent, resume } = begin(living);
  await agent.invoke(null, thread);
  const askedAgain: string[] = [];
  for (;;) {
    const open = (await agent.getState(thread)).tasks.flatMap(({ interrupts }) => interrupts);
    if (open.length === 0) break;
    askedAgain.push(...callsIn(open));
    await resume({ decisions: callsIn(open).map(() => approve) });
  }
  living.close();
  return { isKilled, kept, ran, askedAgain };
}

it(
  "runs no call again whose result was stored before a kill, nor asks about it",
  { tags: "long" },
  async () => {
    let between = 0;
    for (let steps = 1, isOver = false; !isOver; steps += 1) {
      const { isKilled, kept, ran, askedAgain } = await killedAt(steps);
      expect(new Set(ran)).toEqual(new Set(["a", "b", "c"]));
      expect(askedAgain.filter((call) => kept.includes(call))).toEqual([]);
      if (kept.length > 0 && kept.length < 3) between += 1;
      isOver = !isKilled;
    }
    expect(between).toBeGreaterThan(1);
  },
);

it("runs an answered call once when the process is killed before the next one has ended", async () => {
  const ends: Array<{ kept: string[]; ran: string[] }> = [];
  // The first step at which only the first result is stored.
  for (let steps = 1; steps < 40 && ends.length === 0; steps += 1) {
    const end = await killedAt(steps);
    if (end.kept.join() === "a") ends.push(end);
  }
  expect(ends.map(({ ran }) => ran.filter((id) => id.startsWith("a")))).toEqual([["a"]]);
});
