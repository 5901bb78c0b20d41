import { join } from "node:path";
import { type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { MortalProcess } from "../../support/mortal-process.ts";
import { collect, graphOf } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";
import { filesIn } from "../../support/files-in.ts";

const thread = { configurable: { thread_id: "t1" } };
const write = { id: "w1", name: "write_file", args: { file_path: "/a.md", content: "x" } };
const UNKNOWN = " Whether, or how far, it took effect is unknown; check what it would have left behind.";

/** An agent as each process makes it: it answers its first message by a call. */
const agentIn = (process: MortalProcess, file: string) =>
  buildAgent({
    model: scriptedModel(({ messages }) =>
      messages.some(({ text }) => text === "next") || messages.at(-1)?.type === "tool"
        ? { text: "end" }
        : { toolCalls: [write] },
    ),
    checkpointer: process.checkpointer(file, () => undefined),
  });

/** The thread after a run that was stopped at a step and a new message; empty if the run had ended before. */
async function afterStop(steps: number, goOn: (file: string) => Promise<void>): Promise<BaseMessage[]> {
  const folder = filesIn();
  const file = join(folder, "checkpoints.db");
  const stopped = new MortalProcess({ steps, how: "abort" });
  const work = collect(agentIn(stopped, file), { kind: "task", task: "go" }, { signal: stopped.signal });
  const isEnded = await work.then(
    () => true,
    () => false,
  );
  await stopped.settled();
  stopped.close();
  if (isEnded) return [];
  await goOn(file);
  const reader = new MortalProcess();
  const { values } = await graphOf(agentIn(reader, file)).getState(thread);
  reader.close();
  return values["messages"] as BaseMessage[];
}

/** The different results of the call of the first run, wherever it stopped. */
async function results(goOn: (file: string) => Promise<void>): Promise<string[]> {
  const texts = new Set<string>();
  for (let steps = 1; ; steps += 1) {
    const messages = await afterStop(steps, goOn);
    if (messages.length === 0) return [...texts].sort();
    const at = messages.findIndex(({ type }) => type === "ai");
    const [reply, result] = [messages[at], messages[at + 1]];
    if (reply?.text === "end") continue;
    if (!ToolMessage.isInstance(result)) throw new Error(`There is no result when stopped at step ${steps}.`);
    texts.add(result.status === "error" ? result.text : "done");
  }
}

test("a call has one result wherever its run was cancelled, when a new task comes", async () => {
  const texts = await results(async (file) => {
    const process = new MortalProcess();
    const task = { kind: "task", task: "next", after: "cancelled" } as const;
    const events = await collect(agentIn(process, file), task, { runId: "run_2" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    process.close();
  });
  expect(texts).toEqual([
    `Tool call was cancelled: the run was cancelled before write_file had finished.${UNKNOWN}`,
    "done",
  ]);
});

test("a call has one result wherever its graph stopped, when a program goes on with a new message", async () => {
  const texts = await results(async (file) => {
    const process = new MortalProcess();
    await graphOf(agentIn(process, file)).invoke({ messages: [new HumanMessage("next")] }, thread);
    process.close();
  });
  const why = "the conversation continued with a new message before write_file had finished.";
  expect(texts).toEqual([
    `Tool call was cancelled: ${why}`,
    `Tool call was cancelled: ${why}${UNKNOWN}`,
    "done",
  ]);
});
