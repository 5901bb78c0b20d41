import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { Command, MemorySaver, interrupt } from "@langchain/langgraph";
import { tool } from "@langchain/core/tools";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { ConfigurationError } from "../../../src/core/errors.ts";
import { callingOnce, type ScriptedToolCall } from "../../support/scripted-model.ts";

const thread = { configurable: { thread_id: "t" } };
const write = (path: string): ScriptedToolCall => ({
  id: path,
  name: "write_file",
  args: { file_path: path, content: path },
});

/** An agent that waits for answers about `calls`, and the ids to answer by. */
async function waiting(calls: ScriptedToolCall[]) {
  const graph = createDeepAgent({
    model: callingOnce(...calls),
    checkpointer: new MemorySaver(),
    interruptOn: { write_file: { allowedDecisions: ["approve", "edit"] } },
    tools: [
      tool(() => String(interrupt("which?")), { name: "ask", description: "asks", schema: z.object({}) }),
    ],
  });
  const state: unknown = await graph.invoke({ messages: [{ role: "user", content: "go" }] as never }, thread);
  const ids = interruptIds(state);
  const files = async (): Promise<string[]> =>
    Object.keys((await graph.getState(thread)).values["files"] ?? {});
  const texts = async (): Promise<string[]> =>
    ((await graph.getState(thread)).values["messages"] ?? []).map(({ text }: { text: string }) => text);
  const resume = (value: unknown) => graph.invoke(new Command({ resume: value }), thread);
  return { graph, ids, files, texts, resume };
}

const Action = z.object({ interruptId: z.string() });
const interrupted = z.object({ __interrupt__: z.array(z.object({ id: z.string(), value: z.unknown() })) });
/** The ids of all questions; calls that wait for approval share an interrupt. */
const interruptIds = (state: unknown): string[] =>
  interrupted.parse(state).__interrupt__.flatMap(({ id, value }) => {
    const request = z.object({ actionRequests: z.array(Action) }).safeParse(value);
    return request.data?.actionRequests.map(({ interruptId }) => interruptId) ?? [id];
  });
const refusal = async (attempt: Promise<unknown>): Promise<string> => {
  const error: unknown = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConfigurationError);
  return error instanceof Error ? error.message : "";
};
const approve = { decisions: [{ type: "approve" }] };

