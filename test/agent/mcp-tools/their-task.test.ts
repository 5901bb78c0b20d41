import { isQuestion } from "../../../src/runs/run.ts";
import type { ServerResponse } from "node:http";
import { onTestFinished, expect, test } from "vitest";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import {
  mine,
  calling,
  cleanUpWith,
  databaseFile,
  follow,
  note,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { openHttp } from "../../support/harness-http.ts";
import { type Handler, json, refuse, sloppyHttp } from "../../support/sloppy-mcp-server.ts";
import { approvalRuns, depsFor } from "../../server/support.ts";
import { programOf } from "../../support/bundled.ts";
import { run } from "./connect-to.ts";

const config = (url: string): McpServerConfig => ({ url, headers: {}, approve: "none", timeout: 20 });

function toolsOf(url: string) {
  const mcp = openMcpTools({ far: config(url) }, { env: {}, version: "0", log: silentLogger });
  onTestFinished(() => mcp.close());
  return mcp;
}

/** A server that calls a tool of a server at this address once, and then says what the tool returned. */
async function caller(url: string, file: string, call: { name: string; args: object }) {
  const mcp = toolsOf(url);
  const { tools } = await mcp.forAgent();
  const model = calling({ name: `far__${call.name}`, args: { ...call.args } });
  return openServer(file, { model, tools });
}

test("a deep agent that is asked by another carries its run out as a task, and asks the other's person", async () => {
  const inner = approvalRuns(note("far away"));
  const { notes } = inner;
  const { url } = await openHttp(depsFor(inner.service), cleanUpWith);
  const { service } = await caller(url, databaseFile(), {
    name: "run_deep_agent",
    args: { task: "note it" },
  });
  const { id } = await startRun(service, "delegate");
  const view = await reach(service, id, "input_required");
  const [question] = view.requests.filter(isQuestion);
  expect(question).toMatchObject({ kind: "elicitation", server: "far" });
  expect(JSON.stringify(question)).toContain("far away");
  expect(notes).toEqual([]);
  const answered = await mine(service).requests.answer(
    id,
    { requestId: question?.id ?? "", answer: { type: "fields", values: { decision: "approve" } } },
    "test",
  );
  expect(answered).toMatchObject({ ok: true });
  const done = await reach(service, id, "completed");
  expect(notes).toEqual(["far away"]);
  expect(done.run.answer).toMatch(/^noted far away\n/);
});

/** A server whose tool is a task; `states` says what each look at it finds. */
async function taskServer(...states: Array<object | ((exchange: Parameters<Handler>[0]) => true)>) {
  let refused = 0;
  const server = await sloppyHttp((exchange) => {
    const { message, response } = exchange;
    const { id, method } = message;
    if (method === "tasks/update" && refused-- > 0) return refuse(response, 503);
    const say = (result: object): true => json(response, { jsonrpc: "2.0", id, result });
    if (method === "tools/call")
      return say({ resultType: "task", taskId: "t1", status: "working", pollIntervalMs: 250 });
    if (method === "tasks/cancel" || method === "tasks/update") return say({});
    if (method !== "tasks/get") return undefined;
    const state = states.length > 1 ? states.shift() : states[0];
    return typeof state === "function"
      ? state(exchange)
      : say({ taskId: "t1", pollIntervalMs: 250, ...state });
  });
  return {
    ...server,
    refuseUpdates: (times: number) => void (refused = times),
    ends: () => void states.splice(0, states.length, completed),
    times: (method: string) => server.seen.filter((one) => one === method).length,
  };
}

const working = { status: "working" };
const completed = { status: "completed", result: { content: [{ type: "text", text: "fine" }] } };

test("a call whose process was killed waits for its task in the next one, and is not made again", async () => {
  const server = await taskServer(working);
  const file = databaseFile();
  const first = await caller(server.url, file, { name: "a", args: {} });
  const { id } = await startRun(first.service, "go");
  await follow(first.service, id, (event) => event.kind === "tool_started");
  await expect.poll(() => server.times("tasks/get"), { timeout: 20_000 }).toBeGreaterThan(1);
  first.kill();
  server.seen.length = 0;
  const second = await caller(server.url, file, { name: "a", args: {} });
  await expect.poll(() => server.times("tasks/get"), { timeout: 30_000 }).toBeGreaterThan(1);
  server.ends();
  const view = await reach(second.service, id, "completed");
  expect(view.run.answer).toBe("fine");
  expect(server.times("tools/call")).toBe(0);
});

test.each([
  ["failed", { status: "failed", error: { code: -1, message: "no tea" } }, /task failed: no tea/],
  ["cancelled", { status: "cancelled", statusMessage: "by somebody" }, /task was cancelled: by somebody/],
  [
    "an error",
    { status: "completed", result: { isError: true, content: [{ type: "text", text: "not today" }] } },
    /not today/,
  ],
  ["odd", { status: "completed", result: "words" }, /returned nothing|words/],
])("a task that ends as %s tells the model", async (_how, state, said) => {
  const server = await taskServer(working, state);
  const { service } = await caller(server.url, databaseFile(), { name: "a", args: {} });
  const { id } = await startRun(service, "go");
  expect((await reach(service, id, "completed")).run.answer).toMatch(said);
});

test("a server that is away for a moment is asked again, and one that forgot the task is believed", async () => {
  const away = ({ response }: Parameters<Handler>[0]) => refuse(response, 503);
  const back = await taskServer(away, completed);
  const one = await caller(back.url, databaseFile(), { name: "a", args: {} });
  const run = await startRun(one.service, "go");
  expect((await reach(one.service, run.id, "completed")).run.answer).toBe("fine");
  const forgot = await taskServer(({ message: { id }, response }) =>
    json(response, { jsonrpc: "2.0", id, error: { code: -32_602, message: "Unknown task" } }),
  );
  const two = await caller(forgot.url, databaseFile(), { name: "a", args: {} });
  const other = await startRun(two.service, "go");
  expect((await reach(two.service, other.id, "completed")).run.answer).toMatch(/Unknown task/);
});

test("the task is cancelled with the run", async () => {
  const server = await taskServer(working);
  const { service } = await caller(server.url, databaseFile(), { name: "a", args: {} });
  const { id } = await startRun(service, "go");
  await expect.poll(() => server.times("tasks/get"), { timeout: 20_000 }).toBeGreaterThan(0);
  await mine(service).control.cancel(id, "enough");
  await expect.poll(() => server.times("tasks/cancel"), { timeout: 20_000 }).toBe(1);
});

test("a server that still shows a question after its answer is not answered again, nor asked without a pause", async () => {
  const inputRequests = { one: { method: "sampling/createMessage", params: {} } };
  const server = await taskServer({ status: "input_required", inputRequests });
  const { service } = await caller(server.url, databaseFile(), { name: "a", args: {} });
  const { id } = await startRun(service, "go");
  await expect.poll(() => server.times("tasks/get"), { timeout: 20_000 }).toBeGreaterThan(2);
  expect(server.times("tasks/update")).toBe(1);
  server.ends();
  expect((await reach(service, id, "completed")).run.answer).toBe("fine");
});

test("an answer that does not arrive is sent again", async () => {
  const inputRequests = { one: { method: "sampling/createMessage", params: {} } };
  const server = await taskServer({ status: "input_required", inputRequests }, completed);
  server.refuseUpdates(1);
  const { service } = await caller(server.url, databaseFile(), { name: "a", args: {} });
  const { id } = await startRun(service, "go");
  expect((await reach(service, id, "completed")).run.answer).toBe("fine");
  expect(server.times("tasks/update")).toBe(2);
});

/** A server of revision 2025-11-25 with a tool that is refused unless a call asks for a task. */
const OLDER = `
import { InMemoryTaskMessageQueue, InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
const [how] = process.argv.slice(2);
const taskStore = new InMemoryTaskStore();
const capabilities = { tasks: { requests: { tools: { call: {} } }, cancel: {} } };
const server = new McpServer({ name: "older", version: "1" }, { capabilities, taskStore, taskMessageQueue: new InMemoryTaskMessageQueue() });
const seat = { message: "Which seat?", requestedSchema: { type: "object", properties: { seat: { type: "string" } } } };
const work = async (taskId) => {
  if (how === "fails") return taskStore.storeTaskResult(taskId, "failed", { isError: true, content: [{ type: "text", text: "no tea" }] });
  const relatedTask = { taskId };
  if (how === "asks") await taskStore.updateTaskStatus(taskId, "input_required");
  const text = how === "asks" ? JSON.stringify((await server.server.elicitInput(seat, { relatedTask })).content) : "brewed";
  await taskStore.storeTaskResult(taskId, "completed", { content: [{ type: "text", text }] });
};
server.experimental.tasks.registerToolTask("brew", { description: "Brews.", inputSchema: {}, execution: { taskSupport: "required" } }, {
  createTask: async (_args, extra) => {
    const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 250 });
    setTimeout(() => work(task.taskId), 100);
    return { task };
  },
  getTask: (_args, extra) => extra.taskStore.getTask(extra.taskId),
  getTaskResult: (_args, extra) => extra.taskStore.getTaskResult(extra.taskId),
});
await server.connect(new StdioServerTransport());
`;

async function brewing(how: string) {
  const program = { command: process.execPath, args: [await programOf(OLDER), how] };
  const mcp = openMcpTools(
    { far: run(program) },
    { env: { PATH: process.env["PATH"] }, version: "0", log: silentLogger },
  );
  onTestFinished(() => mcp.close());
  const { tools } = await mcp.forAgent();
  const { service } = openServer(databaseFile(), {
    model: calling({ name: "far__brew", args: {} }),
    tools,
  });
  return { service, ...(await startRun(service, "go")) };
}

test.each([
  ["works", /^brewed$/],
  ["fails", /no tea/],
])("a tool of 2025-11-25 that only runs as a task is called as one: %s", async (how, said) => {
  const { service, id } = await brewing(how);
  expect((await reach(service, id, "completed")).run.answer).toMatch(said);
});

test("a task of 2025-11-25 is waited for after a kill, and not begun again", async () => {
  let status = "working";
  const server = await sloppyHttp(({ message: { id, method }, response }) => {
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
        serverInfo: { name: "older", version: "1" },
      },
      "tools/list": {
        tools: [{ name: "a", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }],
      },
      "tools/call": { task: { taskId: "t1", status, pollInterval: 250 } },
      "tasks/get": { taskId: "t1", status, pollInterval: 250 },
      "tasks/result": { content: [{ type: "text", text: "fine" }] },
    };
    const result = results[method ?? ""];
    return result && json(response, { jsonrpc: "2.0", id, result });
  });
  const times = (wanted: string) => server.seen.filter((method) => method === wanted).length;
  const file = databaseFile();
  const first = await caller(server.url, file, { name: "a", args: {} });
  const { id } = await startRun(first.service, "go");
  await expect.poll(() => times("tasks/get"), { timeout: 20_000 }).toBeGreaterThan(1);
  first.kill();
  server.seen.length = 0;
  const second = await caller(server.url, file, { name: "a", args: {} });
  status = "completed";
  expect((await reach(second.service, id, "completed")).run.answer).toBe("fine");
  expect(times("tools/call")).toBe(0);
  expect(times("tasks/result")).toBeGreaterThan(0);
});

