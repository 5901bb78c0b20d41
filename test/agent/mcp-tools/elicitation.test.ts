import { isQuestion } from "../../../src/runs/run.ts";
import { expect, it, onTestFinished } from "vitest";
import { flatFields } from "../../../src/tools/check-answer.ts";
import { parseElicitation } from "../../../src/agent/mcp-tools/elicitation.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { calling, databaseFile, mine, openServer, reach, startRun } from "../../runs/support.ts";
import { json, sloppyHttp } from "../../support/sloppy-mcp-server.ts";
import { newServer, oldHttpServer, oldServer } from "./asking-server.ts";
import { at, run } from "./connect-to.ts";

/** A run that calls `book` of a server until it waits for a person. */
async function booking(config: McpServerConfig, options: object = {}, calls = [book("a")]) {
  const env = { PATH: process.env["PATH"] };
  const mcp = openMcpTools({ airline: config }, { env, version: "0.0.0-test", log: silentLogger });
  onTestFinished(() => mcp.close());
  const file = databaseFile();
  const agent = async () => ({
    model: calling(...calls),
    tools: (await mcp.forAgent()).tools,
  });
  const server = openServer(file, agent, options);
  const { id: runId } = await startRun(server.service, "fly");
  return { ...server, file, agent, runId };
}

const SEAT = { kind: "elicitation", server: "airline", message: "Which seat?", mode: "form" };
const WINDOW = { type: "fields", values: { seat: "window" } } as const;

it("a server of 2026 asks a person; the call is made again with the answer, after a restart too", async () => {
  const { url, booked } = await newServer();
  const { service, kill, file, agent, runId } = await booking(at(url));
  const [question] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  expect(question).toMatchObject({ ...SEAT, status: "pending" });
  await service.close();
  kill();
  const other = openServer(file, agent);
  expect(booked).toEqual([]);
  await mine(other.service).requests.answer(runId, { requestId: question?.id ?? "", answer: WINDOW }, "page");
  expect((await reach(other.service, runId, "completed")).run.answer).toBe("accept window");
  expect(booked).toEqual(["window"]);
});

it("a person may decline what a server asks", async () => {
  const { url, booked } = await newServer();
  const { service, runId } = await booking(at(url));
  const [question] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  await mine(service).requests.answer(
    runId,
    { requestId: question?.id ?? "", answer: { type: "decline" } },
    "page",
  );
  expect((await reach(service, runId, "completed")).run.answer).toBe("decline undefined");
  expect(booked).toEqual([]);
});

it("a server of 2025 asks while its call is at work, and the call waits", async () => {
  const { service, runId } = await booking({ ...run(await oldServer()), timeout: 2 });
  const [question] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  expect(question).toMatchObject({ ...SEAT, status: "pending" });
  // Longer than the server has for a call by itself.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await mine(service).requests.answer(runId, { requestId: question?.id ?? "", answer: WINDOW }, "page");
  const { run: ended, requests } = await reach(service, runId, "completed");
  const questions = requests.filter(isQuestion);
  expect(ended.answer).toBe("accept window");
  expect(questions).toMatchObject([{ status: "answered", decidedBy: "page" }]);
});

/** A server of 2025-11-25 whose tool `book` works once an address was opened (strands-agents/harness-sdk#1742). */
async function consentServer(elicitations: unknown) {
  let isOpen = false;
  const { url } = await sloppyHttp(({ message: { id, method, ...message }, response }) => {
    const result = (value: object): true => json(response, { jsonrpc: "2.0", id, result: value });
    if (method === "tools/list")
      return result({ tools: [{ name: "book", inputSchema: { type: "object" } }] });
    if (method !== "tools/call") return undefined;
    expect(message).not.toHaveProperty("params.inputResponses");
    if (isOpen) return result({ content: [{ type: "text", text: "booked" }] });
    const error = { code: -32_042, message: "More is needed.", data: { elicitations } };
    return json(response, { jsonrpc: "2.0", id, error });
  });
  return { url, open: () => void (isOpen = true) };
}

const ADDRESS = {
  mode: "url",
  elicitationId: "77",
  url: "https://consent.example/?id=77",
  message: "Connect.",
};