describe("resuming an agent", () => {
  it("takes a bare answer when exactly one interrupt is open", async () => {
    const { resume, files, texts } = await waiting([write("/a.md")]);
    await resume(approve);
    expect((await texts()).at(-1)).toBe("end");
    expect(await files()).toEqual(["/a.md"]);
  });

  it("refuses a bare answer when several are open, and runs nothing", async () => {
    const { resume, files, ids, graph } = await waiting([write("/a.md"), write("/b.md")]);
    expect(await refusal(resume(approve))).toBe(
      `2 decisions expected, got 1. Give one for each waiting call, in this order: ${ids.map((id) => `write_file (${id})`).join(", ")}. Each can also be answered by its interrupt id, which stands behind its name.`,
    );
    expect(await files()).toEqual([]);
    const stream = async () => graph.stream(new Command({ resume: approve }), thread);
    const read = async () => {
      for await (const _chunk of await stream()) continue;
    };
    expect(await refusal(read())).toMatch(/^2 decisions expected/);
  });

  it("counts only what is still open after partial answers", async () => {
    const { resume, files, ids } = await waiting([write("/a.md"), write("/b.md")]);
    const rest: unknown = await resume({ [ids[1] ?? ""]: approve });
    expect(interruptIds(rest)).toEqual([ids[0]]);
    expect(await refusal(resume({ [ids[1] ?? ""]: approve }))).toBe(`Interrupt ${ids[1]} is not pending.`);
    await resume(approve);
    expect((await files()).sort()).toEqual(["/a.md", "/b.md"]);
  });

  it("refuses answers to unknown interrupts", async () => {
    const { resume, files, ids } = await waiting([write("/a.md")]);
    const unknown = "0".repeat(32);
    expect(await refusal(resume({ [ids[0] ?? ""]: approve, [unknown]: approve }))).toBe(
      `Interrupt ${unknown} is not pending.`,
    );
    expect(await files()).toEqual([]);
    await resume(approve);
    expect(await refusal(resume(approve))).toBe("Nothing waits for an answer in this thread.");
  });

  it.each([
    ["too few decisions", { decisions: [] }, /1 decision\(s\) expected, got 0\./],
    ["a decision that is not allowed", { decisions: [{ type: "reject" }] }, /'reject' is not allowed here/],
    ["no decisions", "yes", /must be an object with a list of decisions/],
    [
      "arguments the tool does not take",
      { decisions: [{ type: "edit", editedAction: { name: "write_file", args: { file_path: [7, 8] } } }] },
      /file_path/,
    ],
    [
      "a tool the agent does not have",
      { decisions: [{ type: "edit", editedAction: { name: "launch", args: {} } }] },
      /launch is not a tool of this agent/,
    ],
  ])("refuses %s and keeps the interrupt open", async (_what, answer, text) => {
    const { resume, files, ids } = await waiting([write("/a.md")]);
    const message = await refusal(resume(answer));
    expect(message).toMatch(text);
    expect(message).toContain(`Interrupt ${ids[0]} stays open; answer it again.`);
    expect(await files()).toEqual([]);
    await resume(approve);
    expect(await files()).toEqual(["/a.md"]);
  });

  it("keeps what finished calls brought when the thread goes on with a new message instead", async () => {
    const model = callingOnce(
      { id: "free", name: "write_todos", args: { todos: [{ content: "x", status: "pending" }] } },
      { id: "say", name: "say", args: {} },
      write("a"),
    );
    const said = tool(() => "said", { name: "say", description: "says", schema: z.object({}) });
    const graph = createDeepAgent({
      model,
      tools: [said],
      checkpointer: new MemorySaver(),
      interruptOn: { write_file: true },
    });
    await graph.invoke({ messages: [new HumanMessage("go")] }, thread);
    const { messages, todos } = await graph.invoke(
      { messages: [new HumanMessage("something else")] },
      thread,
    );
    expect(todos).toHaveLength(1);
    expect(
      messages.filter((message) => ToolMessage.isInstance(message)).map(({ tool_call_id }) => tool_call_id),
    ).toEqual(["free", "say", "a"]);
    const seen = model.requests[1]?.messages.filter((message) => ToolMessage.isInstance(message));
    expect(seen?.map(({ text }) => text).slice(1)).toEqual([
      "said",
      "Tool call was cancelled: the conversation continued with a new message while write_file waited for a person's approval. It was not run.",
    ]);
  });

  it("hands any value to a tool that asked for something else", async () => {
    const { resume, texts } = await waiting([{ name: "ask", args: {} }]);
    await resume("the second");
    expect((await texts()).slice(-2)).toEqual(["the second", "end"]);
  });

  it("makes calls that waited for their turn when the agent was stopped", async () => {
    const made: string[] = [];
    const stop = new AbortController();
    const paths = ["/a", "/b", "/c", "/d", "/e"];
    const work = tool(
      async ({ path }, { signal }: { signal?: AbortSignal }) => {
        if (path === "/b" && !stop.signal.aborted) {
          stop.abort();
          signal?.throwIfAborted();
        }
        made.push(path);
        return path;
      },
      { name: "work", description: "works", schema: z.object({ path: z.string() }) },
    );
    const graph = createDeepAgent({
      model: callingOnce(...paths.map((path) => ({ name: "work", args: { path } }))),
      checkpointer: new MemorySaver(),
      tools: [work],
      limits: { parallelTools: 2 },
    });
    const input = { messages: [new HumanMessage("go")] };
    await expect(graph.invoke(input, { ...thread, signal: stop.signal })).rejects.toThrow();
    await graph.invoke(null, thread);
    expect(made.toSorted()).toEqual(paths);
  });
});
