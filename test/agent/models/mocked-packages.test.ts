/** Programs test their agents with packages of providers that have one class, their own. */
import { HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { expect, it, vi } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";

class Fake extends FakeListChatModel {
  constructor() {
    super({ responses: ["mocked"] });
  }

  override bindTools(): this {
    return this;
  }
}

vi.mock("@langchain/openai", () => ({ ChatOpenAI: Fake }));
vi.mock("@langchain/anthropic", () => ({ ChatAnthropic: Fake }));

it.each(["openai:gpt-5", "anthropic:claude-sonnet-4-5"])("%s is the class of the test", async (model) => {
  vi.stubEnv("OPENAI_API_KEY", "not-a-key");
  vi.stubEnv("ANTHROPIC_API_KEY", "not-a-key");
  const { messages } = await createDeepAgent({ model }).invoke({ messages: [new HumanMessage("go")] });
  expect(messages.at(-1)?.text).toBe("mocked");
  vi.unstubAllEnvs();
});
