/** Programs written for deepagents that delegate by their own code. Each was run with deepagents 1.14.1 first. */
import { AIMessage, HumanMessage, type BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import {
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
  getCurrentTaskInput,
} from "@langchain/langgraph";
import { createMiddleware } from "langchain";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../src/agent/build/create-deep-agent.ts";
import { type ScriptedReply, callingOnce, scriptedModel } from "../support/scripted-model.ts";

const go = { messages: [new HumanMessage("go")] };
const resultsOf = ({ messages }: { messages: BaseMessage[] }) =>
  messages.filter(({ type }) => type === "tool").map(({ text }) => text);

/** Middleware with a tool that starts subagents one after the other, as an interpreter of programs does. */
function fanOut(...descriptions: string[]) {
  let offered: unknown[] = [];
  const fan = tool(
    async (_args, config: RunnableConfig) => {
      const task = offered.find(
        (one) => (one as { name: string }).name === "task",
      ) as StructuredToolInterface;
      const reports: string[] = [];
      for (const description of descriptions) {
        const message = (await task.invoke({ description, subagent_type: "worker" }, config)) as BaseMessage;
        reports.push(message.text);
      }
      return reports.join(" | ");
    },
    { name: "fan", description: "d", schema: z.object({}) },
  );
  return createMiddleware({
    name: "fan",
    tools: [fan],
    wrapModelCall: (request, next) => {
      if (request.tools.some(({ name }) => name === "task")) offered = [...request.tools];
      return next(request);
    },
  });
}

/** Calls `fan` once; each subagent says what `sub` says. */
const fanning = (sub: (task: string, messages: readonly BaseMessage[]) => ScriptedReply) =>
  scriptedModel(({ messages }) => {
    const [task = ""] = messages.flatMap(({ type, text }) => (type === "human" ? [text] : []));
    if (task !== "go") return sub(task, messages);
    return messages.some(({ type }) => type === "tool")
      ? { text: "end" }
      : { toolCalls: [{ name: "fan", args: {} }] };
  });

const worker = { name: "worker", description: "d", systemPrompt: "s" };

describe("`task`, called by middleware", () => {
  it("starts subagents", async () => {
    const model = fanning((task) => ({ text: `did ${task}` }));
    const agent = createDeepAgent({ model, middleware: [fanOut("a", "b")], subagents: [worker] });
    expect(resultsOf(await agent.invoke(go))).toEqual(["did a | did b"]);
  });

  it("continues with the answers of a person, and starts no subagent twice", async () => {
    const model = fanning((task, messages) =>
      messages.some(({ type }) => type === "tool")
        ? { text: `wrote ${task}` }
        : { toolCalls: [{ name: "write_file", args: { file_path: `/${task}`, content: task } }] },
    );
    const agent = createDeepAgent({
      model,
      middleware: [fanOut("a", "b")],
      subagents: [{ ...worker, interruptOn: { write_file: true } }],
      checkpointer: new MemorySaver(),
    });
    const thread = { configurable: { thread_id: "1" } };
    const asked: unknown[] = [];
    let state: Record<string, unknown> & { messages: BaseMessage[] } = await agent.invoke(go, thread);
    for (let left = 2; left > 0; left -= 1) {
      const [interrupt] = state["__interrupt__"] as Array<{
        value: { actionRequests: Array<{ args: unknown }> };
      }>;
      asked.push(interrupt?.value.actionRequests[0]?.args);
      state = await agent.invoke(new Command({ resume: { decisions: [{ type: "approve" }] } }), thread);
    }
    expect(asked).toMatchObject([{ file_path: "/a" }, { file_path: "/b" }]);
    expect(resultsOf(state)).toEqual(["wrote a | wrote b"]);
    expect(Object.keys(state["files"] as object)).toEqual(["/a", "/b"]);
    const firstWords = model.requests.filter(({ messages }) => messages.at(-1)?.text === "a");
    expect(firstWords).toHaveLength(1);
  });

  it("tells the program of a subagent that does not exist", async () => {
    const agent = createDeepAgent({ model: fanning(() => ({ text: "?" })), middleware: [fanOut("a")] });
    expect(resultsOf(await agent.invoke(go))[0]).toContain("worker");
  });
});

describe("a compiled subagent", () => {
  const graph = () =>
    new StateGraph(MessagesAnnotation)
      .addNode("a", () => ({ messages: [new AIMessage("of the graph")] }))
      .addEdge(START, "a")
      .addEdge("a", END)
      .compile();
  const delegating = () =>
    callingOnce({ name: "task", args: { subagent_type: "worker", description: "look" } });
  const reportOf = async (runnable: object): Promise<string[]> => {
    const subagents = [{ name: "worker", description: "d", runnable: runnable as ReturnType<typeof graph> }];
    return resultsOf(await createDeepAgent({ model: delegating(), subagents }).invoke(go));
  };

  it("is called by an `invoke` that stands in front of its class's", async () => {
    const inner = graph();
    const own = Object.assign(Object.create(inner) as object, {
      invoke: async (input: typeof go, config: RunnableConfig) => {
        const { messages } = await inner.invoke(input, config);
        return { messages: [new AIMessage(`wrapped: ${messages.at(-1)?.text}`)] };
      },
    });
    expect(await reportOf(own)).toEqual(["wrapped: of the graph"]);
    const spied = graph();
    const invoke = vi.spyOn(spied, "invoke").mockResolvedValue({ messages: [new AIMessage("mocked")] });
    expect(await reportOf(spied)).toEqual(["mocked"]);
    expect(invoke).toHaveBeenCalledOnce();
    expect(await reportOf(graph())).toEqual(["of the graph"]);
  });
});

it("a tool finds the state of its agent by LangGraph's own function", async () => {
  const look = tool(
    () => {
      const { messages, files } = getCurrentTaskInput<{ messages: BaseMessage[]; files: object }>();
      return `${messages.length} messages, files ${Object.keys(files).join()}`;
    },
    { name: "look", description: "d", schema: z.object({}) },
  );
  const agent = createDeepAgent({ model: callingOnce({ name: "look", args: {} }), tools: [look] });
  const files = {
    "/a.md": {
      content: "a",
      mimeType: "text/plain",
      created_at: "2026-01-01T00:00:00Z",
      modified_at: "2026-01-01T00:00:00Z",
    },
  };
  expect(resultsOf(await agent.invoke({ ...go, files }))).toEqual(["2 messages, files /a.md"]);
});
