import { HumanMessage } from "@langchain/core/messages";
import { tool as langChainTool } from "@langchain/core/tools";
import { Command, MemorySaver, interrupt } from "@langchain/langgraph";
import { beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { DeepAgentParams } from "../../../src/agent/build/params.ts";
import type { ToolFunction } from "../../../src/agent/contracts/middleware.ts";
import { type ScriptedReply, scriptedModel } from "../../support/scripted-model.ts";

/** Calls of tools, in the order in which they were made. */
const made: string[] = [];
beforeEach(() => void made.splice(0));

function tool(
  name: string,
  kind: ToolFunction["kind"],
  answer = (text: string) => `${name} ${text}`,
): ToolFunction {
  return {
    name,
    description: `Does ${name}.`,
    schema: z.object({ text: z.string() }),
    ...(kind ? { kind } : {}),
    invoke: ({ text }) => {
      made.push(`${name} ${String(text)}`);
      return answer(String(text));
    },
  };
}

const TOOLS = [
  tool("look", "read"),
  tool("act", "execute"),
  tool("fail", "read", () => {
    throw new Error("it is broken");
  }),
];

const program = (source: string): ScriptedReply => ({
  toolCalls: [{ name: "run_program", args: { source } }],
});

/** An agent that makes these replies and then ends, on one thread. */
function agentWith(replies: ScriptedReply[], params: Partial<DeepAgentParams> = {}) {
  const model = scriptedModel(({ call }) => replies[call] ?? { text: "end" });
  const agent = createDeepAgent({
    model,
    tools: TOOLS,
    programs: true,
    checkpointer: new MemorySaver(),
    ...params,
  });
  const config = { configurable: { thread_id: "t" } };
  const step = async (input: { messages: HumanMessage[] } | Command) => {
    const state = await agent.invoke(input, config);
    const results = state.messages.flatMap((message) => (message.getType() === "tool" ? [message.text] : []));
    const { tasks } = await agent.getState(config);
    const asked = tasks.flatMap(({ interrupts }) => interrupts);
    return { results, asked, state };
  };
  return {
    model,
    start: () => step({ messages: [new HumanMessage("go")] }),
    answer: (resume: unknown) => step(new Command({ resume })),
  };
}

const run = (source: string, params?: Partial<DeepAgentParams>) =>
  agentWith([program(source)], params).start();

test("the tool is offered only where programs are on", async () => {
  const on = agentWith([]);
  await on.start();
  const off = agentWith([], { programs: false });
  await off.start();
  expect(on.model.requests[0]?.tools).toContain("run_program");
  expect(off.model.requests[0]?.tools).not.toContain("run_program");
});

test("a program calls tools, and the model reads what it returns", async () => {
  const { results } = await run(
    `const found = await Promise.all(["a", "b"].map((text) => tools.look({ text })));
     console.log(found.length);
     return found.map((text) => text.toUpperCase());`,
  );
  expect(results).toEqual(['["LOOK A","LOOK B"]\n\nPrinted:\n2']);
  expect(made).toEqual(["look a", "look b"]);
});

test("files that a program writes are in the thread, and later calls of it see them", async () => {
  const { results, state } = await run(
    `await tools.write_file({ file_path: "/a.md", content: "one\\ntwo" });
     await tools.edit_file({ file_path: "/a.md", old_string: "two", new_string: "three" });
     await tools.write_file({ file_path: "/b.md", content: "" });
     return [await tools.read_file({ file_path: "/a.md" }), await tools.read_file({ file_path: "/b.md" })];`,
  );
  expect(results).toEqual(['["one\\nthree",""]']);
  expect(Object.keys(state.files)).toEqual(["/a.md", "/b.md"]);
});

test("a program reads whole results, which go into no file", async () => {
  const tools = [...TOOLS, tool("long", "read", () => "x".repeat(200_000))];
  const { results, state } = await run(`return (await tools.long({ text: "" })).length`, { tools });
  expect(results).toEqual(["200000"]);
  expect(state.files).toEqual({});
});

test.for([
  [
    "a failing call",
    `await tools.fail({ text: "x" })`,
    /^Error: it is broken.*program\.js:1.*made.*fail failed\.$/s,
  ],
  ["bad arguments", `await tools.look({ txt: "x" })`, /Invalid arguments for look/],
  ["arguments that are no object", `await tools.look("x")`, /Invalid arguments for look: .*expected object/],
  ["subagents", `await tools.task({})`, /No tool is named 'task'/],
  ["a program in a program", `await tools.run_program({})`, /No tool is named 'run_program'/],
  ["a mistake", `return nothing`, /nothing is not defined/],
])("the model reads the error of %s", async ([, source, text]) => {
  const { results } = await run(String(source));
  expect(results).toEqual([expect.stringMatching(text as RegExp)]);
});

test("calls of a program count for the limit of tool calls", async () => {
  const { results } = await run(`for (let i = 0; i < 9; i += 1) await tools.look({ text: String(i) });`, {
    limits: { toolCalls: 4 },
  });
  expect(made).toEqual(["look 0", "look 1", "look 2"]);
  expect(results[0]).toContain("the limit of tool calls for this run is reached");
});

test("questions one after the other, with an edit and the program's own approval", async () => {
  const agent = agentWith(
    [
      program(
        `const one = await tools.act({ text: "1" }); const two = await tools.act({ text: "2" }); return [one, two];`,
      ),
    ],
    { interruptOn: { act: true, run_program: true } },
  );
  const own = await agent.start();
  expect(own.asked[0]?.value).toMatchObject({ actionRequests: [{ name: "run_program" }] });
  const first = await agent.answer({ decisions: [{ type: "approve" }] });
  expect(first.asked[0]?.value).toMatchObject({ actionRequests: [{ args: { text: "1" } }] });
  expect(first.asked[0]?.id).toMatch(/-2$/);
  const edited = { name: "act", args: { text: "changed" } };
  const second = await agent.answer({ decisions: [{ type: "edit", editedAction: edited }] });
  expect(second.asked[0]?.value).toMatchObject({ actionRequests: [{ args: { text: "2" } }] });
  expect(second.asked[0]?.id).toMatch(/-3$/);
  const { results } = await agent.answer({ decisions: [{ type: "approve" }] });
  expect(results).toEqual(['["act changed","act 2"]']);
  expect(made).toEqual(["act changed", "act 2"]);
});

test("a program asks a person", async () => {
  const agent = agentWith(
    [
      program(`const [one, two] = await Promise.all([
        tools.ask_user({ question: "First?" }), tools.ask_user({ question: "Second?" })]);
        return one + " / " + two;`),
    ],
    { askUser: true },
  );
  const first = await agent.start();
  expect(first.asked[0]?.value).toMatchObject({ question: { text: "First?" } });
  const second = await agent.answer({ answer: "yes" });
  expect(second.asked[0]?.value).toMatchObject({ question: { text: "Second?" } });
  const { results } = await agent.answer({ answer: "no" });
  expect(results).toEqual(["The person answered: yes / The person answered: no"]);
});

test("a tool of LangChain that stops the graph fails in a program", async () => {
  const asking = langChainTool(() => String(interrupt("?")), {
    name: "asking",
    description: "Asks.",
    schema: z.object({}),
  });
  const { results, asked } = await run(`try { await tools.asking({}) } catch { return "caught" }`, {
    tools: [asking],
  });
  expect(asked).toEqual([]);
  expect(results).toEqual(["caught"]);
});

test("without a checkpointer a program runs", async () => {
  const { messages } = await createDeepAgent({
    model: scriptedModel(({ call }) =>
      call === 0 ? program(`return await tools.look({ text: "x" })`) : { text: "end" },
    ),
    tools: TOOLS,
    programs: true,
  }).invoke({ messages: [new HumanMessage("go")] });
  expect(messages.map(({ text }) => text)).toContain("look x");
});
