import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../../src/agent/agent.ts";
import { collect, toolMessages, graphOf } from "../../../support/run-agent.ts";
import { scriptedModel, type ScriptedRequest } from "../../../support/scripted-model.ts";
import { PROVIDERS, wireThread } from "../../../support/wire-thread.ts";

const isAskedToReport = ({ messages }: ScriptedRequest): boolean =>
  /Report now/.test(messages.at(-1)?.text ?? "");
/** Works for ever, and reports when it is asked to. */
const working = (report = "Two of three are done.") =>
  scriptedModel((request) =>
    isAskedToReport(request) ? { text: report } : { text: "Looking.", toolCalls: [{ name: "ls", args: {} }] },
  );
const run = async (params: DeepAgentParams, model = working()) => {
  const agent = buildAgent({ model, checkpointer: new MemorySaver(), ...params });
  const events = await collect(agent, { kind: "task", task: "go" });
  return { agent, model, events, last: events.at(-1) };
};
const answerTo = (limit: string, rest: string) =>
  `Stopped: the limit of ${limit} is reached. Send a follow-up message to continue.\n\n${rest}`;

describe("a run that reaches a limit", () => {
  it.each<[string, string, DeepAgentParams, number]>([
    ["max_iterations", "2 model calls for one run", { limits: { maxIterations: 2 } }, 3],
    ["max_tool_calls", "1 tool calls for one run", { limits: { toolCalls: 1 } }, 3],
    ["max_steps", "graph steps (recursionLimit)", { recursionLimit: 7 }, 3],
  ])("reports in one more call, which can call no tool: %s", async (stopReason, what, params, calls) => {
    const { last, model, agent, events } = await run(params);
    const answer = answerTo(what, "Report:\nTwo of three are done.");
    expect(last).toEqual({ kind: "finished", answer, stopReason });
    expect(model.requests).toHaveLength(calls);
    expect(model.requests.at(-1)?.toolChoice).toBe("none");
    expect(model.requests.at(-1)?.messages.at(-1)?.text).toContain(`the limit of ${what} is reached`);
    expect(events.filter(({ kind }) => kind === "model_called")).toHaveLength(calls);
    // The thread keeps the report, and goes on.
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    const kept = (values["messages"] as BaseMessage[]).at(-1);
    expect(AIMessage.isInstance(kept) && kept.usage_metadata?.total_tokens).toBe(15);
  });

  it.each<[string, DeepAgentParams["limits"] & object]>([
    ["max_tokens", { tokens: 30 }],
    ["max_iterations", { maxIterations: 2, tokens: 30 }],
    ["max_cost", { costUsd: 30, prices: { scripted: { input: 1_000_000, output: 1_000_000 } } }],
  ])("keeps what was said where nothing is left for a report: %s", async (stopReason, limits) => {
    const { last, model } = await run({ limits });
    expect(last).toMatchObject({
      stopReason,
      answer: expect.stringMatching(/^Stopped: .* continue\.\n\nWhat it said before:\nLooking\.$/),
    });
    expect(model.requests).toHaveLength(2);
  });

  it("keeps what was said when the report fails, is empty, or calls tools instead", async () => {
    for (const reply of [
      () => Promise.reject(Object.assign(new Error("down"), { status: 503 })),
      () => ({ text: " " }),
      () => ({ toolCalls: [{ name: "ls", args: {} }] }),
    ]) {
      const model = scriptedModel((request) =>
        isAskedToReport(request) ? reply() : { text: "Looking.", toolCalls: [{ name: "ls", args: {} }] },
      );
      const { last, events } = await run({ limits: { maxIterations: 1, modelPatienceMs: 0 } }, model);
      const answer = answerTo("1 model calls for one run", "What it said before:\nLooking.");
      expect(last).toEqual({ kind: "finished", answer, stopReason: "max_iterations" });
      expect(events.filter(({ kind }) => kind === "tool_started")).toHaveLength(1);
    }
  });

  it("tells the agent that delegated what was done, when it is a subagent", async () => {
    const model = scriptedModel((request) => {
      if (isAskedToReport(request)) return { text: "Half is done." };
      if (!request.tools.includes("task")) return { toolCalls: [{ name: "ls", args: {} }] };
      const args = { description: "d", subagent_type: "general-purpose" };
      return request.messages.some(({ type }) => type === "tool")
        ? { text: "end" }
        : { toolCalls: [{ name: "task", args }] };
    });
    const { last, agent } = await run({ limits: { maxIterations: 2 } }, model);
    expect(last).toEqual({ kind: "finished", answer: "end" });
    expect((await toolMessages(agent))[0]?.text).toBe(
      "Error: subagent 'general-purpose' failed: Stopped: the limit of 2 model calls for one subagent is reached.\n\nReport:\nHalf is done.",
    );
  });
});

it.each(PROVIDERS)("$protocol takes the request for a report", async (provider) => {
  const ls = { text: "Looking.", toolCalls: [{ name: "ls", args: {} }] };
  const { go, goOn, server } = await wireThread(provider, [ls, { text: "Half." }], {
    limits: { maxIterations: 1 },
  });
  expect((await go()).at(-1)).toMatchObject({
    stopReason: "max_iterations",
    answer: expect.stringMatching(/Report:\nHalf\.$/),
  });
  const { body, tools } = server.requests.at(-1) ?? {};
  expect([tools?.length, body?.["tool_choice"]]).toEqual(
    provider.provider === "openai" ? [0, undefined] : [expect.any(Number), { type: "none" }],
  );
  await goOn();
});
