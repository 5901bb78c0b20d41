import { HumanMessage, type BaseMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import type { Backend } from "../../src/backends/backend.ts";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import {
  type AgentMiddleware,
  CompositeBackend,
  createDeepAgent,
  type DeepAgentParams,
  StateBackend,
} from "../../src/index.ts";
import { scriptedSteps } from "../support/scripted-model.ts";

const CAUSE = "connect postgres://user:secret@db failed in /host/path";
const fail = (): never => {
  throw new Error(CAUSE);
};

/** A backend all of whose methods do the same; `isComplete`: it declares to need no help. */
function backendOf(answer: () => unknown, isComplete: boolean): Backend {
  const methods = ["ls", "read", "readRaw", "grep", "glob", "write", "edit", "delete"];
  const declared = { writeMode: true, regexGrep: true, versions: true, abort: true, rawRead: true };
  return {
    capabilities: isComplete ? declared : {},
    ...Object.fromEntries(methods.map((name) => [name, answer])),
  } as unknown as Backend; // wrong on purpose
}

function logOf(): { log: Logger; lines: [event: string, fields: LogFields | undefined][] } {
  const lines: [string, LogFields | undefined][] = [];
  const note = (event: string, fields?: LogFields): void => void lines.push([event, fields]);
  return { lines, log: { debug: () => {}, info: note, warn: note, error: note } };
}

const CALLS = [
  { name: "read_file", args: { file_path: "/a.txt" } },
  { name: "ls", args: { path: "/" } },
  { name: "grep", args: { pattern: "x" } },
  { name: "glob", args: { pattern: "*" } },
  { name: "write_file", args: { file_path: "/b.txt", content: "x" } },
  { name: "edit_file", args: { file_path: "/a.txt", old_string: "x", new_string: "y" } },
];

async function run(params: DeepAgentParams): Promise<string[]> {
  const model = scriptedSteps([{ toolCalls: CALLS }, { text: "done" }]);
  const agent = createDeepAgent({ ...params, model });
  const state = await agent.invoke({ messages: [new HumanMessage("Look")] });
  const messages: BaseMessage[] = state.messages;
  return messages.filter((message) => message.type === "tool").map(({ text }) => text);
}

describe.each([
  ["declares all it does itself", true],
  ["is completed", false],
])("a backend that %s", (_what, isComplete) => {
  test("and throws: the model gets one text, the log the cause", async () => {
    const { log, lines } = logOf();
    const told = await run({ backend: backendOf(fail, isComplete), log });
    expect(told).toHaveLength(CALLS.length);
    for (const text of told)
      expect(text).toMatch(/^Error: '\/[ab.tx]*' could not be accessed: its backend failed$/);
    expect(lines.length).toBeGreaterThanOrEqual(CALLS.length);
    for (const [event, fields] of lines) {
      expect(event).toBe("backend_error");
      expect(fields?.["error"]).toMatchObject({
        message: CAUSE,
        stack: expect.stringContaining("broken-extensions"),
      });
    }
  });

  test.each([[undefined], [null], [7], [{}], [{ files: "none", content: 1, matches: {}, path: 3 }]])(
    "and answers %j: the model is not told of success",
    async (answer) => {
      const { log, lines } = logOf();
      const told = await run({ backend: backendOf(() => answer, isComplete), log });
      for (const text of told) expect(text).toContain("its backend returned an invalid result");
      expect(new Set(lines.map(([event]) => event))).toEqual(new Set(["backend_error"]));
    },
  );

  test("does not end a run that reads memories and skills from it", async () => {
    const { log, lines } = logOf();
    const params = { memory: ["/AGENTS.md"], skills: ["/skills"], backend: backendOf(fail, isComplete), log };
    expect(await run(params)).toHaveLength(CALLS.length);
    expect(lines.filter(([event]) => event === "backend_error").length).toBeGreaterThan(CALLS.length);
  });

  test("does not hide the others it is mounted beside", async () => {
    const { log, lines } = logOf();
    const backend = new CompositeBackend(new StateBackend(), { "/broken/": backendOf(fail, isComplete) });
    const [, listed, found = ""] = await run({ backend, log });
    expect(listed).toContain("/broken/");
    expect(found).toContain("[not searched: /broken/: '/broken' could not be accessed: its backend failed]");
    expect(lines.map(([event]) => event)).toContain("backend_error");
  });
});

describe("middleware", () => {
  const HOOKS = ["beforeAgent", "beforeModel", "wrapModelCall", "afterModel", "afterAgent", "finishRequest"];

  test.each(HOOKS)("that throws in %s ends the run under its own name", async (hook) => {
    const { log, lines } = logOf();
    const middleware = [{ name: "mine", [hook]: fail } as unknown as AgentMiddleware]; // one of several hooks
    await expect(run({ middleware, log })).rejects.toMatchObject({
      code: "middleware_error",
      message: CAUSE,
      cause: { message: CAUSE },
    });
    expect(lines).toEqual([
      ["middleware_error", { middleware: "mine", hook, error: expect.objectContaining({ message: CAUSE }) }],
    ]);
  });

  test.each(["beforeModel", "wrapModelCall"])("that answers in a wrong form in %s is named", async (hook) => {
    const { log, lines } = logOf();
    const middleware = [{ name: "mine", [hook]: () => 7 } as unknown as AgentMiddleware]; // wrong on purpose
    await expect(run({ middleware, log })).rejects.toMatchObject({
      code: "middleware_error",
      message: expect.stringMatching(/^Middleware mine must answer/),
    });
    expect(lines.map(([event]) => event)).toEqual(["middleware_error"]);
  });

  test("that throws around a tool: the model gets one text, and the run goes on", async () => {
    const { log, lines } = logOf();
    const told = await run({ middleware: [{ name: "mine", wrapToolCall: fail }], log });
    expect(told[0]).toBe(
      "Error: A middleware failed around this call. It is unknown whether read_file ran: check before you call it again.",
    );
    expect(new Set(lines.map(([event]) => event))).toEqual(new Set(["middleware_error"]));
  });

  test("is not blamed for what the model throws", async () => {
    const { log, lines } = logOf();
    const model = scriptedSteps([
      () => {
        throw new Error("overloaded");
      },
    ]);
    const middleware = [
      { name: "mine", wrapModelCall: (request: never, next: (r: never) => never) => next(request) },
    ];
    const agent = createDeepAgent({ model, middleware: middleware as unknown as AgentMiddleware[], log });
    await expect(agent.invoke({ messages: [new HumanMessage("Look")] })).rejects.toMatchObject({
      code: expect.stringMatching(/^model_/),
    });
    expect(lines.map(([event]) => event)).not.toContain("middleware_error");
  });
});
