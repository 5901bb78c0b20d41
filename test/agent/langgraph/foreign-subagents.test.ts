import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { RunnableLambda } from "@langchain/core/runnables";
import { tool } from "@langchain/core/tools";
import {
  Annotation,
  Command,
  END,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import { createAgent, createMiddleware } from "langchain";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import type { SubagentRunnable } from "../../../src/agent/langgraph/definition.ts";
import type { FileData } from "../../../src/backends/backend.ts";
import { deferred } from "../../support/harness-deferred.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { scriptedModel, type ScriptedToolCall } from "../../support/scripted-model.ts";

const file = (content: string): FileData => ({
  content,
  mimeType: "text/markdown",
  created_at: "2026-01-01T00:00:00Z",
  modified_at: "2026-01-01T00:00:00Z",
});
type Files = Record<string, FileData>;
/** What the subagent does when it has written its files. */
type Then = (signal: AbortSignal | undefined) => Promise<void>;
const fail: Then = () => Promise.reject(new Error("no disk"));

/** A graph of somebody else that changes `/shared.md`, writes `/new.md`, and then does `then`. */
function stateGraph(then: Then): SubagentRunnable {
  const State = Annotation.Root({
    ...MessagesAnnotation.spec,
    files: Annotation<Files>({ reducer: (a, b) => ({ ...a, ...b }), default: () => ({}) }),
  });
  return new StateGraph(State)
    .addNode("write", () => ({
      messages: [new AIMessage("I wrote it.")],
      files: { "/new.md": file("new"), "/shared.md": file("one\ntwo\nTHREE\n") },
    }))
    .addNode("then", async (_state, { signal }) => {
      await then(signal);
      return { messages: [new AIMessage("done")] };
    })
    .addEdge(START, "write")
    .addEdge("write", "then")
    .addEdge("then", END)
    .compile();
}

/** An agent of LangChain with files in its state, and a tool that does `then`. */
function langChainAgent(then: Then): SubagentRunnable {
  const write = tool(
    (_args, config) =>
      new Command({
        update: {
          files: { "/new.md": file("new"), "/shared.md": file("one\ntwo\nTHREE\n") },
          messages: [{ role: "tool", content: "written", tool_call_id: config.toolCall.id }],
        },
      }),
    { name: "write", description: "writes", schema: z.object({}) },
  );
  const next = tool(async (_args, { signal }) => then(signal).then(() => "ok"), {
    name: "next",
    description: "goes on",
    schema: z.object({}),
  });
  const files = createMiddleware({
    name: "Files",
    stateSchema: z.object({ files: z.record(z.string(), z.any()).default({}) }),
    // What a tool throws is to end this agent.
    wrapToolCall: (request, handler) => handler(request),
  });
  const model = scriptedModel(({ call }) => {
    const name = ["write", "next"][call];
    return name ? { text: "I wrote it.", toolCalls: [{ name, args: {} }] } : { text: "done" };
  });
  return createAgent({ model, tools: [write, next], middleware: [files] }) as unknown as SubagentRunnable; // as above
}

/** An agent of this project, as it is compiled. */
function deepAgent(then: Then): SubagentRunnable {
  const next = tool(async (_args, { signal }) => then(signal).then(() => "ok"), {
    name: "next",
    description: "goes on",
    schema: z.object({}),
  });
  const change = { file_path: "/shared.md", old_string: "three", new_string: "THREE" };
  const replies: ScriptedToolCall[][] = [
    [
      { name: "write_file", args: { file_path: "/new.md", content: "new" } },
      { name: "edit_file", args: change },
    ],
    [{ name: "next", args: {} }],
  ];
  const model = scriptedModel(({ call }) => {
    if (call === 1 && then === fail) throw Object.assign(new Error("no disk"), { status: 400 });
    return replies[call] ? { text: "I wrote it.", toolCalls: replies[call] } : { text: "done" };
  });
  return createDeepAgent({ model, tools: [next] });
}

/** Delegates to the foreign subagent while it edits the first line of the shared file itself. */
function agentDelegating(runnable: SubagentRunnable) {
  const delegate = { id: "t", name: "task", args: { description: "write", subagent_type: "foreign" } };
  const edit = {
    id: "e",
    name: "edit_file",
    args: { file_path: "/shared.md", old_string: "one", new_string: "ONE" },
  };
  const model = scriptedModel(({ messages }) => {
    const at = messages.findLastIndex((message) => HumanMessage.isInstance(message));
    const replies = messages.slice(at).filter((message) => message.type === "ai").length;
    if (messages[at]?.text === "go on") return { text: "went on" };
    if (replies === 0)
      return {
        toolCalls: [
          { id: "w", name: "write_file", args: { file_path: "/shared.md", content: "one\ntwo\nthree\n" } },
        ],
      };
    return replies === 1 ? { toolCalls: [delegate, edit] } : { text: "end" };
  });
  const checkpointer = new MemorySaver();
  const subagents = [{ name: "foreign", description: "d", runnable }];
  return () => buildAgent({ model, checkpointer, subagents });
}
type MakeAgent = ReturnType<typeof agentDelegating>;

const contents = async (agent: MakeAgent) =>
  Object.fromEntries(
    Object.entries((await agent().snapshot("t1")).files).map(([path, { content }]) => [path, content]),
  );
const result = async (agent: MakeAgent) =>
  (await toolMessages(agent())).find(({ tool_call_id }) => tool_call_id === "t");
const KEPT = { "/new.md": "new", "/shared.md": "ONE\ntwo\nTHREE\n" };

describe.each([
  ["a graph of LangGraph", stateGraph],
  ["an agent of LangChain", langChainAgent],
  ["a deep agent", deepAgent],
])("%s as a subagent", (_what, make) => {
  it("brings its files back", async () => {
    const agent = agentDelegating(make(() => Promise.resolve()));
    await collect(agent(), { kind: "task", task: "go" });
    expect((await result(agent))?.text).toBe("done");
    expect(await contents(agent)).toEqual(KEPT);
  });

  it("that fails leaves the files it had written, merged and named", async () => {
    const agent = agentDelegating(make(fail));
    const events = await collect(agent(), { kind: "task", task: "go" });
    expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
    const { text, status } = (await result(agent)) ?? {};
    expect(status).toBe("error");
    expect(text).toMatch(/^Error: subagent 'foreign' failed: .*no disk/);
    expect(text).toContain("Files it had changed are kept: /new.md, /shared.md");
    expect(text).toContain("What it said before:\nI wrote it.");
    expect(await contents(agent)).toEqual(KEPT);
  });

  it("that is cancelled leaves them too, when the thread goes on", async () => {
    const controller = new AbortController();
    const [reached, edited] = [deferred(), deferred()];
    const agent = agentDelegating(
      make((signal) => {
        reached.resolve();
        return new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new Error("stopped")));
        });
      }),
    );
    const cancelled = collect(
      agent(),
      { kind: "task", task: "go" },
      { signal: controller.signal },
      (events) => {
        const event = events.at(-1);
        // Its result is stored within this turn of the event loop.
        if (event?.kind === "tool_finished" && event.callId === "e") setImmediate(edited.resolve);
      },
    );
    void Promise.all([reached.promise, edited.promise]).then(() => controller.abort());
    await expect(cancelled).rejects.toThrow();
    await collect(agent(), { kind: "task", task: "go on", after: "cancelled" }, { runId: "run_2" });
    const { text } = (await result(agent)) ?? {};
    expect(text).toContain("before the subagent 'foreign' had finished");
    expect(text).toContain("Files it had changed are kept: /new.md, /shared.md");
    expect(text).toContain("What it said before:\nI wrote it.");
    expect(await contents(agent)).toEqual(KEPT);
  });
});

it("a runnable without a state as a subagent that fails says that its files are not known", async () => {
  const runnable = RunnableLambda.from(() => fail(undefined)) as unknown as SubagentRunnable; // it never answers
  const agent = agentDelegating(runnable);
  await collect(agent(), { kind: "task", task: "go" });
  expect((await result(agent))?.text).toBe(
    "Error: subagent 'foreign' failed: no disk\n\nThe files it had changed are unknown: it does not report its state while it works.",
  );
});
