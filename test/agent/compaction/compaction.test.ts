import { type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import fc from "fast-check";
import { type AgentMiddleware, modelFallbackMiddleware, modelRetryMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { repairHistory } from "../../../src/agent/messages/mend.ts";
import {
  calls,
  isSummarizer,
  long,
  refuseAbove,
  sizeOf,
  withWindow,
  work,
} from "../../support/long-results.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { attempts } from "../../support/effort.ts";

describe("a conversation that outgrows its window", () => {
  it("whatever it consists of, is made to fit: the run ends well and nothing is lost", async () => {
    const turns = fc.array(
      fc.array(fc.constantFrom(10, 5000, 30_000, 79_000), { minLength: 1, maxLength: 5 }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(turns, fc.constantFrom(undefined, 30_000, 60_000), async (sizes, window) => {
        const model = withWindow(
          scriptedModel(({ messages }) => {
            refuseAbove(90_000, messages);
            expect(repairHistory(messages)).toBe(messages);
            if (isSummarizer(messages)) return { text: `SUMMARY ${messages.length}` };
            const turn = turnOf(messages, sizes.length);
            return turn < sizes.length ? calls(turn, sizes[turn] ?? []) : { text: "end" };
          }),
          window,
        );
        const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
        const events = await collect(agent, { kind: "task", task: "the task" });
        expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
        const { files } = await agent.snapshot("t1");
        const kept = Object.values(files).map(({ content }) => String(content));
        const shown = model.requests.at(-1)?.messages.map(({ text }) => text) ?? [];
        for (const { tool_call_id: id, text } of await toolMessages(agent)) {
          const isEvicted = /is too large to show/.test(text);
          const whole = isEvicted
            ? (kept.find((content) => content.endsWith(id.replace("c", "n"))) ?? "")
            : text;
          expect(whole).not.toBe("");
          const isThere = [...shown, ...kept].some((place) => place.includes(whole));
          expect(isThere).toBe(true);
        }
      }),
      attempts(40),
    );
  });

  /** The turn that comes next: the results seen so far, or the summary, tell how many were done. */
  function turnOf(messages: readonly BaseMessage[], total: number): number {
    const seen = messages.flatMap((message) =>
      ToolMessage.isInstance(message) ? [Number(/^c(\d+)_/.exec(message.tool_call_id)?.[1])] : [],
    );
    return seen.length === 0
      ? messages.some(({ text }) => text.includes("SUMMARY"))
        ? total
        : 0
      : Math.max(...seen) + 1;
  }

  it("of one turn alone gets its largest results as files, and keeps the others", async () => {
    const model = withWindow(
      scriptedModel(({ call }) => (call === 0 ? calls(0, [70_000, 60_000, 100]) : { text: "end" })),
      40_000,
    );
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
    await collect(agent, { kind: "task", task: "the task" });
    const results = (model.requests.at(-1)?.messages ?? []).filter((message) =>
      ToolMessage.isInstance(message),
    );
    expect(results.map(({ text }) => text.includes("It is saved in /large_tool_results/c0_"))).toEqual([
      true,
      false,
      false,
    ]);
    const { files } = await agent.snapshot("t1");
    expect(String(files["/large_tool_results/c0_0"]?.content)).toHaveLength(70_004);
    // The thread itself still has it.
    expect((await toolMessages(agent))[0]?.text).toHaveLength(70_004);
  });

  it("begins each request with the bytes of the one before, but where it compacts", async () => {
    const model = withWindow(
      scriptedModel(({ messages, call }) => {
        if (isSummarizer(messages)) return { text: "SUMMARY" };
        return call < 30 ? calls(call, [3000, 100]) : { text: "end" };
      }),
      10_000,
    );
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
    await collect(agent, { kind: "task", task: "the task" });
    const requests = work(model).map(({ messages }) =>
      messages.map((message) => JSON.stringify(message.toDict())),
    );
    const breaks = requests
      .slice(1)
      .filter((later, n) => requests[n]?.some((text, at) => later[at] !== text));
    const summaries = model.requests.length - requests.length;
    expect(summaries).toBeGreaterThan(0);
    expect(breaks.length).toBeLessThanOrEqual(summaries);
    expect(breaks.length).toBeLessThan(requests.length / 3);
  });
});

describe("a request that the provider finds too long", () => {
  const overflowing = (window: number, size: number, params: DeepAgentParams = {}) => {
    const model = scriptedModel(({ messages, call }) => {
      refuseAbove(window, messages);
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      return call < 6 ? calls(call, [size]) : { text: "end" };
    });
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long], ...params });
    return { model, agent };
  };
  const fail = (text: string): never => {
    throw new Error(text);
  };
  const failureOf = (attempt: Promise<unknown>): Promise<unknown> =>
    attempt.then(
      () => undefined,
      (error: unknown) => error,
    );

  it("is sent once more after a compaction, also when it was compacted just before", async () => {
    // Six results of 40,000 characters; the trigger comes at four, and what it keeps is still too long.
    const { agent, model } = overflowing(100_000, 40_000, {
      summarization: { trigger: { tokens: 45_000 }, keep: { tokens: 32_000 } },
    });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const refused = work(model).filter(({ messages }) => sizeOf(messages) > 100_000);
    expect(refused.length).toBeGreaterThan(0);
    for (const { call } of refused) {
      const next = model.requests.slice(call + 1).find(({ messages }) => !isSummarizer(messages));
      expect(sizeOf(next?.messages ?? [])).toBeLessThan(100_000);
    }
  });

  it.each<[string, () => AgentMiddleware]>([
    ["an answer", () => modelRetryMiddleware({ maxRetries: 1, initialDelayMs: 1 })],
    ["an error of its own", () => modelRetryMiddleware({ maxRetries: 0, onFailure: () => fail("no luck") })],
    ["a call of another model", () => modelFallbackMiddleware(overflowing(50_000, 1).model)],
  ])("is compacted, too, where middleware makes %s of the failure", async (_what, made) => {
    const { agent, model } = overflowing(100_000, 40_000, { middleware: [made()] });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    expect(model.requests.some(({ messages }) => isSummarizer(messages))).toBe(true);
  });

  it.each([
    ["near the window", 28_000, true],
    ["far from it", 1000, false],
  ])("is taken for that once, if it is refused for no known reason %s", async (_place, size, isCompacted) => {
    let refused = 0;
    const model = withWindow(
      scriptedModel(({ messages, call }) => {
        if (isSummarizer(messages)) return { text: "SUMMARY" };
        if (call < 4) return calls(call, [size]);
        if (!messages.some(({ text }) => text.includes("SUMMARY"))) {
          refused += 1;
          throw Object.assign(new Error("Bad request"), { status: 400 });
        }
        return { text: "end" };
      }),
      36_000,
    );
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
    const run = collect(agent, { kind: "task", task: "go" });
    if (isCompacted) expect((await run).at(-1)).toEqual({ kind: "finished", answer: "end" });
    else expect(await failureOf(run)).toMatchObject({ code: "model_error" });
    expect(refused).toBe(1);
  });

  it("is not sent again where nothing can be made shorter", async () => {
    const { agent, model } = overflowing(100, 10);
    expect(await failureOf(collect(agent, { kind: "task", task: "go" }))).toMatchObject({
      code: "context_overflow",
    });
    expect(model.requests).toHaveLength(1);
  });

  it("is sent again exactly once", async () => {
    const { agent, model } = overflowing(5000, 40_000, { filesystem: { systemPrompt: "x".repeat(4500) } });
    expect(await failureOf(collect(agent, { kind: "task", task: "go" }))).toMatchObject({
      code: "context_overflow",
    });
    expect(work(model).length).toBeLessThanOrEqual(2);
  });

  it("is made shorter without a summary when the model gives none", async () => {
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) throw new Error("no summary today");
      refuseAbove(100_000, messages);
      return call < 3 ? calls(call, [40_000]) : { text: "end" };
    });
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
    expect((await collect(agent, { kind: "task", task: "go" })).at(-1)).toMatchObject({ answer: "end" });
    expect(model.requests.at(-1)?.messages[1]?.text).toBe("go");
  });

  it("goes on without a document that nobody could know the length of", async () => {
    const pdf = Buffer.from("%PDF-1.4 of very many pages %%EOF").toString("base64");
    const model = scriptedModel(({ messages, call }) => {
      const isLong = messages.some(
        ({ content }) => Array.isArray(content) && content.some(({ type }) => type !== "text"),
      );
      if (isLong) refuseAbove(0, messages);
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      if (call === 0) {
        return { toolCalls: [{ name: "write_file", args: { file_path: "/a.pdf", content: pdf } }] };
      }
      return call === 1
        ? { toolCalls: [{ id: "r", name: "read_file", args: { file_path: "/a.pdf" } }] }
        : { text: "end" };
    });
    const agent = buildAgent({ checkpointer: new MemorySaver(), model });
    expect((await collect(agent, { kind: "task", task: "go" })).at(-1)).toMatchObject({ answer: "end" });
    expect(model.requests.at(-1)?.messages.at(-1)?.text).toBe(
      "[application/pdf left out: with it the conversation is too long to read]",
    );
    await collect(agent, { kind: "task", task: "more" }, { runId: "run_2" });
    expect(work(model).filter(({ call }) => call > 1)).toHaveLength(3);
  });

  it("may be a subagent's: it is compacted there, and its history kept by its call", async () => {
    const model = scriptedModel(({ messages, tools, call }) => {
      refuseAbove(100_000, messages);
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      if (tools.includes("task")) {
        const args = { description: "dig", subagent_type: "general-purpose" };
        return call === 0 ? { toolCalls: [{ id: "t", name: "task", args }] } : { text: "end" };
      }
      return call < 6 ? calls(call, [40_000]) : { text: "report" };
    });
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long] });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ answer: "end" });
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["report"]);
    const { files } = await agent.snapshot("t1");
    expect(String(files["/conversation_history/t1-t.md"]?.content)).toContain("dig");
  });
});
