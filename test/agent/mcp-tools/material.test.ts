import { createServer } from "node:http";
import { MemorySaver } from "@langchain/langgraph";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, ResourceTemplate, createMcpHandler } from "@modelcontextprotocol/server";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { buildAgent } from "../../../src/agent/agent.ts";
import { openMcpTools } from "../../../src/agent/mcp-tools/open-mcp-tools.ts";
import type { McpServerConfig } from "../../../src/agent/mcp-tools/server-config.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { collect, toolMessages } from "../../support/run-agent.ts";
import { callingOnce } from "../../support/scripted-model.ts";
import { type Handler, json, sloppyHttp } from "../../support/sloppy-mcp-server.ts";
import { addressOf } from "../../support/http-address.ts";

function open(url: string, more: Partial<McpServerConfig> = {}) {
  const server: McpServerConfig = { url, headers: {}, approve: "none", timeout: 20, ...more };
  const mcp = openMcpTools({ wiki: server }, { env: {}, version: "0", log: silentLogger });
  onTestFinished(() => mcp.close());
  return mcp;
}

/** What the tools of a server answer to these calls. */
async function answers(url: string, calls: Array<[tool: string, args: object]>): Promise<string[]> {
  const { tools } = await open(url).forAgent();
  const toolCalls = calls.map(([name, args]) => ({ name: `wiki__${name}`, args: { ...args } }));
  const model = callingOnce(...toolCalls);
  const agent = buildAgent({ model, tools, checkpointer: new MemorySaver() });
  await collect(agent, { kind: "task", task: "go" });
  return (await toolMessages(agent)).map(({ text }) => text);
}

async function wiki(): Promise<string> {
  const handler = toNodeHandler(
    createMcpHandler(() => {
      const server = new McpServer({ name: "wiki", version: "1" });
      server.registerResource("Home", "wiki://home", { description: "The first page." }, async (uri) => ({
        contents: [{ uri: uri.href, text: "Welcome" }],
      }));
      server.registerResource(
        "Page",
        new ResourceTemplate("wiki://pages/{name}", { list: undefined }),
        { description: "One page. Of many." },
        async (uri, { name }) => ({ contents: [{ uri: uri.href, text: `About ${String(name)}` }] }),
      );
      server.registerPrompt(
        "review",
        { title: "Review", argsSchema: z.object({ page: z.string() }) },
        ({ page }) => ({ messages: [{ role: "user", content: { type: "text", text: `Review ${page}.` } }] }),
      );
      return server;
    }),
  );
  const http = createServer((request, response) => void handler(request, response));
  return `${await addressOf(http)}/mcp`;
}

it("resources and prompts are listed and read", async () => {
  const found = await answers(await wiki(), [
    ["read_resource", {}],
    ["read_resource", { uri: "wiki://home" }],
    ["read_resource", { uri: "wiki://pages/tea" }],
    ["get_prompt", {}],
    ["get_prompt", { name: "review", arguments: { page: "home" } }],
    ["get_prompt", { name: "absent" }],
  ]);
  expect(found.slice(0, 5)).toEqual([
    "- wiki://home: Home. The first page.\n- wiki://pages/{name}: Page. One page.",
    "[Resource wiki://home]\nWelcome",
    "[Resource wiki://pages/tea]\nAbout tea",
    "- review: Review (page)",
    "[user]\n\nReview home.",
  ]);
  expect(found[5]).toMatch(/^Error: The MCP server wiki did not answer: .*absent/);
});

const capable =
  (results: Readonly<Record<string, object>>): Handler =>
  ({ message: { id, method = "" }, response }) => {
    if (method === "initialize")
      return json(response, {
        jsonrpc: "2.0",
        id,
        result: {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {}, resources: {}, prompts: {} },
          serverInfo: { name: "s", version: "1" },
        },
      });
    const result = results[method];
    return result && json(response, { jsonrpc: "2.0", id, result });
  };

const namesOf = async (url: string, more?: Partial<McpServerConfig>) => {
  const { tools, gated, problems } = await open(url, more).forAgent();
  return { names: tools.map(({ name }) => name), gated, problems };
};

it("a server that declares none offers no tool for them", async () => {
  const none = await sloppyHttp(({ message: { method }, response }) =>
    method === "resources/list" ? json(response, {}) : undefined,
  );
  expect(await namesOf(none.url)).toEqual({ names: ["wiki__a"], gated: [], problems: [] });
  expect(none.seen).not.toContain("resources/list");
});

// openai-apps-sdk-examples#229, QwenLM/qwen-code#5781: answers of tools link to resources that are in no list.
it.each([
  ["empty lists", { "resources/list": { resources: [] }, "prompts/list": {} }],
  ["lists that it does not know", {}],
])(
  "a link of a server with %s can be read, and prompts are offered if there are any",
  async (_lists, results) => {
    const { url } = await sloppyHttp(
      capable({ ...results, "resources/read": { contents: [{ uri: "a://made", text: "the numbers" }] } }),
    );
    expect(await namesOf(url)).toMatchObject({ names: ["wiki__a", "wiki__read_resource"], problems: [] });
    expect(await answers(url, [["read_resource", { uri: "a://made" }]])).toEqual([
      "[Resource a://made]\nthe numbers",
    ]);
  },
);

it("sloppy lists are read, and their tools follow the rules of the server", async () => {
  const results = {
    "resources/list": {
      resources: [{ uri: "a://b", name: null, description: "First.\nSecond." }, null, { uri: 7 }],
      nextCursor: "p2",
    },
    "resources/read": { contents: { uri: "a://b", text: "only one" } },
  };
  const { url } = await sloppyHttp(capable(results));
  expect(
    await answers(url, [
      ["read_resource", {}],
      ["read_resource", { uri: "a://b" }],
    ]),
  ).toEqual([
    '- a://b: First.\nThere are more: continue with the cursor "p2".',
    "[Resource a://b]\nonly one",
  ]);
  expect((await namesOf(url, { approve: "all" })).gated).toEqual(["wiki__a", "wiki__read_resource"]);
  expect((await namesOf(url, { disabledTools: ["read_resource"] })).names).toEqual(["wiki__a"]);
  expect((await namesOf(url, { tools: ["read_resource"] })).names).toEqual(["wiki__read_resource"]);
});
