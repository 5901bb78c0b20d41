import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const twin = { name: "twin", description: "d", systemPrompt: "Be brief.", mode: "fork" as const };
const delegate = { name: "task", args: { description: "the part", subagent_type: "twin" } };

describe("a fork", () => {
  it("goes on from the agent's conversation and prompt, and cannot delegate", async () => {
    const model = scriptedModel(({ messages }) => {
      const isFork = messages.findLast((message) => HumanMessage.isInstance(message))?.text === "the part";
      const results = messages.filter((message) => ToolMessage.isInstance(message)).length;
      if (isFork)
        return results === 1
          ? { toolCalls: [{ id: "again", ...delegate }] }
          : { text: messages.at(-1)?.text ?? "" };
      if (results === 0) return { toolCalls: [{ id: "look", name: "ls", args: {} }] };
      return results === 1 ? { toolCalls: [{ id: "t", ...delegate }] } : { text: "end" };
    });
    const agent = buildAgent({
      checkpointer: new MemorySaver(),
      model,
      systemPrompt: "You are the agent.",
      subagents: [twin],
    });
    const events = await collect(agent, { kind: "task", task: "the whole" });
    expect(events.at(-1)).toEqual({ kind: "finished", answer: "end" });
    const [, before, forked] = model.requests;
    const texts = (request: typeof before) => (request?.messages ?? []).map(({ text }) => text);
    expect(texts(forked).slice(1)).toEqual([...texts(before).slice(1), "the part"]);
    expect(texts(forked)[0]?.startsWith("You are the agent.")).toBe(true);
    expect(texts(forked)[0]).toContain("Be brief.");
    expect(forked?.tools).toEqual(before?.tools);
    expect((await toolMessages(agent)).map(({ text }) => text).at(-1)).toBe(
      "Error: a forked subagent cannot delegate; complete the task directly.",
    );
  });

  it("has the agent's skills and none of its own", () => {
    expect(() => createDeepAgent({ subagents: [{ ...twin, skills: ["/skills"] }] })).toThrow(
      "The subagent 'twin' is a fork and has the agent's skills",
    );
  });
});
