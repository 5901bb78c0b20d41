import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const agent = () =>
  createDeepAgent({ model: scriptedModel(() => ({ text: "end" })), log: createLogger("silent") });

test.each<[unknown, string]>([
  ["hi", "'hi'"],
  [5, "5"],
  [[{ role: "user", content: "hi" }], "[ { role: 'user', content: 'hi' } ]"],
  [{ message: "hi" }, "{ message: 'hi' }"],
  [{ input: "hi" }, "{ input: 'hi' }"],
])("an input of %j is refused before the model is asked", async (input, shown) => {
  await expect(agent().invoke(input as never)).rejects.toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringMatching(/^An agent takes an object with its messages/) as string,
  });
  await expect(agent().invoke(input as never)).rejects.toThrow(`and got ${shown}.`);
});

test("messages in each form of LangChain, and files beside them, are taken", async () => {
  for (const messages of [
    "hi",
    ["hi"],
    [["user", "hi"]],
    { role: "user", content: "hi" },
    [{ role: "user", content: "hi" }],
    [new HumanMessage("hi")],
  ])
    expect(await agent().invoke({ messages, unknown: 1 } as never)).toMatchObject({
      messages: [{ content: "hi" }, { content: "end" }],
    });
});
