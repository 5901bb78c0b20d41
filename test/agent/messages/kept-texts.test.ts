import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { InMemoryStore, MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type Agent, buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { FilesystemBackend } from "../../../src/backends/filesystem/filesystem.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { collect, paused, toolMessages, graphOf, resumeAgentInput } from "../../support/run-agent.ts";
import { type ScriptedModel, scriptedModel, type ScriptedReply } from "../../support/scripted-model.ts";
import { attempts } from "../../support/effort.ts";
import { FILES, base64 } from "../../support/media-files.ts";
import { filesIn } from "../../support/files-in.ts";

const LIMIT = 200_000;
const lines = (count: number, word = "line"): string =>
  Array.from({ length: count }, (_, n) => `${word} ${n} ${"x".repeat(40)}`).join("\n");
/** Its request stands at the end, as it often does. */
const large = `${lines(5000)}\nNow say which line is odd.`;

/** What a provider's cache compares: the messages as they are sent. */
const sent = (messages: readonly BaseMessage[]): string[] =>
  messages.map((message) => {
    const calls = AIMessage.isInstance(message) ? message.tool_calls : undefined;
    return JSON.stringify([message.type, message.content, calls]);
  });
const human = (model: ScriptedModel, at = -1): BaseMessage[] =>
  (model.requests.at(at)?.messages ?? []).filter((message) => HumanMessage.isInstance(message));
const messagesOf = async (agent: Agent): Promise<BaseMessage[]> =>
  (await graphOf(agent).getState({ configurable: { thread_id: "t1" } })).values["messages"] ?? [];
const ls: ScriptedReply = { toolCalls: [{ name: "ls", args: {} }] };

function expectPrefixes(model: ScriptedModel): void {
  const requests = model.requests.map(({ messages }) => sent(messages));
  for (const [n, later] of requests.slice(1).entries()) {
    expect(later.slice(0, requests[n]?.length)).toEqual(requests[n]);
  }
}

describe("a person's message above 50,000 tokens", () => {
  const agentOf = (params: DeepAgentParams = {}, calls = 2) => {
    const model = scriptedModel(({ call }) => (call < calls ? ls : { text: "end" }));
    return { model, agent: buildAgent({ model, checkpointer: new MemorySaver(), ...params }) };
  };

  it("is in a file before the model first sees it, and shown by its beginning and end from then on", async () => {
    const { agent, model } = agentOf();
    await collect(agent, { kind: "task", task: large });
    const path = "/conversation_history/message-run_1.md";
    const shown = human(model, 0)[0]?.text ?? "";
    expect(shown).toMatch(/^line 0 x+\n(?:line \d x+\n){9}\n\[The middle of this message is left out here\./);
    expect(shown).toContain(`All of it (${large.length} characters) is saved in ${path}:`);
    expect(shown).toMatch(/\nNow say which line is odd\.$/);
    expect((await agent.snapshot("t1")).files[path]?.content).toBe(large);
    expectPrefixes(model);
    const [kept] = await messagesOf(agent);
    expect([kept?.id, kept?.text, kept?.additional_kwargs]).toEqual([
      "run_1",
      shown,
      { lc_evicted_to: path },
    ]);
  });

  it.each<[string, DeepAgentParams["filesystem"], string]>([
    ["is exactly at the limit", {}, "x".repeat(LIMIT)],
    ["may be of any size", { humanEvictTokens: null }, large],
    ["is shorter than what would stand for it", { humanEvictTokens: 0 }, "say hi"],
  ])("stays as it is when it %s", async (_when, filesystem = {}, task) => {
    const { agent, model } = agentOf({ filesystem }, 0);
    await collect(agent, { kind: "task", task });
    expect(human(model)[0]?.text).toBe(task);
    expect((await agent.snapshot("t1")).files).toEqual({});
  });

  it("is cut between characters, and at the size that was configured", async () => {
    const { agent, model } = agentOf({ filesystem: { humanEvictTokens: 1000 } }, 0);
    const task = `a${"😀".repeat(4000)}z`;
    await collect(agent, { kind: "task", task });
    const shown = human(model)[0]?.text ?? "";
    expect(shown.length).toBeLessThan(2600);
    expect(shown.isWellFormed()).toBe(true);
    expect(shown).toMatch(/^a😀.*😀z$/su);
  });

  it("may be a follow-up, or what the agent is told while it works", async () => {
    const told: Array<{ id: string; text: string }> = [];
    const model = scriptedModel(({ call }) => {
      if (call === 0) told.push({ id: "m1", text: `${large} (meanwhile)` });
      return call < 3 ? ls : { text: "end" };
    });
    const agent = buildAgent({ model, checkpointer: new MemorySaver() });
    const options = { signal: new AbortController().signal, inbox: { messages: () => told } };
    for (const [runId, task] of [
      ["run_1", "go"],
      ["run_2", large],
    ] as const) {
      await agent.work("t1", { kind: "task", task }, { ...options, runId });
    }
    expect(Object.keys((await agent.snapshot("t1")).files)).toEqual([
      "/conversation_history/message-m1.md",
      "/conversation_history/message-run_2.md",
    ]);
    expect(Math.max(...human(model).map(({ text }) => text.length))).toBeLessThan(5000);
    expect((await messagesOf(agent)).map(({ id }) => id).filter((id) => /^(?:run|m)/.test(id ?? ""))).toEqual(
      ["run_1", "m1", "run_2"],
    );
    expectPrefixes(model);
  });

  it("keeps its images, and needs no id of its own", async () => {
    const model = scriptedModel(({ call }) => (call === 0 ? ls : { text: "end" }));
    const agent = createDeepAgent({ model, checkpointer: new MemorySaver() });
    const image = {
      type: "image_url",
      image_url: { url: `data:image/png;base64,${base64(FILES["image/png"])}` },
    };
    const content = [{ type: "text", text: large }, image, { type: "text", text: "see above" }];
    const state = await agent.invoke(
      { messages: [new HumanMessage({ content })] },
      { configurable: { thread_id: "t1" } },
    );
    const [shown] = human(model, 0);
    expect(shown?.content).toEqual([{ type: "text", text: expect.stringMatching(/see above$/) }, image]);
    const [path = ""] = Object.keys(state.files);
    expect(state.files[path]?.content).toBe(`${large}see above`);
    expectPrefixes(model);
  });

  it("may be the task of a subagent, and is part of what a fork sees", async () => {
    const call = (id: string, subagent_type: string, description: string) => ({
      id,
      name: "task",
      args: { subagent_type, description },
    });
    const model = scriptedModel(({ messages, call: n }) => {
      if (n > 0) return { text: messages.some(({ text }) => text.includes("saved in")) ? "short" : "whole" };
      return { toolCalls: [call("a", "general-purpose", `${large} sub`), call("b", "twin", "more")] };
    });
    const twin = { name: "twin", description: "d", systemPrompt: "p", mode: "fork" as const };
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), subagents: [twin] });
    await collect(agent, { kind: "task", task: large });
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["short", "short"]);
    const { files } = await agent.snapshot("t1");
    expect(Object.values(files).map(({ content }) => content)).toEqual([large, `${large} sub`]);
  });

  it("does not lose an earlier file of another content to the same name", async () => {
    const store = new InMemoryStore();
    const backend = new CompositeBackend(new StateBackend(), {
      "/conversation_history/": new StoreBackend({ store, namespace: ["history"] }),
    });
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), backend });
    for (const threadId of ["t1", "t2", "t1b"]) {
      await collect(agent, { kind: "task", task: threadId + large.slice(2) }, { threadId: threadId });
    }
    const kept = await store.search(["history"], { limit: 10 });
    expect(kept.map(({ value }) => String(value["content"]).slice(0, 3)).sort()).toEqual(
      ["t1n", "t1b", "t2n"].sort(),
    );
    expect(human(model)[0]?.text).toContain("/conversation_history/message-run_1-");
  });

  it("is the same for every later request, through crashes, new processes, pauses and follow-ups", async () => {
    const turn = fc.record({
      size: fc.constantFrom(10, 300, 3000),
      steps: fc.array(fc.constantFrom("ls", "ask", "crash"), { maxLength: 4 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 3 }), async (turns) => {
        const checkpointer = new MemorySaver();
        const store = new InMemoryStore();
        const writes = new Map<string, string>();
        let script: string[] = [];
        const model = scriptedModel(() => {
          const step = script.shift();
          if (step === "crash") throw new Error("the process is gone");
          if (step === "ls") return ls;
          return step === "ask" ? { toolCalls: [{ name: "ask", args: {} }] } : { text: "end" };
        });
        const ask = tool(() => "asked", { name: "ask", description: "a", schema: z.object({}) });
        const fresh = () =>
          buildAgent({
            model,
            checkpointer,
            tools: [ask],
            interruptOn: { ask: true },
            filesystem: { humanEvictTokens: 250 },
            backend: new CompositeBackend(StateBackend, {
              "/conversation_history/": new StoreBackend({ store, namespace: ["h"] }),
            }),
          });
        for (const [n, { size, steps }] of turns.entries()) {
          script = [...steps];
          const task = lines(Math.ceil(size / 40), `turn${n}`);
          const at = { runId: `run_${n}` };
          writes.set(`run_${n}`, task);
          let events = await collect(fresh(), { kind: "task", task }, at).catch(() => undefined);
          while (events?.at(-1)?.kind !== "finished") {
            const open = events === undefined ? [] : paused(events);
            const answers = Object.fromEntries(
              open.map(({ id }) => [id, { decisions: [{ type: "approve" as const }] }]),
            );
            const input = open.length > 0 ? resumeAgentInput(answers) : ({ kind: "continue" } as const);
            events = await collect(fresh(), input, at).catch(() => undefined);
          }
        }
        expectPrefixes(model);
        const files = await store.search(["h"], { limit: 20 });
        const evicted = [...writes].filter(([, task]) => task.length > 1000);
        const whole = new Map(files.map(({ key, value }) => [key, value["content"]]));
        expect(whole).toEqual(new Map(evicted.map(([id, task]) => [`/message-${id}.md`, task])));
      }),
      attempts(25),
    );
  });
});

