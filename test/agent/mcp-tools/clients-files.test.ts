import { createServer } from "node:http";
import { MemorySaver } from "@langchain/langgraph";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { expect, it, onTestFinished } from "vitest";
import { buildAgent } from "../../../src/agent/agent.ts";
import { type McpTools, openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import { createLogger } from "../../../src/core/logger.ts";
import { ConfigSchema } from "../../../src/config/schema.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { callingOnce } from "../../support/scripted-model.ts";
import { toyServer } from "./toy-server.ts";
import { addressOf } from "../../support/http-address.ts";

/** Servers as a client's file has them. */
function openFile(mcpServers: Record<string, object>): { mcp: McpTools; log: () => string } {
  const lines: string[] = [];
  const mcp = openMcpTools(ConfigSchema.parse({ dataDir: "/data", mcpServers }).mcpServers, {
    env: { TOY_SECRET: "s3cret-of-the-toy" },
    version: "0.0.0-test",
    log: createLogger("debug", (line) => void lines.push(line)),
  });
  onTestFinished(() => mcp.close());
  return { mcp, log: () => lines.join("") };
}

async function answerOf(mcp: McpTools, name: string): Promise<string | undefined> {
  const { tools } = await mcp.forAgent();
  const model = callingOnce({ name, args: {} });
  const agent = buildAgent({ model, tools, checkpointer: new MemorySaver() });
  await collect(agent, { kind: "task", task: "go" });
  return (await toolMessages(agent))[0]?.text;
}

it("tools that are switched off, or run unasked, are so by their server's names", async () => {
  const { command, args } = await toyServer();
  const { mcp, log } = openFile({
    toy: { command, args, disabledTools: ["crash"], autoApprove: ["store", "gone"] },
    off: { command: "no-such-program", disabled: true },
  });
  const { tools, gated, problems } = await mcp.forAgent();
  const names = tools.map(({ name }) => name);
  expect(names).toContain("toy__store");
  expect(names).not.toContain("toy__crash");
  expect([gated, problems]).toEqual([[], []]);
  expect(log()).toContain('"mcp_tools_unknown","server":"toy","tools":["gone"]');
});

it("variables are named as editors name them too", async () => {
  const { command, args } = await toyServer();
  const { mcp } = openFile({ toy: { command, args, env: { TOY_KEY: "key ${env:TOY_SECRET}" } } });
  const length = "key s3cret-of-the-toy".length;
  expect(await answerOf(mcp, "toy__environment")).toContain(`"key":"[hidden]","characters":${length}`);
});

it("a server of the older kind, with two addresses, is reached with its headers", async () => {
  const keys = new Set<unknown>();
  const sessions = new Map<string, SSEServerTransport>();
  const web = createServer((request, response) => {
    keys.add(request.headers["x-api-key"]);
    const id = new URL(request.url ?? "", "http://x").searchParams.get("sessionId");
    if (id !== null) return void sessions.get(id)?.handlePostMessage(request, response);
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    const server = new McpServer({ name: "old", version: "1.0.0" });
    server.registerTool("greet", {}, () => ({ content: [{ type: "text", text: "hello" }] }));
    void server.connect(transport);
  });
  const url = `${await addressOf(web)}/sse`;
  const { mcp } = openFile({ old: { type: "sse", url, headers: { "X-Api-Key": "${TOY_SECRET}" } } });
  expect(await answerOf(mcp, "old__greet")).toBe("hello");
  expect(keys).toEqual(new Set(["s3cret-of-the-toy"]));
});
