import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import { PROMPTS } from "../../../src/agent/messages/prompts.ts";
import { forkStack, mainStack, subagentStack } from "../../../src/agent/build/middleware-order.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const one = { name: "one", description: "d", systemPrompt: "p" };
const mine = { name: "Mine" };
const all: DeepAgentParams = {
  memory: ["/AGENTS.md"],
  skills: ["/skills/"],
  fallbackModels: ["openai:gpt-4.1"],
  middleware: [mine],
  interruptOn: { write_file: true },
  debug: true,
};
const namesOf = (stack: ReadonlyArray<{ name: string }>): string[] =>
  stack.map(({ name }) => name.replace(/Middleware$/, ""));
const context = ["Summarization", "PromptCaching", "PatchToolCalls"];

describe("the layers of an agent", () => {
  it.each<[string, DeepAgentParams, string[]]>([
    ["without options", {}, ["TodoList", "Filesystem", "SubAgent", ...context]],
    [
      "with all",
      all,
      [
        "Debug",
        "TodoList",
        "Memory",
        "Skills",
        "Filesystem",
        "SubAgent",
        "ModelFallback",
        ...context,
        "Mine",
        "HumanInTheLoop",
      ],
    ],
    [
      "with a gate that never asks",
      { interruptOn: { ls: false } },
      ["TodoList", "Filesystem", "SubAgent", ...context],
    ],
    [
      "with what can be off",
      { todos: false, summarization: false, promptCaching: false },
      ["Filesystem", "SubAgent", "PatchToolCalls"],
    ],
    [
      "with one of the caller's in the place of a built-in one",
      { middleware: [mine, { name: "SummarizationMiddleware" }] },
      ["TodoList", "Filesystem", "SubAgent", ...context, "Mine"],
    ],
  ])("%s", (_with, params, names) => expect(namesOf(mainStack(params, [one]))).toEqual(names));

  it("have no delegation where there is nobody to delegate to", () => {
    expect(namesOf(mainStack({}, []))).toEqual(["TodoList", "Filesystem", ...context]);
  });

  it("are a subagent's own: its skills and middleware, the agent's gates, no memory", () => {
    const spec = { ...one, skills: ["/own/"], middleware: [{ name: "Own" }] };
    const { debug: _off, ...quiet } = all;
    const files = ["TodoList", "Filesystem"];
    const own = ["ModelFallback", ...context, "Skills", "Own", "HumanInTheLoop"];
    expect(namesOf(subagentStack(spec, quiet, []))).toEqual([...files, ...own]);
    expect(namesOf(subagentStack(spec, quiet, [one]))).toEqual([...files, "SubAgent", ...own]);
  });

  it("are the agent's for a fork, and its own middleware after them", () => {
    const spec = { ...one, mode: "fork" as const, middleware: [{ name: "Own" }] };
    const main = namesOf(mainStack(all, [one]));
    expect(namesOf(forkStack(spec, all, [one]))).toEqual([...main.slice(0, -1), "Own", "HumanInTheLoop"]);
  });
});

describe("texts about delegating", () => {
  const firstRequest = async (params: DeepAgentParams) => {
    const model = scriptedModel(() => ({ text: "end" }));
    const agent = createDeepAgent({ model, checkpointer: new MemorySaver(), ...params });
    await agent.invoke({ messages: [new HumanMessage("go")] }, { configurable: { thread_id: "t" } });
    return model.requests[0]?.messages[0]?.text ?? "";
  };

  it("are the built-in ones, the caller's, or none", async () => {
    expect(await firstRequest({})).toContain(PROMPTS.delegating);
    const own = await firstRequest({ delegation: { systemPrompt: "Delegate boldly." } });
    expect(own).toContain("Delegate boldly.");
    expect(own).not.toContain(PROMPTS.delegating);
    const none = await firstRequest({ delegation: { systemPrompt: null } });
    expect(none).toContain(PROMPTS.planning);
    expect(none).not.toContain("## Delegating");
  });

  it("may describe the tool, with the list of subagents where it is asked for", () => {
    const stack = mainStack({ delegation: { taskDescription: "Ask one of:\n{available_agents}" } }, [one]);
    const [task] = stack.flatMap(({ tools = [] }) => tools.filter(({ name }) => name === "task"));
    expect(task?.offered.description).toBe("Ask one of:\n- one: d");
  });
});
