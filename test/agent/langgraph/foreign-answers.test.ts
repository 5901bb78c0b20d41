import { createServer } from "node:http";
import { AIMessage, ChatMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
import { RemoteGraph } from "@langchain/langgraph/remote";
import { describe, expect, it } from "vitest";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { CompiledRunnable } from "../../../src/agent/build/params.ts";
import { callingOnce } from "../../support/scripted-model.ts";
import { addressOf } from "../../support/http-address.ts";

/** What the agent reads when it has delegated to `runnable`. */
async function resultOf(runnable: unknown, threadId?: string) {
  const args = { description: "work", subagent_type: "foreign" };
  const model = callingOnce({ id: "t", name: "task", args });
  const subagents = [
    { name: "foreign", description: "d", runnable: runnable as CompiledRunnable }, // as callers without types do
  ];
  const { messages, files } = await createDeepAgent({ model, subagents }).invoke(
    { messages: [{ role: "user", content: "go" }] },
    threadId === undefined ? {} : { configurable: { thread_id: threadId } },
  );
  const { text, status } = messages.at(-2) as AIMessage & { status?: string }; // the tool message
  return { text, failed: status === "error", files: Object.keys(files) };
}

const returning = (output: unknown) => RunnableLambda.from(() => output as never);
const NO_ANSWER = /^Error: subagent 'foreign' failed: it ended without an answer/;

describe("what a foreign subagent returns", () => {
  const task = new HumanMessage("work");
  it.each<[string, unknown]>([
    ["messages", { messages: [task, new AIMessage("the answer")] }],
    [
      "plain messages with a type",
      {
        messages: [
          { type: "human", content: "work" },
          { type: "ai", content: "the answer" },
        ],
      },
    ],
    ["a plain message with a role", { messages: [task, { role: "assistant", content: "the answer" }] }],
    ["a pair", { messages: [task, ["ai", "the answer"]] }],
    [
      "a message of a class by name",
      { messages: [{ type: "AIMessageChunk", content: "the answer", id: "a" }] },
    ],
    ["content blocks", { messages: [{ type: "ai", content: [{ type: "text", text: "the answer" }] }] }],
    ["a serialized message", { messages: [new AIMessage("the answer").toJSON()] }],
    ["a message of another role", { messages: [task, new ChatMessage("the answer", "critic")] }],
    ["a plain message of another role", { messages: [{ role: "critic", content: "the answer" }] }],
    ["an answer among what is no message", { messages: [null, 7, { type: "ai", content: "the answer" }] }],
    [
      "a structured response that is null",
      { messages: [new AIMessage("the answer")], structuredResponse: null },
    ],
    ["a text", "the answer"],
    ["a message", new AIMessage("the answer")],
    ["a plain message", { role: "assistant", content: "the answer" }],
  ])("is its answer: %s", async (_what, output) => {
    expect(await resultOf(returning(output))).toMatchObject({ text: "the answer", failed: false });
  });

  it("may be a structured response", async () => {
    expect((await resultOf(returning({ structuredResponse: { a: 1 } }))).text).toBe('{"a":1}');
  });

  it.each<[string, unknown]>([
    ["nothing", undefined],
    ["an empty state", {}],
    ["no messages", { messages: [] }],
    ["only the task", { messages: [task] }],
    ["a state of another form", { result: "the answer" }],
    ["an empty answer", { messages: [task, new AIMessage("")] }],
  ])("is a failure, and not a task completed: %s", async (_what, output) => {
    const { text, failed } = await resultOf(returning(output));
    expect(text).toMatch(NO_ANSWER);
    expect(failed).toBe(true);
  });

  it("may be the state of a graph whose messages are plain objects", async () => {
    const State = Annotation.Root({ messages: Annotation<unknown[]>() });
    const graph = new StateGraph(State)
      .addNode("work", () => ({ messages: [{ role: "assistant", content: "the answer" }] }))
      .addEdge(START, "work")
      .addEdge("work", END)
      .compile();
    expect(await resultOf(graph)).toMatchObject({ text: "the answer", failed: false });
  });
});

describe("a graph on a server", () => {
  /** A server of LangGraph's protocol that streams these states. */
  async function serve(states: readonly unknown[]) {
    const asked: Array<{ url: string | undefined; body: string }> = [];
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        asked.push({ url: request.url, body });
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const state of states) response.write(`event: values\ndata: ${JSON.stringify(state)}\n\n`);
        response.end();
      });
    });
    return { asked, graph: new RemoteGraph({ graphId: "far", url: await addressOf(server) }) };
  }

  it("answers with its last message, and is sent nothing of the agent's own", async () => {
    const stamp = "2026-01-01T00:00:00Z";
    const note = { content: "kept", mimeType: "text/markdown", created_at: stamp, modified_at: stamp };
    const human = { type: "human", content: "work", id: "h" };
    const reply = { type: "ai", content: "the answer", id: "a", tool_calls: [], response_metadata: {} };
    const { asked, graph } = await serve([
      { messages: [human] },
      { messages: [human, reply], files: { "/far.md": note }, structuredResponse: null },
    ]);
    const result = await resultOf(graph);
    expect(result).toEqual({ text: "the answer", failed: false, files: ["/far.md"] });
    expect(asked[0]?.url).toContain("runs/stream");
    expect(asked[0]?.body).toContain('"content":"work"');
    expect(asked[0]?.body).not.toContain("__deepagent");
  });

  it("that ends without an answer has failed", async () => {
    const { graph } = await serve([{ messages: [{ type: "human", content: "work" }] }]);
    const { text, failed } = await resultOf(graph);
    expect(text).toMatch(NO_ANSWER);
    expect(failed).toBe(true);
  });
});
