import type { BaseMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { modelFallbackMiddleware } from "../../../src/agent/models/fallback.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { RunFailure } from "../../../src/core/errors.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { handSetTime } from "../../support/hand-set-time.ts";
import { collect, skippingPauses, toolMessages, graphOf } from "../../support/run-agent.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";
import { wireServer, type WireReply, type WireRequest } from "../../support/wire-server.ts";

const TASK = { kind: "task", task: "go" } as const;
const SPECS = {
  anthropic: "anthropic:claude-sonnet-4-5-20250929",
  openai: "openai:gpt-4.1",
} as const;
type Provider = keyof typeof SPECS;

async function modelOver(provider: Provider, reply: (request: WireRequest) => WireReply) {
  const server = await wireServer(reply);
  const { model } = await resolveModel({
    model: SPECS[provider],
    env: server.env(provider),
  });
  return { model, server };
}

/** Calls are not tried again, where nothing else is said. */
const agentOf = (params: DeepAgentParams) =>
  buildAgent({ checkpointer: new MemorySaver(), limits: { modelPatienceMs: 0 }, ...params });

const OVERLOADED: WireReply = { status: 529, type: "overloaded_error", message: "overloaded" };

describe.each([
  ["anthropic", "openai"],
  ["openai", "anthropic"],
] as const)("from %s to %s", (first, second) => {
  test("the second answers when the first is overloaded, and the journal hears of it", async () => {
    const failing = await modelOver(first, () => OVERLOADED);
    const working = await modelOver(second, () => ({ text: "the second answered" }));
    const events = await collect(agentOf({ model: failing.model, fallbackModels: [working.model] }), TASK);
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "the second answered" });
    const name = (provider: Provider) => SPECS[provider].slice(provider.length + 1);
    expect(events.filter(({ kind }) => kind === "warning")).toEqual([
      {
        kind: "warning",
        agent: [],
        message: `The model ${name(first)} could not answer (model_unavailable, HTTP 529). The agent continues with ${name(second)}.`,
      },
    ]);
    expect(failing.server.requests).toHaveLength(1);
    expect(working.server.refusals).toEqual([]);
  });

  test("a thread one began keeps the other's rules, and the first rests", async () => {
    let calls = 0;
    const begins = await modelOver(first, () => {
      calls += 1;
      if (calls > 1) return OVERLOADED;
      return { text: "Let me look.", toolCalls: [{ id: "call_1", name: "ls", args: {} }] };
    });
    const goesOn = await modelOver(second, ({ messages }) =>
      messages.filter(({ role }) => role === "assistant").length === 1
        ? { toolCalls: [{ id: "call_2", name: "ls", args: {} }] }
        : { text: "done" },
    );
    const agent = agentOf({ model: begins.model, fallbackModels: [goesOn.model] });
    const events = await collect(agent, TASK);
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "done" });
    expect(await toolMessages(agent)).toHaveLength(2);
    expect(goesOn.server.refusals).toEqual([]);
    expect(begins.server.requests).toHaveLength(2);
    expect(goesOn.server.requests).toHaveLength(2);
  });
});

describe("falling back", () => {
  test.each<[WireReply, string]>([
    [{ status: 401, message: "bad key" }, "model_auth"],
    [{ status: 400, message: "prompt is too long: 9 tokens > 8 maximum" }, "context_overflow"],
    [{ status: 400, message: "no" }, "model_error"],
  ])("is not done for %j", async (reply, code) => {
    const failing = await modelOver("anthropic", () => reply);
    const spare = scriptedModel(() => ({ text: "never" }));
    const agent = agentOf({ model: failing.model, fallbackModels: [spare], summarization: false });
    const error: unknown = await collect(agent, TASK).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code });
    expect(spare.requests).toEqual([]);
  });

  test.each<[WireReply]>([
    [{ status: 429, message: "slow down" }],
    [{ status: 404, type: "not_found_error", message: "no such model" }],
    [{ status: 404, message: "No endpoints found that support tool use." }],
    [{ fault: "refuse" }],
    [{ fault: "cut" }],
  ])("is done for %j", async (reply) => {
    const failing = await modelOver("anthropic", () => reply);
    const spare = scriptedModel(() => ({ text: "spare" }));
    const events = await collect(agentOf({ model: failing.model, fallbackModels: [spare] }), TASK);
    expect(events.at(-1)).toMatchObject({ answer: "spare" });
  });

  test("ends with the last failure when every model fails, and passes what cannot be resolved", async () => {
    const first = await modelOver("anthropic", () => OVERLOADED);
    const last = await modelOver("openai", () => ({ status: 429, message: "slow down" }));
    const missing = () => Promise.reject(new Error("not installed"));
    const agent = agentOf({ model: first.model, fallbackModels: [missing, last.model] });
    const error: unknown = await collect(agent, TASK).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunFailure);
    expect((error as RunFailure).code).toBe("model_rate_limited");
  });

  test("serves subagents too", async () => {
    const main = callingOnce({
      name: "task",
      args: { description: "look", subagent_type: "general-purpose" },
    });
    const failing = await modelOver("anthropic", () => OVERLOADED);
    const spare = scriptedModel(() => ({ text: "spare report" }));
    const agent = agentOf({
      model: main,
      fallbackModels: [spare],
      subagents: [
        { name: "general-purpose", description: "d", systemPrompt: "p", model: async () => failing.model },
      ],
    });
    await collect(agent, TASK);
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["spare report"]);
  });

  test("begins after a few tries, and waits for the first when every model fails", async () => {
    const first = await modelOver("anthropic", ({ number }) => (number < 9 ? OVERLOADED : { text: "first" }));
    const last = await modelOver("openai", () => ({ status: 429, message: "slow down" }));
    const agent = agentOf({ model: first.model, fallbackModels: [last.model], limits: {} });
    const events = await collect(agent, TASK, {}, skippingPauses(handSetTime()));
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "first" });
    const before = events.findIndex(({ kind }) => kind === "warning");
    expect(before).toBeGreaterThan(1);
    expect(before).toBeLessThan(8);
    expect(first.server.requests).toHaveLength(10);
    expect(last.server.requests.length).toBeLessThan(8);
  });

  test("is for one call when the first broke off: the next one goes to it again", async () => {
    let isBroken = true;
    const first = await modelOver("anthropic", () => (isBroken ? { fault: "cut" } : { text: "first" }));
    const spare = scriptedModel(() => {
      isBroken = false;
      return { toolCalls: [{ name: "ls", args: {} }] };
    });
    const events = await collect(agentOf({ model: first.model, fallbackModels: [spare] }), TASK);
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "first" });
    expect(spare.requests).toHaveLength(1);
  });

  test("asks the first again after its rest", async () => {
    let now = 0;
    const spare = scriptedModel(() => ({ text: "spare" }));
    const layer = modelFallbackMiddleware([spare], silentLogger, () => now);
    let overloaded = true;
    const failing = scriptedModel(() => {
      if (overloaded) throw Object.assign(new Error("overloaded"), { status: 529 });
      return { text: "first" };
    });
    const agent = agentOf({ model: failing, middleware: [layer] });
    const answer = async (runId: string): Promise<string> => {
      await collect(agent, TASK, { runId });
      const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
      const messages: BaseMessage[] = values["messages"];
      return messages.at(-1)?.text ?? "";
    };
    expect(await answer("r1")).toBe("spare");
    overloaded = false;
    expect(await answer("r2")).toBe("spare");
    now += 60_001;
    expect(await answer("r3")).toBe("first");
  });
});
