import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { PolicyBackend } from "../../../src/backends/policy.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { calls, isSummarizer, long, refuseAbove, work } from "../../support/long-results.ts";
import { collect, graphOf, withInternals } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

describe("a summary", () => {
  it("counts towards the tokens of a run, beside the time that is counted there too", async () => {
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) return { text: "SUMMARY", usage: { inputTokens: 1000, outputTokens: 0 } };
      return call < 4 ? calls(call, [4000]) : { text: "end" };
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      tools: [long],
      limits: { tokens: 100_000, wallTimeMs: 100_000 },
      summarization: { trigger: { tokens: 5500 }, keep: { messages: 2 } },
    });
    await collect(agent, { kind: "task", task: "go" });
    const summaries = model.requests.length - work(model).length;
    const { values } = await withInternals(graphOf(agent)).getState({ configurable: { thread_id: "t1" } });
    expect(summaries).toBeGreaterThan(0);
    expect(values["_spent"]).toMatchObject({ tokens: 1000 * summaries, workedMs: expect.any(Number) });
  });

  it("that fails is not tried at every step, and its history is written once", async () => {
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) throw new Error("no summary today");
      return messages.length < 60 ? calls(call, [400]) : { text: "end" };
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      tools: [long],
      summarization: { trigger: { tokens: 4000 }, keep: { messages: 4 } },
    });
    await collect(agent, { kind: "task", task: "the task" });
    expect(model.requests.length - work(model).length).toBeLessThan(20);
    const { files } = await agent.snapshot("t1");
    const history = String(files["/conversation_history/t1.md"]?.content);
    const results = [...history.matchAll(/^## Result of long \((\S+)\)$/gm)].map(([, id]) => id);
    expect(results.length).toBeGreaterThan(10);
    expect(new Set(results).size).toBe(results.length);
  });

  it("of more than its model can read is made piece by piece", async () => {
    const pieces: string[] = [];
    const model = scriptedModel(({ messages, call }) => {
      if (!isSummarizer(messages)) return call < 8 ? calls(call, [30_000]) : { text: "end" };
      refuseAbove(50_000, messages);
      pieces.push(messages[1]?.text ?? "");
      return { text: `SUMMARY ${pieces.length}` };
    });
    const summarization = { trigger: { tokens: 55_000 }, keep: { messages: 2 } };
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long], summarization });
    await collect(agent, { kind: "task", task: "the task" });
    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.slice(1).every((text, n) => text.includes(`SUMMARY ${n + 1}`))).toBe(true);
    expect(model.requests.at(-1)?.messages[1]?.text).toContain(`SUMMARY ${pieces.length}`);
    const said = pieces
      .map((text) => text.replace(/^Summary of what came before:\n\nSUMMARY \d+\n\n/, ""))
      .join("");
    for (const n of [0, 1, 2]) expect(said).toContain(`n${n}_0`);
  });

  it("is made where the backend takes no files: the thread keeps what it stands for", async () => {
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      return call < 9 ? calls(call, [100]) : { text: "end" };
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      tools: [long],
      backend: new PolicyBackend(new StateBackend(), { readOnly: true }),
      summarization: { trigger: { messages: 6 }, keep: { messages: 2 } },
    });
    await collect(agent, { kind: "task", task: "the task" });
    const { files } = await agent.snapshot("t1");
    const history = String(files["/conversation_history/t1.md"]?.content);
    const results = [...history.matchAll(/^## Result of long \((\S+)\)$/gm)].map(([, id]) => id);
    expect(results.length).toBeGreaterThan(3);
    expect(new Set(results).size).toBe(results.length);
    expect(history.startsWith("## Person\n\nthe task\n")).toBe(true);
  });

  it("names the media that it stands for", async () => {
    const model = scriptedModel(({ messages, call }) => {
      if (isSummarizer(messages)) return { text: "SUMMARY" };
      return call < 3 ? calls(call, [100]) : { text: "end" };
    });
    const summarization = { trigger: { messages: 4 }, keep: { messages: 2 } };
    const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [long], summarization });
    const image = { type: "image", mimeType: "image/png", data: "AAAA" };
    const message = new HumanMessage({ content: [{ type: "text", text: "look 😀" }, image] });
    await graphOf(agent).invoke({ messages: [message] }, { configurable: { thread_id: "t1" } });
    const { files } = await agent.snapshot("t1");
    expect(String(files["/conversation_history/t1.md"]?.content)).toContain(
      "## Person\n\nlook 😀\n\n[image/png]\n",
    );
  });
});

it("counting tokens reads each text once, however long the conversation grows", async () => {
  const perStep: number[] = [0];
  const countTokens = (text: string): number => {
    perStep[perStep.length - 1] = (perStep.at(-1) ?? 0) + text.length;
    return Math.ceil(text.length / 4);
  };
  const model = scriptedModel(({ call }) => {
    perStep.push(0);
    return call < 200 ? calls(call, [500]) : { text: "end" };
  });
  const agent = buildAgent({
    checkpointer: new MemorySaver(),
    model,
    tools: [long],
    summarization: { countTokens },
  });
  await collect(agent, { kind: "task", task: "the task" });
  const [first = 0, ...later] = perStep.slice(0, -1);
  expect(first).toBeGreaterThan(5000);
  expect(later).toHaveLength(200);
  expect(Math.max(...later)).toBeLessThan(700);
  expect(Math.min(...later)).toBeGreaterThan(500);
});