it("a call that is refused until an address was opened is made again once it was", async () => {
  const consent = await consentServer([ADDRESS]);
  const { service, runId } = await booking(at(consent.url));
  const [question] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  expect(question).toMatchObject({ server: "airline", mode: "url", url: ADDRESS.url, message: "Connect." });
  consent.open();
  const opened = { requestId: question?.id ?? "", answer: { type: "opened" } } as const;
  await mine(service).requests.answer(runId, opened, "page");
  expect((await reach(service, runId, "completed")).run.answer).toBe("booked");
});

it("the model learns of an address that a person did not open", async () => {
  const consent = await consentServer([ADDRESS]);
  const { service, runId } = await booking(at(consent.url));
  const [question] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const declined = { requestId: question?.id ?? "", answer: { type: "decline" } } as const;
  await mine(service).requests.answer(runId, declined, "page");
  expect((await reach(service, runId, "completed")).run.answer).toContain(`${ADDRESS.url} (Connect.)`);
});

it.each([
  ["no list", undefined],
  ["an address of a program", [{ ...ADDRESS, url: "javascript:alert(1)" }]],
  ["entries that are none", [null, 7]],
])("a refusal with %s asks nobody, and the run goes on", async (_name, elicitations) => {
  const consent = await consentServer(elicitations);
  const { service, runId } = await booking(at(consent.url));
  const { run: ended, requests } = await reach(service, runId, "completed");
  expect(ended.answer).toMatch(/^Error: /);
  expect(requests).toEqual([]);
});

const KEY = "very/secret+key-0123456789";

it.each([
  [
    "form",
    {
      message: "Is $KEY right?",
      requestedSchema: {
        type: "object",
        properties: { $KEY: { type: "string", title: "$KEY", description: "$KEY", enum: ["$KEY", "no"] } },
      },
    },
  ],
  ["address", { mode: "url", elicitationId: "1", message: "open $KEY", url: "https://x.example/?k=$KEY" }],
])("the secrets of a server are in no part of its %s", async (_kind, question) => {
  const source = `const out = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
    const key = process.env.KEY;
    const forms = [key, encodeURIComponent(key), Buffer.from("x" + key).toString("base64url")];
    const question = forms.map((form) => JSON.stringify(JSON.parse(${JSON.stringify(JSON.stringify(question))}.replaceAll("$KEY", form))));
    const answer = ({ id, method, result }) => {
      if (method === "initialize") out({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } } });
      if (method === "tools/list") out({ id, result: { tools: [{ name: "book", inputSchema: { type: "object" } }] } });
      if (method === "tools/call") question.forEach((params, at) => out({ id: at, method: "elicitation/create", params: JSON.parse(params) }));
    };
    require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => answer(JSON.parse(line)));`;
  const server = { ...run({ command: process.execPath, args: ["-e", source] }), env: { KEY } };
  const { service, runId } = await booking(server);
  await expect
    .poll(async () => (await mine(service).read.view(runId))?.requests.filter(isQuestion).length)
    .toBe(3);
  const questions = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  const shown = JSON.stringify([questions, await mine(service).read.events(runId)]);
  expect(shown.split("[hidden]").length).toBeGreaterThan(6);
  for (const form of [KEY, encodeURIComponent(KEY), Buffer.from(KEY).toString("base64url").slice(4, -4)])
    expect(shown).not.toContain(form);
});

it("nobody answers a server of 2025 in time: it is told so, and the question is withdrawn", async () => {
  const { service, runId } = await booking(run(await oldServer()), { questionHoldMs: 200 });
  const { run: ended, requests } = await reach(service, runId, "completed");
  const questions = requests.filter(isQuestion);
  expect(ended.answer).toBe("cancel undefined");
  expect(questions).toMatchObject([{ status: "withdrawn" }]);
});

const book = (id: string) => ({ id, name: "airline__book", args: {} });

