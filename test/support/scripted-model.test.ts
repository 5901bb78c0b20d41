import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { expect, test } from "vitest";
import { z } from "zod";
import { scriptedModel, scriptedSteps } from "./scripted-model.ts";

const ls = tool(() => "", { name: "ls", description: "list", schema: z.object({ path: z.string() }) });
const reply = { text: "I will look.", toolCalls: [{ name: "ls", args: { path: "/a b" } }] };

test("answers invoke with text, tool calls, usage and the names of the bound tools", async () => {
  const model = scriptedModel(() => reply);
  const answer = await model.bindTools([ls]).invoke([new HumanMessage("hi")]);
  expect(answer.text).toBe("I will look.");
  expect(answer.tool_calls).toMatchObject([{ id: "call_0_0", name: "ls", args: { path: "/a b" } }]);
  expect(answer.usage_metadata?.total_tokens).toBe(15);
  expect(model.requests.map((request) => request.tools)).toEqual([["ls"]]);
});

test("streams the same answer in pieces", async () => {
  const model = scriptedModel(() => reply);
  const chunks = [];
  for await (const chunk of await model.bindTools([ls]).stream("hi")) chunks.push(chunk);
  expect(chunks.length).toBeGreaterThan(3);
  const whole = chunks.reduce((sum, chunk) => sum.concat(chunk));
  expect(whole.text).toBe("I will look.");
  expect(whole.tool_calls).toMatchObject([{ id: "call_0_0", name: "ls", args: { path: "/a b" } }]);
  expect(whole.usage_metadata?.total_tokens).toBe(15);
});

test("steps are answered in turn and a call too many throws", async () => {
  const model = scriptedSteps([{ text: "one" }, ({ call }) => ({ text: `call ${call}` })]);
  expect((await model.invoke("a")).text).toBe("one");
  expect((await model.invoke("b")).text).toBe("call 1");
  await expect(model.invoke("c")).rejects.toThrow("the script has 2 steps");
});

test("an abort ends a delayed answer", async () => {
  const controller = new AbortController();
  const model = scriptedModel(() => {
    queueMicrotask(() => controller.abort());
    return { text: "late", delayMs: 600_000 };
  });
  await expect(model.invoke("a", { signal: controller.signal })).rejects.toThrow(/abort/i);
});
