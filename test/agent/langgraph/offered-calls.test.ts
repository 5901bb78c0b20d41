/** Middleware and tools of LangChain that call the tools of the agent, as `@langchain/quickjs` does. */
import { HumanMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import { createMiddleware, tool } from "langchain";
import { expect, it } from "vitest";
import { z } from "zod";
import { buildAgent, type DeepAgentParams } from "../../../src/agent/agent.ts";
import { createDeepAgent } from "../../../src/agent/build/create-deep-agent.ts";
import { collect, paused, resumeAgentInput, toolMessages } from "../../support/run-agent.ts";
import { callingOnce } from "../../support/scripted-model.ts";

type Calls = readonly (readonly [name: string, args: object])[];

/** Around the call of `go`, middleware makes these calls of tools that it found in a request. */
function caller(calls: Calls) {
  const said: string[] = [];
  let tools: readonly StructuredToolInterface[] = [];
  const middleware = createMiddleware({
    name: "Caller",
    wrapModelCall: (request, next) => {
      tools = request.tools as StructuredToolInterface[]; // those of the agent
      return next(request);
    },
    wrapToolCall: async (request, next) => {
      if (!["go", "run_program"].includes(request.toolCall.name)) return next(request);
      for (const [name, args] of calls) {
        const found = tools.find((one) => one.name === name);
        const answer = found?.invoke(args) ?? Promise.reject(new Error("not offered"));
        said.push(await answer.then(String, (error: unknown) => `thrown: ${String(error)}`));
      }
      return next(request);
    },
  });
  return { said, middleware, all: () => tools };
}

const GO = tool(async () => "went", { name: "go", description: "Goes.", schema: z.object({}) });

const params = (middleware: DeepAgentParams["middleware"], more: Partial<DeepAgentParams> = {}) => ({
  model: callingOnce({ name: "go", args: {} }),
  tools: [GO],
  middleware: middleware ?? [],
  ...more,
});

it("get results, and what they change is in the state", async () => {
  const { said, middleware } = caller([
    ["write_file", { file_path: "/a.txt", content: "one" }],
    ["read_file", { file_path: "/a.txt" }],
    ["read_file", { file_path: "/missing.txt" }],
    ["ls", { path: 7 }],
  ]);
  const { files } = await createDeepAgent(params([middleware])).invoke({
    messages: [new HumanMessage("go")],
  });
  expect(said.slice(0, 3)).toEqual([
    expect.stringContaining("/a.txt"),
    "1\tone",
    "Error: File '/missing.txt' not found",
  ]);
  expect(said[3]).toMatch(/Invalid arguments|did not match expected schema/);
  expect(Object.keys(files ?? {})).toEqual(["/a.txt"]);
});

it("are approved by a person where the agent's own are", async () => {
  const { said, middleware } = caller([
    ["ls", { path: "/" }],
    ["write_file", { file_path: "/a.txt", content: "one" }],
    ["write_file", { file_path: "/b.txt", content: "two" }],
  ]);
  const gated = { interruptOn: { write_file: true }, checkpointer: new MemorySaver() };
  const agent = buildAgent(params([middleware], gated));
  let events = await collect(agent, { kind: "task", task: "go" });
  for (const [path, type] of [
    ["/a.txt", "approve"],
    ["/b.txt", "reject"],
  ] as const) {
    const [request] = paused(events);
    expect(request?.request.actionRequests).toMatchObject([
      { name: "write_file", args: { file_path: path } },
    ]);
    said.length = 0;
    events = await collect(agent, resumeAgentInput({ [request?.id ?? ""]: { decisions: [{ type }] } }));
  }
  expect(events.at(-1)).toMatchObject({ kind: "finished" });
  expect(said).toEqual([
    expect.any(String),
    expect.stringContaining("/a.txt"),
    expect.stringMatching(/reject/i),
  ]);
  expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["went"]);
});

it("are refused outside of a call, and around a program, which numbers its own", async () => {
  const { said, middleware, all } = caller([["ls", { path: "/" }]]);
  const program = { name: "run_program", args: { source: "return 1" } };
  const agent = createDeepAgent(params([middleware], { model: callingOnce(program), programs: true }));
  await agent.invoke({ messages: [new HumanMessage("go")] });
  expect(said).toEqual([expect.stringContaining("cannot be called around a program")]);
  const ls = all().find(({ name }) => name === "ls");
  await expect(ls?.invoke({ path: "/" })).rejects.toThrow("runs inside a call of a deep agent only");
});