it("two calls of one run ask a server of 2025 at once: each question reaches the person, and its answer the call", async () => {
  const { service, runId } = await booking(run(await oldServer()), {}, [book("a"), book("b")]);
  const asked = async () => (await mine(service).read.view(runId))?.requests.filter(isQuestion) ?? [];
  await expect.poll(async () => (await asked()).length, { timeout: 30_000 }).toBe(2);
  for (const [index, { id }] of (await asked()).entries()) {
    const seat = index === 0 ? "window" : "aisle";
    await mine(service).requests.answer(
      runId,
      { requestId: id, answer: { type: "fields", values: { seat } } },
      "page",
    );
  }
  const { run: ended } = await reach(service, runId, "completed");
  expect(ended.answer?.split("; ").toSorted()).toEqual(["accept aisle", "accept window"]);
});

it("over HTTP a question is known by the stream of its call, also beside calls of other runs", async () => {
  const { service, runId } = await booking(at((await oldHttpServer()).url));
  await reach(service, runId, "input_required");
  const other = await startRun(service, "fly too");
  const [question] = (await reach(service, other.id, "input_required")).requests.filter(isQuestion);
  await mine(service).requests.answer(other.id, { requestId: question?.id ?? "", answer: WINDOW }, "page");
  expect((await reach(service, other.id, "completed")).run.answer).toBe("accept window");
  const [own] = (await reach(service, runId, "input_required")).requests.filter(isQuestion);
  await mine(service).requests.answer(
    runId,
    { requestId: own?.id ?? "", answer: { type: "decline" } },
    "page",
  );
  expect((await reach(service, runId, "completed")).run.answer).toBe("decline undefined");
});

it("a question that may be of two runs is lost: the step and the run say so", async () => {
  const { service, runId } = await booking(run(await oldServer()));
  await reach(service, runId, "input_required");
  const other = await startRun(service, "fly too");
  const { run: ended, requests } = await reach(service, other.id, "completed");
  const questions = requests.filter(isQuestion);
  const lost =
    "The MCP server airline asked a question during airline__book. Nobody was asked, because it may be of another run";
  expect(ended.answer).toContain(`cancel undefined\n\n[${lost}`);
  expect(questions).toEqual([]);
  const events = (await mine(service).read.recentEvents(other.id, { kinds: ["warning"], limit: 9 })) ?? [];
  expect(events).toMatchObject([{ data: { message: expect.stringContaining(lost) } }]);
});

it("a server killed while a call is held: the question is withdrawn, and the call's outcome is unknown", async () => {
  const { service, kill, file, agent, runId } = await booking(run(await oldServer()));
  await reach(service, runId, "input_required");
  kill();
  const other = openServer(file, agent);
  const { run: ended, requests } = await reach(other.service, runId, "completed");
  const questions = requests.filter(isQuestion);
  expect(questions[0]).toMatchObject({ status: "withdrawn" });
  expect(ended.answer).not.toContain("accept");
});

it("reads what servers ask, however they write it", () => {
  const ask = (params: object) => parseElicitation("s", params);
  expect(ask({ message: "Go", requestedSchema: { properties: { a: { type: "boolean" } } } })).toMatchObject({
    mode: "form",
    fields: [{ name: "a", type: "yes_no" }],
  });
  expect(ask({ mode: "url", message: "Log in", url: "https://example.com/x" })).toMatchObject({
    mode: "url",
  });
  expect(ask({ mode: "url", message: "Log in", url: "javascript:alert(1)" })).toBeUndefined();
  expect(ask({ mode: "url", message: "Log in", url: "file:///etc/passwd" })).toBeUndefined();
  expect(ask({ requestedSchema: { type: "object", properties: { a: { type: "object" } } } })).toBeUndefined();
  expect(ask({})).toBeUndefined();
  const titled = { oneOf: [{ const: "a", title: "First" }, { const: "b" }] };
  const several = { type: "array", items: { type: "string", enum: ["x", "y"] } };
  const named = { type: "string", enum: ["1", "2"], enumNames: ["one", "two"] };
  const limited = { type: "integer", minimum: 1, maximum: 5 };
  expect(flatFields({ properties: { titled, several, named, limited }, required: ["several"] })).toEqual([
    { name: "titled", type: "choice", options: ["a", "b"], labels: ["First", "b"] },
    { name: "several", required: true, type: "choice", options: ["x", "y"], many: true },
    { name: "named", type: "choice", options: ["1", "2"], labels: ["one", "two"] },
    { name: "limited", type: "number", integer: true, min: 1, max: 5 },
  ]);
});
