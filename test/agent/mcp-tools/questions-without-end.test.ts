import { isQuestion } from "../../../src/runs/run.ts";
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import type { RunService } from "../../../src/runs/service.ts";
import { sqliteRuns } from "../../../src/storage/sqlite/runs/repository.ts";
import { addressOf } from "../../support/http-address.ts";
import type { ScriptedToolCall } from "../../support/scripted-model.ts";
import {
  mine,
  callingInTurn,
  connect,
  databaseFile,
  openServer,
  reach,
  startRun,
} from "../../runs/support.ts";
import { at, run } from "./connect-to.ts";

const REQUESTED = { type: "object", properties: { seat: { type: "string" } } };
const SEAT = { type: "fields", values: { seat: "1A" } } as const;
const LATER = 1e14;
const GIVEN_UP = /asked a person more than 5 questions in one call/;

/** Speaks 2026-07-28: asks another question, or the first one again, whenever it is answered. */
async function askingServer(isSame: boolean) {
  let number = 0;
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "airline", version: "1.0.0" });
    server.registerTool("book", { inputSchema: z.object({}) }, () => {
      const message = `Which seat of row ${isSame ? 1 : (number += 1)}?`;
      const seat = inputRequired.elicit({ message, requestedSchema: REQUESTED as never }); // a form
      return inputRequired({ inputRequests: { seat } });
    });
    return server;
  });
  const handle = toNodeHandler(handler);
  const server = createServer((request, response) => void handle(request, response));
  return at(`${await addressOf(server)}/mcp`);
}

/** Speaks 2025-06-18: asks `count` questions at once, and waits for no answer. */
const flooding = (count: number): McpServerConfig =>
  run({
    command: process.execPath,
    args: [
      "-e",
      `const out = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
      const tools = [{ name: "book", inputSchema: { type: "object" } }];
      const answer = ({ id, method }) => {
        if (method === "initialize") out({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "a", version: "1" } } });
        if (method === "tools/list") out({ id, result: { tools } });
        if (method !== "tools/call") return;
        const params = { message: "Which seat?", requestedSchema: ${JSON.stringify(REQUESTED)} };
        for (let at = 0; at < ${count}; at += 1) out({ id: "q" + id + at, method: "elicitation/create", params });
      };
      let rest = "";
      process.stdin.on("data", (chunk) => {
        const lines = (rest + chunk).split("\\n");
        rest = lines.pop();
        lines.forEach((line) => answer(JSON.parse(line)));
      });`,
    ],
  });

/** Runs that call `book` of a server, in a file that servers share. */
function runsOf(config: McpServerConfig, ...replies: ScriptedToolCall[][]) {
  const mcp = openMcpTools({ airline: config }, { env: {}, version: "0.0.0-test", log: silentLogger });
  onTestFinished(() => mcp.close());
  const file = databaseFile();
  const agent = async () => ({ model: callingInTurn(...replies), tools: (await mcp.forAgent()).tools });
  return { file, open: (options: object = {}) => openServer(file, agent, options) };
}

const BOOK = { name: "airline__book", args: {} };

/** Answers every question, at most `most`; gives the run and its questions when no more can be answered. */
async function answered(service: RunService, runId: string, most = Infinity) {
  let count = 0;
  for (;;) {
    await expect.poll(async () => (await mine(service).read.view(runId))?.run.status).not.toBe("working");
    const view = await mine(service).read.view(runId);
    const open = view?.requests.filter(isQuestion).find(({ status }) => status === "pending");
    if (!view || view.run.status === "completed" || (open && count >= most)) return view;
    if (open && (await mine(service).requests.answer(runId, { requestId: open.id, answer: SEAT }, "page")).ok)
      count += 1;
  }
}

it.each([true, false])("a call that asks again and again fails, the same question: %s", async (isSame) => {
  const { open } = runsOf(await askingServer(isSame), [BOOK]);
  const { service } = open();
  const { id } = await startRun(service, "fly");
  const end = await answered(service, id);
  expect(end?.run.answer).toMatch(GIVEN_UP);
  expect(end?.requests.filter(isQuestion).map(({ status }) => status)).toEqual(Array(5).fill("answered"));
});

it("a restart forgets no question of a call", async () => {
  const { open } = runsOf(await askingServer(true), [BOOK]);
  const first = open();
  const { id } = await startRun(first.service, "fly");
  await answered(first.service, id, 3);
  await first.service.close();
  first.kill();
  const end = await answered(open().service, id);
  expect(end?.run.answer).toMatch(GIVEN_UP);
  expect(end?.requests.filter(isQuestion)).toHaveLength(5);
});

it("calls at once and one after the other have the limit of their run, across a restart too", async () => {
  const { open, file } = runsOf(await askingServer(false), [BOOK, BOOK, BOOK], [BOOK, BOOK, BOOK]);
  const first = open();
  const { id } = await startRun(first.service, "fly");
  await answered(first.service, id, 10);
  // What a call that is cut off did is unknown, so each of the three has to wait for an answer, or to have ended.
  const ended = connect(file).prepare<[], number>("SELECT count(ended_at) FROM effects").pluck();
  const begun = connect(file).prepare<[], number>("SELECT count(*) FROM effects").pluck();
  await expect
    .poll(async () => {
      const questions = (await mine(first.service).read.view(id))?.requests.filter(isQuestion) ?? [];
      const waiting = questions.filter(({ status }) => status === "pending").length;
      return { settled: waiting + (ended.get() ?? 0), cut: (begun.get() ?? 0) - (ended.get() ?? 0) };
    })
    .toEqual({ settled: 3, cut: 0 });
  await first.service.close();
  first.kill();
  const end = await answered(open().service, id);
  expect(end?.run.answer).toMatch(/in one call.*in one run/s);
  expect(end?.requests.filter(isQuestion)).toHaveLength(20);
});

it("a flood of questions in the middle of a call ends it, withdraws them, and is one message of news", async () => {
  const { open, file } = runsOf(flooding(200), [BOOK], [BOOK], [BOOK], [BOOK], [BOOK], [BOOK]);
  const runs = sqliteRuns(connect(file));
  const { service } = open({ runs });
  runs.news.open([{ target: "phone", types: ["question.asked"] }], () => undefined);
  const { id } = await startRun(service, "fly");
  const end = await reach(service, id, "completed");
  expect(end.run.answer).toMatch(/in one call.*in one run/s);
  expect(end.requests.filter(isQuestion).map(({ status }) => status)).toEqual(Array(20).fill("withdrawn"));
  const place = { target: "phone", environment: "test" };
  const message = await runs.news.claim(place, LATER, LATER);
  expect(message?.news.questions).toBe(20);
  expect(await runs.news.list(9)).toHaveLength(1);
});