describe("a text that the backend does not take", () => {
  it.each<[string, () => DeepAgentParams]>([
    [
      "its paths are those of the machine",
      () => ({ backend: new FilesystemBackend({ rootDir: filesIn() }) }),
    ],
    ["it is read-only", () => ({ backend: new PolicyBackend(new StateBackend(), { readOnly: true }) })],
    [
      "rules forbid it",
      () => ({ permissions: [{ operations: ["write"], paths: ["/**"], mode: "deny" as const }] }),
    ],
  ])("because %s stays with the thread, where the file tools find it", async (_why, params) => {
    const result = lines(4000, "row");
    const long = tool(() => result, { name: "long", description: "is long", schema: z.object({}) });
    const stored = "/large_tool_results/c1";
    const message = "/conversation_history/message-run_1.md";
    const model = scriptedModel(({ call }) => {
      if (call === 0) return { toolCalls: [{ id: "c1", name: "long", args: {} }] };
      if (call > 1) return { text: "end" };
      return {
        toolCalls: [
          { name: "read_file", args: { file_path: stored, offset: 3998 } },
          { name: "read_file", args: { file_path: message, offset: 5000 } },
          { name: "grep", args: { pattern: "row 3999", path: "/large_tool_results" } },
          { name: "glob", args: { pattern: "*", path: "/large_tool_results" } },
          { name: "ls", args: { path: "/conversation_history/" } },
        ],
      };
    });
    const agent = buildAgent({ model, checkpointer: new MemorySaver(), tools: [long], ...params() });
    await collect(agent, { kind: "task", task: large });
    const [evicted, read, said, found, named, listed] = (await toolMessages(agent)).map(({ text }) => text);
    expect(evicted).toContain(`It is saved in ${stored}.`);
    expect(read).toContain("row 3999");
    expect(said).toContain("Now say which line is odd.");
    expect(found).toContain("4000: row 3999");
    expect(named).toBe(stored);
    expect(listed).toContain(message);
    expect((await agent.snapshot("t1")).files[stored]?.content).toBe(result);
  });
});
