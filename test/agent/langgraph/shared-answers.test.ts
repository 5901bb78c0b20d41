import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { Command, END, MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { openInterrupts } from "../../../src/agent/langgraph/open-interrupts.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";

const go = { messages: [new HumanMessage("go")] };
const thread = { configurable: { thread_id: "t" } };
const approve = { decisions: [{ type: "approve" }] };
const remove = (id: string): ScriptedToolCall => ({ id, name: "remove", args: { id } });
const delegate = (...ids: string[]): ScriptedToolCall => ({
  id: `task-${ids.join("-")}`,
  name: "task",
  args: { description: JSON.stringify(ids), subagent_type: "general-purpose" },
});

/** Agents as nodes of somebody else's graph, one for each list of calls; `ran` is what took effect. */
function outerGraph(...replies: ScriptedToolCall[][]) {
  const ran: string[] = [];
  const take = ({ id }: { id: string }) => `removed ${ran.push(id) && id}`;
  const tools = [tool(take, { name: "remove", description: "d", schema: z.object({ id: z.string() }) })];
  const agentOf = (toolCalls: ScriptedToolCall[]) =>
    createDeepAgent({
      tools,
      interruptOn: { remove: true },
      model: scriptedModel(({ messages }) => {
        if (messages.some((message) => ToolMessage.isInstance(message))) return { text: "end" };
        const task = messages.find((message) => HumanMessage.isInstance(message))?.text ?? "";
        // A description of this test.
        return { toolCalls: task === "go" ? toolCalls : (JSON.parse(task) as string[]).map(remove) };
      }),
    });
  const checkpointer = new MemorySaver();
  const builder = new StateGraph(MessagesAnnotation);
  for (const [index, reply] of replies.entries()) {
    const name = `agent${index}`;
    builder.addNode(name, agentOf(reply));
    builder.addEdge(START, name as typeof START).addEdge(name as typeof START, END);
  }
  const graph = builder.compile({ checkpointer });
  /** Interrupt ids by what is to be removed. */
  const open = async () => {
    const { tasks } = await graph.getState(thread);
    const found = await Promise.all(
      tasks.map(({ id, name }) =>
        openInterrupts(checkpointer, { thread_id: "t", checkpoint_ns: `${name}:${id}` }),
      ),
    );
    const Asked = z.object({ actionRequests: z.tuple([z.object({ args: z.object({ id: z.string() }) })]) });
    const idOf = (value: unknown) => Asked.parse(value).actionRequests[0].args.id;
    return new Map(found.flat().map(({ id, value }) => [idOf(value), id]));
  };
  return { graph, ran, open };
}

describe("below a graph of somebody else, an answer without an id", () => {
  it.each([
    ["several calls of one agent", [[remove("1"), remove("2"), remove("3")]], ["1", "2", "3"]],
    ["calls of a subagent", [[delegate("1", "2")]], ["1", "2"]],
    ["a call and a subagent's", [[remove("1"), delegate("2")]], ["1", "2"]],
    ["agents in two nodes", [[remove("1")], [remove("2")]], ["1", "2"]],
  ])("counts for none of %s, now or later", async (_what, replies, all) => {
    const { graph, ran, open } = outerGraph(...replies);
    await graph.invoke(go, thread);
    const asked = await open();
    expect([...asked.keys()].sort()).toEqual(all);
    await graph.invoke(new Command({ resume: approve }), thread);
    expect(ran).toEqual([]);
    expect(await open()).toEqual(asked);
    for (const [index, id] of all.entries()) {
      await graph.invoke(null, thread);
      await graph.invoke(new Command({ resume: { [asked.get(id) ?? ""]: approve } }), thread);
      expect(ran).toEqual(all.slice(0, index + 1));
    }
    expect((await graph.getState(thread)).next).toEqual([]);
  });

  it.each([
    ["call", [[remove("1")]]],
    ["call of a subagent", [[delegate("1")]]],
  ])("counts for the only %s that waits", async (_what, replies) => {
    const { graph, ran } = outerGraph(...replies);
    await graph.invoke(go, thread);
    await graph.invoke(new Command({ resume: approve }), thread);
    expect(ran).toEqual(["1"]);
    expect((await graph.getState(thread)).next).toEqual([]);
  });
});
