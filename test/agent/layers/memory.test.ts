import { type BaseMessage, SystemMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import type { Backend } from "../../../src/backends/backend.ts";
import { CompositeBackend } from "../../../src/backends/composite/composite.ts";
import { StateBackend } from "../../../src/backends/stores/state.ts";
import { snapshotFiles } from "../../../src/backends/runtime.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedReplyFunction } from "../../support/scripted-model.ts";

const FILE = "/memories/AGENTS.md";
const systemOf = (messages: readonly BaseMessage[] = []): string =>
  messages.find((message) => SystemMessage.isInstance(message))?.text ?? "";
/** The system prompt up to the memory, and the memory. */
const partsOf = (messages: readonly BaseMessage[] | undefined) => {
  const [before = "", memory = ""] = systemOf(messages).split("<agent_memory>");
  return { before, memory: memory.split("</agent_memory>")[0]?.trim() };
};

/** An agent whose memories are outside of its threads, where others change them too. */
function setup(reply: ScriptedReplyFunction, params: DeepAgentParams = {}) {
  const memories = new StateBackend({ files: snapshotFiles() });
  const model = scriptedModel(reply);
  const agent = buildAgent({
    checkpointer: new MemorySaver(),
    model,
    memory: [FILE],
    backend: new CompositeBackend(StateBackend, { "/memories/": memories }),
    ...params,
  });
  const run = (runId: string, threadId = "t1") =>
    collect(agent, { kind: "task", task: runId }, { runId, threadId });
  const save = (text: string) => memories.write("/AGENTS.md", text, { mode: "overwrite" });
  return { agent, model, run, save, memories };
}

describe("memory", () => {
  it("ends the system prompt: what changes between runs leaves everything before it as it was", async () => {
    const { model, run, save } = setup(() => ({ text: "end" }));
    await run("run_1");
    save("Jane likes tea.");
    await run("run_2");
    await run("run_3");
    await run("run_1", "t2");
    const parts = model.requests.map(({ messages }) => partsOf(messages));
    expect(parts.map(({ memory }) => memory)).toEqual([
      "(no memory yet)",
      `${FILE}\nJane likes tea.`,
      `${FILE}\nJane likes tea.`,
      `${FILE}\nJane likes tea.`,
    ]);
    expect(new Set(parts.map(({ before }) => before)).size).toBe(1);
    expect(parts[0]?.before).toContain("## Delegating");
    const [first, second] = model.requests.map(({ messages }) =>
      messages.slice(1).map(({ text, type }) => [type, text]),
    );
    expect(second?.slice(0, first?.length)).toEqual(first);
  });

  it("keeps its bytes during a run, whoever changes it, and is read anew by the next one", async () => {
    const { model, run, save, memories } = setup(({ call }) => {
      if (call === 0) {
        return { toolCalls: [{ name: "write_file", args: { file_path: FILE, content: "by the agent" } }] };
      }
      if (call === 1) save(`${memoryText()}, and by somebody else`);
      return call < 3 ? { toolCalls: [{ name: "ls", args: {} }] } : { text: "end" };
    });
    const memoryText = (): string => String(memories.read("/AGENTS.md").content);
    await run("run_1");
    expect(new Set(model.requests.map(({ messages }) => systemOf(messages))).size).toBe(1);
    await run("run_2");
    expect(partsOf(model.requests.at(-1)?.messages).memory).toBe(
      `${FILE}\nby the agent, and by somebody else`,
    );
  });

  it("that was deleted is gone; one that cannot be read for a while stays known", async () => {
    let isDown = false;
    const { model, run, save, memories } = setup(() => ({ text: "end" }));
    const failing: Backend = new Proxy<Backend>(memories, {
      get: (target, name) => {
        if (name === "readRaw" && isDown) return () => ({ error: "the store is busy", code: "io" });
        const value: unknown = Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      memory: [FILE],
      backend: new CompositeBackend(StateBackend, { "/memories/": failing }),
    });
    save("known");
    for (const [n, change] of [
      () => undefined,
      () => (isDown = true),
      () => (isDown = false),
      () => memories.delete("/AGENTS.md"),
    ].entries()) {
      change();
      await collect(agent, { kind: "task", task: "x" }, { runId: `run_${n}` });
    }
    expect(model.requests.map(({ messages }) => partsOf(messages).memory)).toEqual([
      `${FILE}\nknown`,
      `${FILE}\nknown`,
      `${FILE}\nknown`,
      "(no memory yet)",
    ]);
    await run("run_x", "t9");
  });

  it("that is very long is cut between characters, and says how to go on", async () => {
    const { model, run, save } = setup(() => ({ text: "end" }));
    save(`${"a\n".repeat(3)}${"😀".repeat(30_000)}`);
    await run("run_1");
    const { memory = "" } = partsOf(model.requests[0]?.messages);
    expect(memory.length).toBeLessThan(41_000);
    expect(memory).toMatch(
      /😀\n\[cut here: the file has 60006 characters; continue with read_file \/memories\/AGENTS\.md, offset 3\]$/u,
    );
  });

  it("is a fork's too, with the same bytes, and no other subagent's", async () => {
    const task = (id: string, subagent_type: string) => ({
      id,
      name: "task",
      args: { subagent_type, description: "d" },
    });
    const { agent, model, run, save } = setup(
      ({ messages, call }) => {
        if (call === 0) return { toolCalls: [task("a", "general-purpose"), task("b", "twin")] };
        return { text: systemOf(messages).includes("Jane likes tea.") ? "knows" : "does not know" };
      },
      { subagents: [{ name: "twin", description: "d", systemPrompt: "p", mode: "fork" }] },
    );
    save("Jane likes tea.");
    await run("run_1");
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["does not know", "knows"]);
    expect(model.requests).toHaveLength(4);
  });
});
