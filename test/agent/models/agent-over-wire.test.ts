import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { InMemoryStore, MemorySaver } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { offlineReply } from "../../../src/agent/models/offline/offline-model.ts";
import { resolveModel } from "../../../src/agent/models/resolve.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { StoreBackend } from "../../../src/backends/stores/langgraph-store.ts";
import { RunFailure } from "../../../src/core/errors.ts";
import { collect, paused, graphOf } from "../../support/run-agent.ts";
import { wireServer, type WireReply, type WireRequest } from "../../support/wire-server.ts";
import { PROVIDERS } from "../../support/wire-thread.ts";

/** Answers as the offline model would, through the provider's protocol. */
function offlineOverWire({ messages, body }: WireRequest): WireReply {
  const history = messages.flatMap(({ role, text, toolCalls, toolResults }): BaseMessage[] => {
    const results = toolResults.map(
      ({ id, text, error }) =>
        new ToolMessage({ content: text, tool_call_id: id, status: error ? "error" : "success" }),
    );
    if (role === "system") return [];
    if (role === "assistant") return [new AIMessage({ content: text, tool_calls: toolCalls })];
    return [...results, ...(text === "" ? [] : [new HumanMessage(text)])];
  });
  const tools =
    (body["tools"] as { name?: string; description?: string; function?: object }[] | undefined) ?? [];
  const { text, tool_calls: calls = [] } = offlineReply(history, tools);
  return { text, toolCalls: calls.map(({ id = "", name, args }) => ({ id, name, args })) };
}

describe.each(PROVIDERS)("an agent over $protocol", ({ protocol, provider, spec }) => {
  async function agentOn(
    reply: (request: WireRequest) => WireReply,
    params: DeepAgentParams = {},
    requestMs = 20_000,
  ) {
    const server = await wireServer(reply);
    const store = new InMemoryStore();
    const workspace = new StoreBackend({ store, namespace: ["workspace"] });
    for (const folder of ["src", "docs", "lib"])
      await workspace.write(`/${folder}/tide.md`, "# Tide\n\nThe tide.\n");
    const { model } = await resolveModel({
      model: spec,
      env: server.env(provider),
      requestMs,
    });
    const memories = new StoreBackend({ store, namespace: ["memories"] });
    const agent = buildAgent({
      model,
      backend: new CompositeBackend(new StateBackend(), { "/workspace/": workspace, "/memories/": memories }),
      checkpointer: new MemorySaver(),
      ...params,
    });
    return { agent, server, workspace };
  }

  test("plans, delegates, asks, is refused, goes on: every request keeps the provider's rules", async () => {
    const { agent, server, workspace } = await agentOn(offlineOverWire, {
      interruptOn: { write_file: true },
    });
    let events = await collect(agent, { kind: "task", task: "What is the tide?" });
    expect(events.filter(({ kind }) => kind === "subagent_started")).toHaveLength(3);
    for (const type of ["reject", "approve"] as const) {
      const answers = Object.fromEntries(paused(events).map(({ id }) => [id, { decisions: [{ type }] }]));
      events = await collect(agent, { kind: "resume", answers });
    }
    const last = events.at(-1);
    expect(last?.kind === "finished" && last.answer).toContain("was rejected");
    expect((await workspace.read("/deepagent-report.md")).code).toBe("not_found");
    expect(server.refusals).toEqual([]);
    expect(new Set(server.requests.map((request) => request.protocol))).toEqual(new Set([protocol]));

    const again = await collect(agent, { kind: "task", task: "And the lib?" }, { runId: "run_2" });
    paused(again);
    expect(server.refusals).toEqual([]);
  });

  test("what a thread keeps of an answer does not repeat the request", async () => {
    const { agent } = await agentOn(() => ({ text: "done" }));
    await collect(agent, { kind: "task", task: "Say done." });
    const { values } = await graphOf(agent).getState({ configurable: { thread_id: "t1" } });
    const [, answer] = values["messages"] as BaseMessage[];
    expect(JSON.stringify(answer).length).toBeLessThan(2000);
  });

  test.each<[WireReply, string]>([
    [{ status: 429, message: "slow down" }, "model_rate_limited"],
    [{ status: 500, message: "oops" }, "model_unavailable"],
    [{ fault: "cut" }, "model_stream_broken"],
    [{ fault: "end" }, "model_stream_broken"],
    [{ fault: "hang" }, "model_unavailable"],
  ])("%j ends the run with %s", async (reply, code) => {
    const { agent } = await agentOn(
      () => reply,
      { limits: { modelPatienceMs: 0 } },
      "fault" in reply && reply.fault === "hang" ? 100 : undefined,
    );
    const error: unknown = await collect(agent, { kind: "task", task: "x" }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(RunFailure);
    expect((error as RunFailure).code).toBe(code);
  });
});
