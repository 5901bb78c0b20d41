import {
  AIMessage,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { repairHistory } from "../../../src/agent/messages/mend.ts";
import {
  answeredMessage,
  samplingRequest,
  type SamplingRequest,
} from "../../../src/agent/models/client-model.ts";

const text = fc.constantFrom("", " ", "hello", "two\nlines");
const turn = fc.oneof(
  text.map((content) => [new HumanMessage(content)]),
  fc.tuple(text, fc.nat(3), fc.nat(3)).map(([content, calls, answered]) => [
    new AIMessage({
      content,
      tool_calls: Array.from({ length: calls }, (_, index) => ({
        id: `c${index}`,
        name: "ls",
        args: { index },
      })),
    }),
    ...Array.from({ length: Math.min(calls, answered) }, (_, index) => {
      const status = index % 2 === 0 ? ("success" as const) : ("error" as const);
      return new ToolMessage({ content, tool_call_id: `c${index}`, status });
    }),
  ]),
);

/** Call ids that are unique, as the agent makes them, and every call with its result. */
function history(turns: readonly BaseMessage[][]): BaseMessage[] {
  for (const [number, messages] of turns.entries()) {
    for (const message of messages) {
      if (AIMessage.isInstance(message))
        for (const call of message.tool_calls ?? []) call.id = `${call.id}-${number}`;
      if (ToolMessage.isInstance(message)) message.tool_call_id += `-${number}`;
    }
  }
  return repairHistory([new SystemMessage("You help."), ...turns.flat()]);
}

/** What the specification of sampling demands of messages with tools. */
function problemOf(messages: SamplingRequest["messages"]): string | undefined {
  for (const [index, { role, content }] of messages.entries()) {
    const results = content.filter(({ type }) => type === "tool_result");
    const uses = content.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
    if (content.length === 0) return "a message without content";
    if (uses.length > 0 && role !== "assistant") return "a tool use of the user";
    if (results.length > 0 && (role !== "user" || results.length < content.length))
      return "results beside others";
    const next = messages[index + 1]?.content ?? [];
    const answered = next.flatMap((block) => (block.type === "tool_result" ? [block.toolUseId] : []));
    if (uses.length > 0 && answered.sort().join() !== uses.sort().join()) return "uses and results differ";
    if (uses.length === 0 && answered.length > 0) return "results of nothing";
    if (content.some((block) => block.type === "text" && block.text.trim() === "")) return "an empty text";
  }
  return undefined;
}

test("any history of an agent keeps the rules of sampling", () => {
  fc.assert(
    fc.property(fc.array(turn, { maxLength: 6 }), (turns) => {
      const { messages, systemPrompt } = samplingRequest(history(turns), {});
      expect(problemOf(messages)).toBeUndefined();
      expect(systemPrompt).toBe("You help.");
    }),
  );
});

test("media, tools and the choice of tools are carried as far as sampling knows them", () => {
  const image = { type: "image" as const, data: "AAAA", mimeType: "image/png" };
  const file = { type: "file" as const, data: "AAAA", mimeType: "application/pdf" };
  const tool = { name: "ls", description: "Lists.", schema: z.object({ path: z.string() }) };
  const request = samplingRequest([new HumanMessage({ contentBlocks: [image, file] })], {
    tools: [tool],
    toolChoice: "any",
  });
  expect(request).toMatchObject({
    messages: [{ role: "user", content: [image, { type: "text", text: "[file: not shown to this model]" }] }],
    tools: [{ name: "ls", description: "Lists.", inputSchema: { type: "object", required: ["path"] } }],
    toolChoice: { mode: "required" },
  });
  const again = samplingRequest([new HumanMessage({ contentBlocks: [image, file] })], {
    tools: [tool],
    toolChoice: "any",
  });
  expect(JSON.stringify(again)).toBe(JSON.stringify(request));
});

test("an answer is a message with its text, its calls and the model that gave it", () => {
  const message = answeredMessage({
    kind: "answer",
    model: "lent-1",
    stopReason: "toolUse",
    content: [
      { type: "text", text: "I look." },
      { type: "tool_use", id: "u1", name: "ls", input: { path: "/" } },
    ],
  });
  expect(message.text).toBe("I look.");
  expect(message.tool_calls).toMatchObject([{ id: "u1", name: "ls", args: { path: "/" } }]);
  expect(message.response_metadata).toMatchObject({ model_name: "lent-1" });
});
