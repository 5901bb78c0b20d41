import { HumanMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import type { ToolFunction } from "../../../src/agent/contracts/middleware.ts";
import { findTools } from "../../../src/tools/find-tools.ts";
import { type ScriptedReply, scriptedModel } from "../../support/scripted-model.ts";

const made: string[] = [];

function tool(name: string, description = `Does ${name}.`): ToolFunction {
  return {
    name,
    description,
    schema: z.object({ title: z.string().describe("word ".repeat(40)) }),
    kind: "read",
    invoke: ({ title }) => {
      made.push(`${name} ${String(title)}`);
      return `did ${name}`;
    },
  };
}

const TOOLS = [
  tool("git__create_issue", "Creates an issue in a repository."),
  tool("git__list_issues", "Lists issues."),
  tool("mail__send", "Sends a letter."),
];
const HIDDEN = TOOLS.map(({ name }) => name);

/** Runs an agent with these replies; gives the tools of each request, and what the model read. */
async function run(replies: ScriptedReply[], params: Partial<DeepAgentParams> = {}) {
  made.length = 0;
  const model = scriptedModel(({ call }) => replies[call] ?? { text: "end" });
  const agent = createDeepAgent({
    model,
    tools: [...TOOLS, tool("plain")],
    toolsOnDemand: { names: HIDDEN },
    ...params,
  });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
  const read = messages.flatMap((message) => (message.getType() === "tool" ? [message.text] : []));
  const [first] = model.requests;
  return {
    read,
    prompt: String(first?.messages[0]?.text),
    bound: model.requests.map(({ tools }) => tools.filter((name) => /__|plain|find/.test(name))),
  };
}

const call = (name: string, args: Record<string, unknown>): ScriptedReply => ({
  toolCalls: [{ name, args }],
});

it("tools come into the list when they are found, the last ones last, and stay there", async () => {
  const { bound, prompt, read } = await run([
    call("find_tools", { query: "send" }),
    call("find_tools", { query: "create issue", limit: 1 }),
    call("git__create_issue", { title: "a" }),
  ]);
  const first = ["find_tools", "plain"];
  expect(bound).toEqual([
    first,
    [...first, "mail__send"],
    [...first, "mail__send", "git__create_issue"],
    [...first, "mail__send", "git__create_issue"],
  ]);
  expect(prompt).toContain("- git__list_issues: Lists issues.");
  expect(prompt).not.toContain("- plain");
  expect(read[1]).toBe(
    "In your list from now on:\n- git__create_issue: Creates an issue in a repository.\n\n1 more fit, the best first: git__list_issues. Get one by its name, or search with more words.",
  );
  expect(made).toEqual(["git__create_issue a"]);
});

it("a tool that was not found works all the same, and is in the list afterwards", async () => {
  const { bound, read } = await run([call("mail__send", { title: "a" })]);
  expect(read).toEqual(["did mail__send"]);
  expect(bound[1]).toEqual(["find_tools", "plain", "mail__send"]);
});

it("searches in one reply all count", async () => {
  const both = { toolCalls: ["send", "list"].map((query) => ({ name: "find_tools", args: { query } })) };
  const { bound } = await run([both]);
  expect(bound[1]).toEqual(["find_tools", "plain", "mail__send", "git__list_issues"]);
});

it("few tools are in every request, and nothing is said of others", async () => {
  const { bound, prompt } = await run([], { toolsOnDemand: { names: HIDDEN, tokens: 10_000 } });
  expect(bound[0]).toEqual([...HIDDEN, "plain"]);
  expect(prompt).not.toContain("find_tools");
});

it("more tools than providers take in one request are found, however small they are", async () => {
  // With the tools of the agent itself, they are more than 128.
  const many = Array.from({ length: 122 }, (_, at) => ({ ...tool(`many__${at}`), schema: z.object({}) }));
  const names = many.map(({ name }) => name);
  const params = { tools: many, toolsOnDemand: { names, tokens: 1_000_000 } };
  const { bound, read } = await run([call("many__121", {})], params);
  expect(bound).toEqual([["find_tools"], ["find_tools", "many__121"]]);
  expect(read).toEqual(["did many__121"]);
});

it("a subagent finds its own", async () => {
  const model = scriptedModel(({ messages, tools }) => {
    const isSub = messages.some(({ text }) => text === "find it");
    if (!isSub)
      return messages.some((message) => message.getType() === "tool")
        ? { text: "end" }
        : call("task", { description: "find it", subagent_type: "helper" });
    return tools.includes("mail__send")
      ? { text: `has ${tools.filter((name) => name.includes("__")).join()}` }
      : call("find_tools", { query: "mail__send" });
  });
  const agent = createDeepAgent({
    model,
    tools: TOOLS,
    toolsOnDemand: { names: HIDDEN },
    subagents: [{ name: "helper", description: "Helps.", systemPrompt: "Help." }],
  });
  const { messages } = await agent.invoke({ messages: [new HumanMessage("go")] });
  expect(messages.map(({ text }) => text).join("\n")).toContain("has mail__send");
  expect(model.requests.at(-1)?.tools).not.toContain("mail__send");
});

it("a thread keeps what it found", async () => {
  const model = scriptedModel(({ call: number }) =>
    number === 0 ? call("find_tools", { query: "send" }) : { text: "end" },
  );
  const params = { model, tools: TOOLS, toolsOnDemand: { names: HIDDEN }, checkpointer: new MemorySaver() };
  const config = { configurable: { thread_id: "t" } };
  await createDeepAgent(params).invoke({ messages: [new HumanMessage("go")] }, config);
  await createDeepAgent(params).invoke({ messages: [new HumanMessage("again")] }, config);
  expect(model.requests.at(-1)?.tools).toContain("mail__send");
  // A later version of the server has the tool no more.
  const fewer = { ...params, tools: TOOLS.slice(0, 2) };
  await createDeepAgent(fewer).invoke({ messages: [new HumanMessage("again")] }, config);
  expect(model.requests.at(-1)?.tools).not.toContain("mail__send");
});

it("a search puts exact names first, takes words in any form, and says what there is", async () => {
  const described = [
    { name: "jira__searchIssues", description: "Finds tickets with JQL.", parameters: ["jql"] },
    { name: "git__create_issue", description: "Creates an issue.", parameters: ["title"] },
    { name: "git__issue", description: "Shows one.", parameters: ["number"] },
    { name: "wiki__página", description: "Muestra una página.", parameters: [] },
  ];
  const names = async (query: string, limit = 5) =>
    (await findTools(described, query)).slice(0, limit).map(({ name }) => name);
  expect((await names("git__issue"))[0]).toBe("git__issue");
  expect((await names("issue"))[0]).toBe("git__issue");
  expect(await names("GIT__CREATE_ISSUE, jira__searchIssues", 2)).toEqual([
    "jira__searchIssues",
    "git__create_issue",
  ]);
  expect((await names("search the issues"))[0]).toBe("jira__searchIssues");
  expect(await names("página")).toEqual(["wiki__página"]);
  expect(await names("jql")).toEqual(["jira__searchIssues"]);
  expect(await names("the of to")).toEqual([]);
  const { read } = await run([call("find_tools", { query: "zebra" })]);
  expect(read[0]).toBe("No tool fits. Try other words, or the name of a group: git, mail.");
});

it("a prompt has room for so many names only", async () => {
  const many = Array.from({ length: 500 }, (_, index) => tool(`s__tool_${index}`, "d".repeat(300)));
  const { prompt, bound } = await run([], {
    tools: many,
    toolsOnDemand: { names: many.map(({ name }) => name) },
  });
  expect(bound[0]).toEqual(["find_tools"]);
  expect(prompt).toMatch(/\n\d{3} more are not listed here; find_tools finds them\./);
  expect(prompt.length).toBeLessThan(16_000);
});

it("a request never has more tools than providers take: the ones found first leave it, and come back when found", async () => {
  const many = Array.from({ length: 200 }, (_, at) =>
    tool(`s__group${Math.floor(at / 20)}x_${at}`, "Does it."),
  );
  const search = (group: number) => call("find_tools", { query: `group${group}x`, limit: 20 });
  const { bound, read } = await run(
    [0, 1, 2, 3, 4, 5, 6, 7].map(search).concat([call("s__group0x_3", { title: "a" }), search(0)]),
    { tools: many, toolsOnDemand: { names: many.map(({ name }) => name) } },
  );
  const has = (names: readonly string[] | undefined, group: number): boolean | undefined =>
    names?.some((name) => name.includes(`group${group}x`));
  expect(Math.max(...bound.map(({ length }) => length))).toBeLessThanOrEqual(128);
  expect([has(bound[8], 0), has(bound[8], 7)]).toEqual([false, true]);
  expect(read[8]).toBe("did s__group0x_3");
  expect([has(bound[10], 0), has(bound[10], 1), has(bound[10], 7)]).toEqual([true, false, true]);
});

it("each server has its share of the names in the prompt", async () => {
  const big = Array.from({ length: 400 }, (_, at) => tool(`big__tool_${at}`, "d".repeat(100)));
  const small = [tool("small__look", "Looks at one thing.")];
  const { prompt } = await run([], {
    tools: [...big, ...small],
    toolsOnDemand: { names: [...big, ...small].map(({ name }) => name) },
  });
  expect(prompt).toContain("- small__look: Looks at one thing.");
});

it("tools that are not in a request do not count as part of it", async () => {
  // All of them together would fill a window many times over.
  const many = Array.from({ length: 300 }, (_, at) => ({
    ...tool(`s__tool_${at}`),
    schema: z.object({ text: z.string().describe("word ".repeat(1000)) }),
  }));
  let compacted = 0;
  const { bound } = await run([call("ls", { path: "/" }), call("ls", { path: "/" })], {
    tools: many,
    toolsOnDemand: { names: many.map(({ name }) => name) },
    summarization: {
      trigger: { tokens: 30_000 },
      countTokens: (text) => (compacted += 1) && text.length / 4,
    },
    limits: { tokens: 200_000 },
  });
  expect(bound).toHaveLength(3);
  // Only the texts that were sent were counted.
  expect(compacted).toBeLessThan(100);
});
