import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { RunFailure } from "../../../src/core/errors.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedReplyFunction } from "../../support/scripted-model.ts";

const listing: ScriptedReplyFunction = () => ({ toolCalls: [{ name: "ls", args: {} }] });
const agentOf = (reply: ScriptedReplyFunction, params = {}) =>
  buildAgent({ checkpointer: new MemorySaver(), model: scriptedModel(reply), ...params });

describe("a run ends", () => {
  it.each([4, 5, 6, 7, 20])("at its limit of %d graph steps, in order and with a reason", async (steps) => {
    const hooks = { name: "Hooks", afterModel: () => undefined, afterAgent: () => undefined };
    for (const [limit, middleware] of [
      [steps, []],
      [steps + 2, [hooks]],
    ] as const) {
      const agent = agentOf(listing, { recursionLimit: limit, middleware });
      const events = await collect(agent, { kind: "task", task: "go" });
      expect(events.at(-1)).toMatchObject({ kind: "finished", stopReason: "max_steps" });
      const more = await collect(agent, { kind: "task", task: "more" }, { runId: "run_2" });
      expect(more.at(-1)).toMatchObject({ kind: "finished", stopReason: "max_steps" });
      expect(more.filter(({ kind }) => kind === "tool_started").length).toBeGreaterThan(0);
    }
  });

  it("with a stable failure when hooks leave no step to end in order", async () => {
    const circling = { name: "Circling", beforeModel: () => ({ jumpTo: "model" as const }) };
    const failure = await collect(agentOf(listing, { recursionLimit: 9, middleware: [circling] }), {
      kind: "task",
      task: "go",
    }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RunFailure);
    expect((failure as RunFailure).code).toBe("recursion_limit");
  });

  it("when the model fails, with the provider's failure made stable", async () => {
    const agent = agentOf(() => {
      throw Object.assign(new Error("401 invalid x-api-key"), { status: 401 });
    });
    const failure = await collect(agent, { kind: "task", task: "go" }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RunFailure);
    expect((failure as RunFailure).code).toBe("model_auth");
  });

  it("when it is aborted, and goes on from where it was", async () => {
    const controller = new AbortController();
    const agent = agentOf(({ call, messages }) => {
      if (call === 0) return { toolCalls: [{ name: "ls", args: {} }] };
      if (call === 1) {
        controller.abort(new Error("stop"));
        return { delayMs: 60_000 };
      }
      return { text: `after ${messages.length} messages` };
    });
    const aborted = await collect(agent, { kind: "task", task: "go" }, { signal: controller.signal }).catch(
      (error: unknown) => error,
    );
    expect(aborted).toHaveProperty("message", "stop");
    const events = await collect(agent, { kind: "continue" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "after 4 messages" });
    expect(await toolMessages(agent)).toHaveLength(1);
  });

  it("for a failing subagent only, while its siblings and the agent go on", async () => {
    const agent = agentOf(({ call, tools, messages }) => {
      if (!tools.includes("task")) {
        if (messages.some(({ text }) => text === "bad")) throw new Error("subagent broke");
        return { text: "good report" };
      }
      if (call > 0) return { text: "end" };
      return {
        toolCalls: ["bad", "good"].map((description) => ({
          name: "task",
          args: { description, subagent_type: "general-purpose" },
        })),
      };
    });
    const events = await collect(agent, { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const [bad, good] = await toolMessages(agent);
    expect(bad?.text).toMatch(/^Error: subagent 'general-purpose' failed: /);
    expect(good?.text).toBe("good report");
  });
});
