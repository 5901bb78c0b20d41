/** Tools that a server unlocks while a run is at work: openai/codex#33266, bethington/ghidra-mcp#153, bifrost#6885. */
import { type ServerResponse, createServer } from "node:http";
import { MemorySaver } from "@langchain/langgraph";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { expect, it, onTestFinished } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { changedTools } from "../../../src/agent/mcp-tools/server-layers.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { collect, paused, resumeAgentInput, toolMessages } from "../../support/run-agent.ts";
import { type ScriptedReply, scriptedSteps } from "../../support/scripted-model.ts";
import { addressOf } from "../../support/http-address.ts";
import { at, run } from "./connect-to.ts";
import { HUB } from "./hub-server.ts";

const HUB_PROCESS = {
  ...run({ command: process.execPath, args: ["-e", HUB] }),
  approve: "writes",
} as McpServerConfig;

async function hubAgent(calls: ScriptedReply[], config = HUB_PROCESS) {
  const mcp = openMcpTools(
    { hub: config },
    { env: { PATH: process.env["PATH"] }, version: "0", log: silentLogger },
  );
  onTestFinished(() => mcp.close());
  const { tools } = await mcp.forAgent();
  const model = scriptedSteps([...calls, { text: "end" }]);
  const middleware = [changedTools(mcp)()];
  const toolsOnDemand = { names: tools.map(({ name }) => name), tokens: 10_000 };
  const checkpointer = new MemorySaver();
  return { model, agent: buildAgent({ model, tools, toolsOnDemand, middleware, checkpointer }) };
}

const call = (name: string, args = {}): ScriptedReply => ({ toolCalls: [{ name, args }] });
const [enable, issues] = [call("hub__enable"), call("hub__issues")];

it("are offered and work in the same run, and the server is asked once a turn for all that it said", async () => {
  const { agent, model } = await hubAgent([enable, issues, issues]);
  await collect(agent, { kind: "task", task: "go" });
  const texts = (await toolMessages(agent)).map(({ text }) => text);
  expect(texts).toEqual(["enabled", "issues after 2 lists", "issues after 2 lists"]);
  const offered = model.requests.map(({ tools }) => tools.filter((name) => name.startsWith("hub__")));
  const all = ["hub__enable", "hub__issues", "hub__close"];
  expect(offered).toEqual([["hub__enable"], all, all, all]);
});

it("are approved by a person like tools that were there from the beginning", async () => {
  const { agent } = await hubAgent([enable, call("hub__close")]);
  const [request] = paused(await collect(agent, { kind: "task", task: "go" }));
  expect(request?.request.actionRequests).toMatchObject([{ name: "hub__close" }]);
  expect((await toolMessages(agent)).map(({ text }) => text)).not.toContain(
    expect.stringContaining("close after"),
  );
  await collect(agent, resumeAgentInput({ [request?.id ?? ""]: { decisions: [{ type: "approve" }] } }));
  expect((await toolMessages(agent)).map(({ text }) => text)).toEqual(["enabled", "close after 2 lists"]);
});

it("are found on demand, if providers would refuse so many, and those that were there stay in the list", async () => {
  const many = { ...HUB_PROCESS, args: ["-e", HUB, "150"] } as McpServerConfig;
  const { agent, model } = await hubAgent(
    [enable, call("find_tools", { query: "other149", limit: 1 }), issues],
    many,
  );
  await collect(agent, { kind: "task", task: "go" });
  const texts = (await toolMessages(agent)).map(({ text }) => text);
  expect(texts).toEqual(["enabled", expect.stringContaining("hub__other149"), "issues after 2 lists"]);
  const offered = model.requests.map(({ tools }) => tools.filter((name) => /hub__|find_/.test(name)));
  expect(offered).toEqual([
    ["hub__enable"],
    ["find_tools", "hub__enable"],
    ["find_tools", "hub__enable", "hub__other149"],
    ["find_tools", "hub__enable", "hub__other149", "hub__issues"],
  ]);
  expect(String(model.requests[1]?.messages[0]?.text)).toContain("- hub__issues:");
});

it("a call of a tool that was never unlocked names those that there are", async () => {
  const { agent } = await hubAgent([issues]);
  await collect(agent, { kind: "task", task: "go" });
  expect((await toolMessages(agent))[0]?.text).toContain("hub__issues is not a valid tool");
});

/** Speaks 2026-07-28: tells only those who listen. `streams` are their open streams. */
async function listeningHub() {
  let open = false;
  const streams = new Set<ServerResponse>();
  const handler = createMcpHandler(() => {
    const capabilities = { tools: { listChanged: true } };
    const server = new McpServer({ name: "hub", version: "1" }, { capabilities });
    for (const name of ["enable", ...(open ? ["issues"] : [])])
      server.registerTool(name, {}, () => ({ content: [{ type: "text", text: name }] }));
    return server;
  });
  const handle = toNodeHandler(handler);
  const server = createServer((request, response) => {
    if (request.headers["mcp-method"] === "subscriptions/listen")
      streams.add(response.once("close", () => streams.delete(response)));
    void handle(request, response);
  });
  const unlock = () => {
    open = true;
    handler.notify.toolsChanged();
  };
  return { url: `${await addressOf(server)}/mcp`, streams, unlock };
}

it("a server of 2026-07-28 is listened to, also after it ended the stream", async () => {
  const { url, streams, unlock } = await listeningHub();
  const mcp = openMcpTools({ hub: at(url) }, { env: {}, version: "0", log: silentLogger });
  onTestFinished(() => mcp.close());
  const names = async () => (await mcp.forAgent()).tools.map(({ name }) => name);
  expect(await names()).toEqual(["hub__enable"]);
  await expect.poll(() => streams.size).toBe(1);
  await expect.poll(() => (unlock(), mcp.changes())).toBeGreaterThan(0);
  expect(await names()).toEqual(["hub__enable", "hub__issues"]);
  const before = mcp.changes();
  for (const stream of streams) stream.destroy();
  await expect.poll(() => mcp.changes()).toBeGreaterThan(before);
  await names();
  await expect.poll(() => streams.size).toBe(1);
});
