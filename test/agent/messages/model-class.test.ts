import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { expect, test } from "vitest";
import classes from "../../../src/agent/messages/model-classes.json" with { type: "json" };
import { modelClass } from "../../../src/agent/messages/mend.ts";

const METHOD = "_convertCompletionsDeltaToBaseMessageChunk";

/** Names that LangChain's packages give to the kinds of their models. */
test.each([
  ["chat_bedrock_converse", [], { history: "own", marks: "turn", images: 20 }],
  ["anthropic", [], { history: "own", marks: "all", images: 100 }],
  ["openai", [METHOD], { history: "chat", images: 500 }],
  ["openai-responses", [], { history: "chat", images: 500 }],
  ["azure_openai", [], { history: "chat", images: 500 }],
  ["google", [], { history: "google", callBlocks: "google" }],
  ["googlegenai", [], { history: "google" }],
  ["chat_integration-vertexai", [], { history: "google" }],
  ["deepseek", [METHOD], { history: "chat" }],
  ["mistral_ai", [], { history: "own" }],
])("%s with the methods %j", (kind, methods, facts) => {
  const members = Object.fromEntries(methods.map((name) => [name, () => undefined]));
  const model = { ...members, _llmType: () => kind } as unknown as BaseChatModel; // all that is asked for
  const found = modelClass(model);
  expect(found).toMatchObject(facts);
  expect(found.marks).toBe("marks" in facts ? facts.marks : undefined);
});

test("each row has sources and types of media, and the last one fits all", () => {
  for (const { source, types } of classes)
    expect([source.length > 0, /^\w+\/[\w*]/.test(types)]).toEqual([true, true]);
  expect(classes.at(-1)?.named).toBe("");
});
