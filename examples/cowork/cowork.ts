// A page that shows an agent at work: server-sent events, approvals, and going on after a reload, from five
// functions of the library and nothing else of it.
// Usage: npm run build && node examples/run.mjs cowork      plays a person, checks what happens, and ends
//        npm run build && node examples/run.mjs cowork serve [FOLDER]      serves the page
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  buildAgent,
  buildLlm,
  type Decision,
  getAgentState,
  resumeAgentInput,
  type ResumeInput,
  streamEvents,
  type WorkspaceAgent,
} from "deepagent-mcp";
import { PlayedModel, results } from "../support/played-model.ts";
import { PAGE } from "./page.ts";

/** One agent, one thread, one page. */
function serve(agent: WorkspaceAgent) {
  const routes: Readonly<
    Record<string, (request: IncomingMessage, response: ServerResponse) => Promise<void>>
  > = {
    "GET /": async (_request, response) => {
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
    },
    "GET /state": async (_request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(await getAgentState(agent)));
    },
    "POST /task": async (request, response) => {
      const { task } = await json<{ task: string }>(request);
      await tell(agent, task, response);
    },
    "POST /resume": async (request, response) => {
      // A list where one call waits, or a map by id.
      const { decisions } = await json<{ decisions: Decision[] | Record<string, Decision> }>(request);
      await tell(agent, resumeAgentInput(decisions), response);
    },
  };
  const server = createServer((request, response) => {
    // A page of another site may not act here in a person's name.
    const isOurs =
      request.headers["sec-fetch-site"] !== "cross-site" &&
      /^(127\.0\.0\.1|localhost):/.test(request.headers.host ?? "");
    const route = isOurs ? routes[`${request.method} ${request.url}`] : undefined;
    if (!route) return void response.writeHead(404).end();
    route(request, response).catch((error: unknown) => void response.destroy(error as Error));
  });
  return new Promise<{ url: string; close(): void }>((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo; // it listens on a port
      resolve({ url: `http://127.0.0.1:${port}`, close: () => void server.close() });
    });
  });
}

/** Each event as one server-sent event; what cannot go on is the last one. */
async function tell(
  agent: WorkspaceAgent,
  input: string | ResumeInput,
  response: ServerResponse,
): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const send = (event: object): void => void response.write(`data: ${JSON.stringify(event)}\n\n`);
  try {
    for await (const event of streamEvents(agent, input)) send(event);
  } catch (error) {
    send({ kind: "failed", message: error instanceof Error ? error.message : "unknown error" });
  }
  response.end();
}

async function json<Body>(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Body;
}

/** An event as a page knows it. */
interface Told {
  kind: string;
  text?: string;
  message?: string;
}

/** The events of one request, as a page reads them. */
async function ask(url: string, body: object): Promise<Told[]> {
  const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
  return lines.map((line) => JSON.parse(line.slice(6)) as Told);
}

/** Plays the person: a task, a reload while something waits, a rejection, an approval. */
async function play(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "cowork-"));
  const workspaceDir = join(home, "project");
  mkdirSync(workspaceDir);
  writeFileSync(join(workspaceDir, "plan.md"), "Ship on Friday.\n");
  const write = (name: string) => ({
    name: "write_file",
    args: { file_path: join(workspaceDir, name), content: "Ship on Monday.\n" },
  });
  // With a real model: model: () => buildLlm()
  const model = new PlayedModel(({ messages }) =>
    results(messages).length === 0
      ? { calls: [write("plan-b.md"), write("plan-c.md")] }
      : { text: "I wrote what you allowed." },
  );
  const agent = buildAgent({ workspaceDir, model, globalSkills: join(home, "skills") });
  const page = await serve(agent);
  try {
    const first = await ask(`${page.url}/task`, { task: "Write two other plans." });
    assert.equal(first.at(-1)?.kind, "paused");
    // The page is loaded again: what waits is in the state.
    const { waiting } = (await (await fetch(`${page.url}/state`)).json()) as Awaited<
      ReturnType<typeof getAgentState>
    >;
    assert.equal(waiting.length, 2);
    const refused = await ask(`${page.url}/resume`, { decisions: [{ type: "approve" }] });
    assert.match(String(refused.at(-1)?.message), /Several approvals are pending/);
    const [allowed, denied] = waiting;
    assert(allowed && denied);
    const later = await ask(`${page.url}/resume`, {
      decisions: { [denied.id]: { type: "reject", message: "one is enough" } },
    });
    assert.equal(later.at(-1)?.kind, "paused");
    const done = await ask(`${page.url}/resume`, { decisions: [{ type: "approve" }] });
    assert.deepEqual(done.at(-1), { kind: "finished", answer: "I wrote what you allowed." });
    const path = String(allowed.request.actionRequests[0]?.args["file_path"]);
    assert.equal(readFileSync(path, "utf8"), "Ship on Monday.\n");
    assert.equal(existsSync(String(denied.request.actionRequests[0]?.args["file_path"])), false);
    const tokens = done.filter(({ kind }) => kind === "token");
    console.log(tokens.map(({ text }) => text).join(""));
  } finally {
    page.close();
    await agent.close();
    rmSync(home, { recursive: true, force: true });
  }
}

const [command, folder = "."] = process.argv.slice(2);
if (command === "serve") {
  const { url } = await serve(buildAgent({ workspaceDir: folder, model: () => buildLlm() }));
  console.log(`Open ${url}`);
} else await play();
