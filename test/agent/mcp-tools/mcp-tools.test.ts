import { createServer, type Server } from "node:http";
import { MemorySaver } from "@langchain/langgraph";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer, type McpServerFactory } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { reportMissingTools } from "../../../src/agent/mcp-tools/server-layers.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { processesWith } from "../../support/harness-process.ts";
import { collect, paused, toolMessages, resumeAgentInput } from "../../support/run-agent.ts";
import { callingOnce, type ScriptedToolCall } from "../../support/scripted-model.ts";
import { PNG, toyServer } from "./toy-server.ts";
import { addressOf } from "../../support/http-address.ts";
import { freePort } from "../../support/free-port.ts";

const SECRET = "s3cret-value-of-the-toy";

function open(servers: Record<string, McpServerConfig>, patienceMs?: number) {
  const lines: string[] = [];
  const mcp = openMcpTools(servers, {
    env: { TOY_SECRET: SECRET, PATH: process.env["PATH"] },
    version: "0.0.0-test",
    log: createLogger("debug", (line) => void lines.push(line)),
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
  onTestFinished(() => mcp.close());
  return { mcp, log: () => lines.join("") };
}

const local = (toy: { command: string; args: string[] }, more: Partial<McpServerConfig> = {}) =>
  ({ ...toy, env: {}, approve: "writes", timeout: 30, ...more }) as McpServerConfig;

/** An agent whose first reply makes these calls, with everything the servers offer. */
async function agentCalling(mcp: ReturnType<typeof openMcpTools>, toolCalls: ScriptedToolCall[]) {
  const { tools, gated, problems, leftOut } = await mcp.forAgent();
  const model = callingOnce(...toolCalls);
  const agent = buildAgent({
    model,
    tools,
    interruptOn: Object.fromEntries(gated.map((name) => [name, true])),
    middleware: reportMissingTools({ problems, leftOut }),
    checkpointer: new MemorySaver(),
  });
  return { agent, model };
}

const TASK = { kind: "task", task: "go" } as const;

describe("tools of an MCP server", () => {
  it("run free when they only read, and after approval when not", async () => {
    const toy = await toyServer();
    const { mcp } = open({ toy: local(toy) });
    const { tools, gated } = await mcp.forAgent();
    const names = tools.map(({ name }) => name);
    expect(names).toContain("toy__store");
    const lookUp = names.find((name) => name.startsWith("toy__look_up_")) ?? "";
    expect(gated.toSorted()).toEqual(["toy__crash", "toy__store"]);
    expect(tools.find(({ name }) => name === lookUp)?.kind).toBe("read");

    const { agent } = await agentCalling(mcp, [
      { name: lookUp, args: { word: "tide" } },
      { name: "toy__store", args: { word: "tide" } },
    ]);
    const [request] = paused(await collect(agent, TASK));
    expect(request?.request.actionRequests[0]).toMatchObject({
      name: "toy__store",
      args: { word: "tide" },
      preview: { summary: "MCP server toy, tool store" },
    });
    expect(toy.effects()).toEqual([]);
    await collect(agent, resumeAgentInput({ [request?.id ?? ""]: { decisions: [{ type: "approve" }] } }));
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["meaning of tide", "stored tide"]);
    expect(toy.effects()).toEqual(["tide"]);
  });

  it("are gated, and chosen, as configured", async () => {
    const toy = await toyServer();
    const { mcp } = open({
      all: local(toy, { approve: "all", tools: ["look.up", "store", "gone"] }),
      none: local(toy, { approve: "none", tools: ["store"] }),
    });
    const { tools, gated, problems } = await mcp.forAgent();
    expect(tools).toHaveLength(3);
    expect(gated).toEqual(tools.map(({ name }) => name).filter((name) => name.startsWith("all__")));
    expect(problems).toEqual([]);
  });

  it("answer bad arguments without a call, and failures in words", async () => {
    const toy = await toyServer();
    const { mcp } = open({ toy: local(toy) });
    const { agent } = await agentCalling(mcp, [
      { name: "toy__store", args: { word: ["a", "b"] } },
      { name: "toy__refuse", args: {} },
    ]);
    await collect(agent, TASK);
    const [invalid, refused] = await toolMessages(agent);
    expect(invalid?.text).toMatch(/^Error: Invalid arguments for toy__store: .*word.*string/);
    expect(refused).toMatchObject({ text: "Error: not today", status: "error" });
    expect(toy.effects()).toEqual([]);
  });

  it("bring pictures with the type of their bytes, and large results into files", async () => {
    const { mcp } = open({ toy: local(await toyServer()) });
    const { agent } = await agentCalling(mcp, [
      { name: "toy__picture", args: {} },
      { name: "toy__large", args: {} },
    ]);
    await collect(agent, TASK);
    const [picture, large] = await toolMessages(agent);
    expect(picture?.content).toEqual([{ type: "image", mimeType: "image/png", data: PNG }]);
    expect(large?.text).toMatch(/^The result of toy__large is too large to show \(200000 characters\)/);
  });

  it("start again after their server ended, which leaves the outcome of the call open", async () => {
    const { mcp } = open({ toy: local(await toyServer(), { approve: "none" }) });
    const { agent } = await agentCalling(mcp, [{ name: "toy__crash", args: {} }]);
    await collect(agent, TASK);
    const [crashed] = await toolMessages(agent);
    expect(crashed?.text).toBe(
      "Error: The MCP server toy failed: it closed the connection. Whether the call took effect is unknown: check before you make it again.",
    );
    const { tools, problems } = await mcp.forAgent();
    expect(problems).toEqual([]);
    expect(tools.length).toBeGreaterThan(0);
  });

  it("stop with the run", async () => {
    const toy = await toyServer();
    const { mcp } = open({ toy: local(toy) });
    const { agent } = await agentCalling(mcp, [{ name: "toy__hang", args: {} }]);
    const controller = new AbortController();
    const run = collect(agent, TASK, { signal: controller.signal });
    await expect.poll(toy.effects).not.toEqual([]);
    controller.abort();
    await expect(run).rejects.toThrow();
  });
});

describe("a server's process", () => {
  it("gets a clean environment and what is configured, which nobody is shown", async () => {
    const env = { TOY_KEY: "${TOY_SECRET}", TOY_PLAIN: "${NOT_SET:-plain}" };
    const { mcp, log } = open({ toy: local(await toyServer(), { env }) });
    const { agent } = await agentCalling(mcp, [{ name: "toy__environment", args: {} }]);
    process.env["DEEPAGENT_TEST_LEAK"] = "1";
    onTestFinished(() => void delete process.env["DEEPAGENT_TEST_LEAK"]);
    await collect(agent, TASK);
    const [answer] = await toolMessages(agent);
    const told: unknown = JSON.parse(answer?.text ?? "");
    expect(told).toMatchObject({ key: "[hidden]", characters: SECRET.length });
    const { names } = told as { names: string[] };
    const harmless = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    expect(names.filter((name) => !harmless.includes(name))).toEqual(["TOY_KEY", "TOY_PLAIN"]);
    expect(log()).toContain("starting with [hidden]");
    expect(log()).not.toContain(SECRET);
  });

  it("ends with the connection, even when it does not want to", async () => {
    const mark = `TOY_MARK=${crypto.randomUUID()}`;
    const env = { TOY_MARK: mark.slice("TOY_MARK=".length) };
    const { mcp } = open({ toy: local(await toyServer("stubborn"), { env }) });
    await mcp.forAgent();
    expect(processesWith(mark)).toHaveLength(1);
    await mcp.close();
    await expect.poll(() => processesWith(mark)).toEqual([]);
  });
});

it("a server that cannot be used is told to the journal and the model, and the others work", async () => {
  const toy = await toyServer();
  const { mcp, log } = open(
    {
      toy: local(toy, { tools: ["store"] }),
      absent: local({ command: "/no/such/program", args: [] }),
      keyless: local(toy, { env: { KEY: "${NO_SUCH_KEY}" } }),
      silent: local(await toyServer("silent")),
    },
    2000,
  );
  // On a busy machine the good one may be late at first, too.
  const missing = async () => (await mcp.forAgent()).problems.length;
  await expect.poll(missing).toBe(3);
  const { agent, model } = await agentCalling(mcp, [{ name: "ls", args: {} }]);
  const events = await collect(agent, TASK);
  const warnings = events.flatMap((event) => (event.kind === "warning" ? [event.message] : []));
  expect(warnings).toEqual([
    "MCP server absent is unavailable (its command was not found). Continuing without its tools.",
    "MCP server keyless is unavailable (it needs the environment variable NO_SUCH_KEY, which is not set). Continuing without its tools.",
    "MCP server silent is unavailable (it is still starting; later runs may find it ready). Continuing without its tools.",
  ]);
  expect(events.at(-1)).toMatchObject({ kind: "finished", answer: "end" });
  expect(model.requests[0]?.tools).toContain("toy__store");
  expect(model.requests[0]?.messages[0]?.text).toContain(
    "These MCP servers and their tools are not available now: absent, keyless, silent.",
  );
  for (const server of ["absent", "keyless", "silent"]) {
    expect(log()).toContain(`"mcp_server_unavailable","server":"${server}"`);
  }
});

describe("a server at a URL", () => {
  const remote = (url: string): McpServerConfig => ({
    url,
    headers: { "X-Api-Key": "${TOY_SECRET}" },
    approve: "writes",
    timeout: 10,
  });

  it("is reached with the headers it needs", async () => {
    const keys = new Set<unknown>();
    const factory: McpServerFactory = ({ requestInfo }) => {
      keys.add(requestInfo?.headers.get("x-api-key"));
      const server = new McpServer({ name: "far", version: "1.0.0" });
      server.registerTool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => ({
        content: [{ type: "text", text: String(a + b) }],
      }));
      return server;
    };
    const handle = toNodeHandler(createMcpHandler(factory));
    const server = await listening(createServer((request, response) => void handle(request, response)));
    const { mcp, log } = open({ far: { ...remote(server.url), approve: "none" } });
    const { agent } = await agentCalling(mcp, [{ name: "far__add", args: { a: 2, b: 3 } }]);
    await collect(agent, TASK);
    expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["5"]);
    expect(keys).toEqual(new Set([SECRET]));
    expect(log()).not.toContain(SECRET);
  });

  it.each(["json", "sse"] as const)("is refused answers that are too large, as %s", async (responseMode) => {
    const factory: McpServerFactory = () => {
      const server = new McpServer({ name: "far", version: "1.0.0" });
      const inputSchema = z.object({ length: z.number() });
      server.registerTool("long", { inputSchema }, ({ length }) => ({
        content: [{ type: "text", text: "x".repeat(length) }],
      }));
      server.registerTool("wide", { inputSchema }, ({ length }) => ({
        content: [],
        structuredContent: { values: Array.from({ length }, (_, value) => value) },
      }));
      return server;
    };
    const handle = toNodeHandler(createMcpHandler(factory, { responseMode }));
    const server = await listening(createServer((request, response) => void handle(request, response)));
    const { mcp } = open({ far: { ...remote(server.url), approve: "none" } });
    const { agent } = await agentCalling(mcp, [
      { name: "far__long", args: { length: 9_000_000 } },
      { name: "far__wide", args: { length: 200_000 } },
      { name: "far__long", args: { length: 5 } },
    ]);
    await collect(agent, TASK);
    const texts = (await toolMessages(agent)).map(({ text }) => text);
    const refused = expect.stringMatching(/its answer was not read: .* ask it for less at a time$/);
    expect(texts).toEqual([refused, refused, "xxxxx"]);
  });

  it("is named when nothing answers there", async () => {
    const { mcp } = open({ far: remote(`http://127.0.0.1:${await freePort()}/mcp`) });
    expect((await mcp.forAgent()).problems).toEqual([{ server: "far", reason: "no response" }]);
  });

  it("does not see its headers carried to another address", async () => {
    const seen: unknown[] = [];
    const elsewhere = await listening(
      createServer((_request, response) => {
        seen.push("elsewhere");
        response.writeHead(500).end();
      }),
    );
    const first = await listening(
      createServer((request, response) => {
        seen.push(request.headers["x-api-key"]);
        response.writeHead(307, { location: elsewhere.url }).end();
      }),
    );
    const { mcp, log } = open({ far: remote(first.url) });
    expect((await mcp.forAgent()).problems).toEqual([
      { server: "far", reason: "it redirects to another address; configure that address" },
    ]);
    expect(new Set(seen)).toEqual(new Set([SECRET]));
    expect(log()).not.toContain(SECRET);
  });
});

const listening = async (server: Server): Promise<{ url: string }> => ({
  url: `${await addressOf(server)}/mcp`,
});
