import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, MemorySaver, Send } from "@langchain/langgraph";
import { expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { buildAgent } from "../../../src/agent/agent.ts";
import { fromOutcome, toOutcome } from "../../../src/agent/langgraph/outcome.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel } from "../../support/scripted-model.ts";

const call = { id: "c", name: "mine", args: {} };
const full = (content: string, tool_call_id = "c") =>
  new ToolMessage({
    id: `id of ${content}`,
    content,
    name: "other name",
    tool_call_id,
    status: "error",
    artifact: { an: "artifact" },
    metadata: { a: "fact" },
    additional_kwargs: { a: 1 },
    response_metadata: { b: 2 },
  });
const fields = (message: unknown) => JSON.parse(JSON.stringify(message)) as unknown;

it("a message of a LangChain tool keeps what it says, also with another text", () => {
  expect(toOutcome(call, fromOutcome(full("text")))).toEqual(full("text"));
  const changed = toOutcome(call, { ...fromOutcome(full("text")), content: "id of text" });
  const expected = Object.assign(full("text"), { content: "id of text" });
  expect(fields(changed)).toEqual(fields(expected));
  const turned = toOutcome(call, { ...fromOutcome(full("text")), status: "success", artifact: 1 });
  expect(turned).toMatchObject({ content: "text", status: "success", artifact: 1, name: "other name" });
});

it("a command of a LangChain tool keeps its messages, its goto and its graph", () => {
  const messages = [new HumanMessage("between"), full("one"), full("two", "d")];
  const goto = [new Send("node", { a: 1 })];
  const command = new Command({ graph: Command.PARENT, goto, update: { todos: [], messages } });
  const result = fromOutcome(command);
  expect(result).toMatchObject({ content: "one", status: "error", update: { todos: [] } });
  expect(result.further).toMatchObject([{ content: "two" }]);
  expect(toOutcome(call, result)).toEqual(command);
  const noted = toOutcome(call, { ...result, content: "note", update: { ...result.update, more: 1 } });
  expect(noted).toMatchObject({ graph: "__parent__", goto, update: { todos: [], more: 1 } });
  const texts = (noted as Command<unknown, { messages: ToolMessage[] }>).update;
  expect(texts).toMatchObject({
    messages: [{ content: "between" }, { content: "note" }, { content: "two" }],
  });
  const { update: _dropped, ...rest } = result;
  expect(toOutcome(call, rest)).not.toHaveProperty("update.todos");
});

it("a command with a list of writes keeps the list", () => {
  const list: Array<[string, unknown]> = [["messages", [full("one")]]];
  const result = fromOutcome(new Command({ update: list }));
  expect(fields(toOutcome(call, result))).toEqual(fields(new Command({ update: list, goto: [] })));
  const changed = toOutcome(call, { ...result, update: { files: {} } });
  expect(changed).toMatchObject({ update: [...list, ["files", {}]] });
});

it("each message of a command that is too large goes into a file of its own", async () => {
  const long = (letter: string) => letter.repeat(200_000);
  const several = tool(
    (_args, config) =>
      new Command({
        update: {
          messages: ["a", "b"].map(
            (letter) => new ToolMessage({ content: long(letter), tool_call_id: String(config.toolCall.id) }),
          ),
        },
      }),
    { name: "several", description: "d", schema: z.object({}) },
  );
  const model = scriptedModel(({ call: number }) =>
    number === 0 ? { toolCalls: [{ id: "c", name: "several", args: {} }] } : { text: "end" },
  );
  const agent = buildAgent({ checkpointer: new MemorySaver(), model, tools: [several] });
  await collect(agent, { kind: "task", task: "go" });
  const { files } = await agent.snapshot("t1");
  expect(Object.values(files).map(({ content }) => String(content)[0])).toEqual(["a", "b"]);
  const [message] = await toolMessages(agent);
  expect(message?.text).toContain("The result of several is too large to show");
});

it("a tool of LangChain may go on at another node of its agent", async () => {
  const leaving = tool(
    (_args, config) =>
      new Command({
        goto: "__end__",
        update: {
          messages: [new ToolMessage({ content: "left", tool_call_id: String(config.toolCall.id) })],
        },
      }),
    { name: "leaving", description: "d", schema: z.object({}) },
  );
  const model = scriptedModel(({ call: number }) =>
    number === 0 ? { toolCalls: [{ id: "c", name: "leaving", args: {} }] } : { text: "end" },
  );
  const { messages } = await createDeepAgent({ model, tools: [leaving] }).invoke({
    messages: [new HumanMessage("go")],
  });
  expect(messages.map(({ text }) => text)).toContain("left");
});