test("a task of 2025-11-25 asks the person for whom it works", async () => {
  const { service, id } = await brewing("asks");
  const [question] = (await reach(service, id, "input_required")).requests.filter(isQuestion);
  expect(question).toMatchObject({ kind: "elicitation", message: "Which seat?" });
  const answer = { type: "fields", values: { seat: "window" } } as const;
  await mine(service).requests.answer(id, { requestId: question?.id ?? "", answer }, "test");
  expect((await reach(service, id, "completed")).run.answer).toBe('{"seat":"window"}');
});

const SEAT = {
  message: "Which seat?",
  requestedSchema: { type: "object", properties: { seat: { type: "string" } } },
};

/** A server of 2025-11-25 whose task asks for a seat whenever its result is requested; \`breaks\` cuts the connections. */
async function askingTask() {
  const results: ServerResponse[] = [];
  const server = await sloppyHttp(({ message, response }) => {
    const { id, method } = message;
    const status = "input_required";
    const answers: Record<string, object> = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
        serverInfo: { name: "older", version: "1" },
      },
      "tools/list": {
        tools: [{ name: "a", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }],
      },
      "tools/call": { task: { taskId: "t1", status, pollInterval: 250 } },
      "tasks/get": { taskId: "t1", status, pollInterval: 250 },
    };
    if (method === "tasks/result") {
      results.push(response.writeHead(200, { "content-type": "text/event-stream" }));
      const question = {
        jsonrpc: "2.0",
        id: `q${results.length}`,
        method: "elicitation/create",
        params: SEAT,
      };
      response.write(`data: ${JSON.stringify(question)}\n\n`);
      response.once("close", () => results.splice(results.indexOf(response), 1));
      open.set(response, id);
      return true;
    }
    const { result } = message as { result?: { content?: unknown } };
    if (result !== undefined) {
      const content = [{ type: "text", text: JSON.stringify(result.content ?? result) }];
      for (const one of results)
        one.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: open.get(one), result: { content } })}\n\n`);
    }
    const answer = answers[method ?? ""];
    return answer && json(response, { jsonrpc: "2.0", id, result: answer });
  });
  const open = new Map<ServerResponse, unknown>();
  return { ...server, breaks: () => results.forEach((response) => response.destroy()) };
}

test("a task of 2025-11-25 asks again after its connection broke, however often, and the old question is withdrawn", async () => {
  const server = await askingTask();
  const { service } = await caller(server.url, databaseFile(), { name: "a", args: {} });
  const { id } = await startRun(service, "go");
  const asked = async () => {
    const requests = (await mine(service).read.view(id))?.requests.filter(isQuestion) ?? [];
    return requests.filter(({ status }) => status === "pending");
  };
  const seen = new Set<string>();
  const asksAnew = () =>
    expect.poll(async () => (await asked()).some((one) => !seen.has(one.id)), { timeout: 20_000 }).toBe(true);
  for (let times = 0; times < 3; times += 1) {
    await asksAnew();
    for (const one of await asked()) seen.add(one.id);
    server.breaks();
  }
  await asksAnew();
  const [question, ...others] = await asked();
  expect(others).toEqual([]);
  const answer = { type: "fields", values: { seat: "window" } } as const;
  await mine(service).requests.answer(id, { requestId: question?.id ?? "", answer }, "test");
  expect((await reach(service, id, "completed")).run.answer).toBe('{"seat":"window"}');
});
