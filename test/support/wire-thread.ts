import { expect } from "vitest";
import { MemorySaver } from "@langchain/langgraph";
import {
  type Agent,
  type AgentEvent,
  type AgentInput,
  buildAgent,
  type DeepAgentParams,
  type EarlierEnd,
  type WorkOptions,
} from "../../src/agent/agent.ts";
import { resolveModel } from "../../src/agent/models/resolve.ts";
import { collect } from "./run-agent.ts";
import { startWireServer, type WireReply, type WireRequest, type WireServer } from "./wire-server.ts";

/** The protocols of both providers, with a model that speaks each. */
export const PROVIDERS = [
  { protocol: "anthropic", provider: "anthropic", spec: "anthropic:claude-sonnet-4-5-20250929" },
  { protocol: "openai-chat", provider: "openai", spec: "openai:gpt-4.1" },
  { protocol: "openai-responses", provider: "openai", spec: "openai:gpt-5.3-codex" },
] as const;

/** What the model answers to one request. */
export type Step = WireReply | ((request: WireRequest) => WireReply);

export interface WireThread {
  server: WireServer;
  run(input: AgentInput, options?: Partial<WorkOptions>): Promise<AgentEvent[]>;
  go(options?: Partial<WorkOptions>): Promise<AgentEvent[]>;
  /** The thread goes on: whatever it holds, the provider takes it. */
  goOn(after?: EarlierEnd): Promise<void>;
  /** The agent as a new process makes it. */
  agent(): Agent;
}

/** A thread whose model answers one step per request, and with "end" when there are no more. */
export async function wireThread(
  { provider, spec }: (typeof PROVIDERS)[number],
  steps: readonly Step[],
  params: DeepAgentParams | (() => DeepAgentParams) = {},
): Promise<WireThread> {
  let next = 0;
  const server = await startWireServer((request) => {
    const step = steps[next++] ?? { text: "end" };
    return typeof step === "function" ? step(request) : step;
  });
  const { model } = await resolveModel({ model: spec, env: server.env(provider), requestMs: 20_000 });
  const checkpointer = new MemorySaver();
  /** As a new process makes it. */
  const agent = () =>
    buildAgent({ model, checkpointer, ...(typeof params === "function" ? params() : params) });
  const run = (input: AgentInput, options: Partial<WorkOptions> = {}): Promise<AgentEvent[]> => {
    return collect(agent(), input, options);
  };
  const go = (options: Partial<WorkOptions> = {}) => run({ kind: "task", task: "go" }, options);
  /** The thread goes on: whatever it holds, the provider takes it. */
  const goOn = async (after?: EarlierEnd): Promise<void> => {
    const events = await run({ kind: "task", task: "and now?", after }, { runId: "run_2" });
    expect(server.refusals).toEqual([]);
    expect(events.at(-1)).toMatchObject({ kind: "finished" });
  };
  return { server, run, go, goOn, agent };
}
