import { HumanMessage } from "@langchain/core/messages";
import { expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { type ScriptedReply, scriptedModel } from "../../support/scripted-model.ts";

const WRITE: ScriptedReply = {
  toolCalls: [{ name: "write_file", args: { file_path: "/a.ts", content: "x" } }],
};

/** The answers of an agent that changes a file, ends, and answers once more if it is told something. */
async function work(params: Omit<DeepAgentParams, "model"> = {}) {
  const model = scriptedModel(({ call }) => (call === 0 ? WRITE : { text: `answer ${call}` }));
  const agent = createDeepAgent({ model, hints: { ending: true }, ...params });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
  const told = messages.filter(({ text }) => text.startsWith("[Before you finish:"));
  return { calls: model.requests.length, told: told.length, answer: messages.at(-1)?.text };
}

it("an agent that ends with an unchecked change is told once, and its last answer counts", async () => {
  expect(await work()).toEqual({ calls: 3, told: 1, answer: "answer 2" });
});

it.each<[string, Omit<DeepAgentParams, "model">]>([
  ["is off", { hints: {} }],
  ["would pass a limit", { limits: { maxIterations: 2 } }],
  ["looks at another folder", { hints: { ending: true, workspace: "/elsewhere", listing: false } }],
])("the run ends with its answer when the check %s", async (_when, params) => {
  expect(await work(params)).toEqual({ calls: 2, told: 0, answer: "answer 1" });
});

it("what the agent does after it was told is not checked again", async () => {
  const model = scriptedModel(({ call }) =>
    call % 2 === 0 && call < 4 ? WRITE : { text: `answer ${call}` },
  );
  const agent = createDeepAgent({ model, hints: { ending: true } });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
  expect(messages.at(-1)?.text).toBe("answer 3");
});
