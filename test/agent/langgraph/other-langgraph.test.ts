// What other versions of LangGraph, and forms that are made for it, do differently.
import { type CheckpointTuple, Command, MemorySaver, isInterrupted } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { HitlRequest } from "../../../src/agent/contracts/question.ts";
import { callingOnce, scriptedModel } from "../../support/scripted-model.ts";

const go = { messages: [{ role: "user" as const, content: "go" }] };
const thread = { configurable: { thread_id: "t" } };
const approve = { decisions: [{ type: "approve" }] };
const write = (path: string) => ({ name: "write_file", args: { file_path: path, content: "text" } });
const task = {
  name: "task",
  args: { subagent_type: "general-purpose", description: "Write one more file." },
};

/** Stores the questions of a task as LangGraph did before 1.7: one by one, not in one list. */
class SaverOfSingles extends MemorySaver {
  override async getTuple(
    config: Parameters<MemorySaver["getTuple"]>[0],
  ): Promise<CheckpointTuple | undefined> {
    const tuple = await super.getTuple(config);
    const pendingWrites = tuple?.pendingWrites?.flatMap(([id, channel, value]) =>
      (channel === "__interrupt__" && Array.isArray(value) ? value : [value]).map(
        (one): [string, string, unknown] => [id, channel, one],
      ),
    );
    return tuple && { ...tuple, ...(pendingWrites ? { pendingWrites } : {}) };
  }
}

const agentOf = (checkpointer: MemorySaver) =>
  createDeepAgent({
    checkpointer,
    interruptOn: { write_file: true },
    model: scriptedModel(({ messages }) => {
      if (messages.some(({ type }) => type === "tool")) return { text: "end" };
      return { toolCalls: messages.some(({ text }) => text === "go") ? [write("/a"), task] : [write("/b")] };
    }),
  });

it("finds questions, its own and those of a subagent, as LangGraph stored them before 1.7", async () => {
  const agent = agentOf(new SaverOfSingles());
  const asked: unknown = await agent.invoke(go, thread);
  const [request] = isInterrupted<HitlRequest>(asked) ? asked.__interrupt__ : [];
  const ids = request?.value?.actionRequests.map(({ interruptId = "" }) => interruptId) ?? [];
  expect(ids).toHaveLength(2);
  const resume = Object.fromEntries(ids.map((id) => [id, approve]));
  const { files } = await agent.invoke(new Command({ resume }), thread);
  expect(Object.keys(files).sort()).toEqual(["/a", "/b"]);
});

it("gives up such a question when the conversation goes on without an answer", async () => {
  const agent = agentOf(new SaverOfSingles());
  await agent.invoke(go, thread);
  const { messages, files } = await agent.invoke({ messages: [{ role: "user", content: "stop" }] }, thread);
  const answers = messages.filter(({ type }) => type === "tool").map(({ text }) => text);
  expect(answers).toEqual([expect.stringContaining("was not run"), expect.any(String)]);
  expect(files).toEqual({});
});

it("takes an edit in the spelling of agents in Python, which ready forms send", async () => {
  const agent = createDeepAgent({
    checkpointer: new MemorySaver(),
    interruptOn: { write_file: true },
    model: callingOnce(write("/a")),
  });
  await agent.invoke(go, thread);
  const resume = { decisions: [{ type: "edit", edited_action: write("/other") }] };
  const { files } = await agent.invoke(new Command({ resume }), thread);
  expect(Object.keys(files)).toEqual(["/other"]);
});
