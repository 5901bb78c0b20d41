#!/usr/bin/env bash
# @langchain/mcp-adapters 1.1.4 with @langchain/openai 1.5.8: a tool of an MCP server answers with a text and a link to a
# resource, as the specification has it. The adapter makes a `file` block of the link. ChatOpenAI throws before it sends the
# next request over chat completions, and so does every later request of the thread, because the block stays in it. Over the
# responses API the same message is sent.
# A good guess is that the model reads the link as a line of text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent @langchain/mcp-adapters@1.1.4 @langchain/openai@1.5.8 @langchain/core@1.4.0 @langchain/langgraph@1.7.3 @modelcontextprotocol/sdk@1.32.2
cat >run.mjs <<'JS'
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { loadMcpTools } from "@langchain/mcp-adapters";
import { ChatOpenAI } from "@langchain/openai";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const server = new McpServer({ name: "reports", version: "1" });
server.registerTool("report", { inputSchema: {} }, async () => ({
  content: [
    { type: "text", text: "The report is ready." },
    { type: "resource_link", uri: "report://2026/q1", name: "q1", mimeType: "text/markdown" },
  ],
}));
const client = new Client({ name: "program", version: "1" });
const [one, other] = InMemoryTransport.createLinkedPair();
await Promise.all([server.connect(one), client.connect(other)]);
const [report] = await loadMcpTools("reports", client);
const call = { type: "tool_call", id: "c1", name: "report", args: {} };
const thread = [new HumanMessage("go"), new AIMessage({ content: "", tool_calls: [call] }), await report.invoke(call)];
/** Why no request was sent, or the result in it. */
async function sent(useResponsesApi) {
  let request;
  const fetch = async (_address, { body }) => {
    request = JSON.parse(body);
    return new Response("{}", { status: 400, headers: { "content-type": "application/json" } });
  };
  const fields = { model: "gpt-4o", apiKey: "not-a-key", maxRetries: 0, useResponsesApi, configuration: { fetch } };
  const error = await new ChatOpenAI(fields).invoke(thread).catch((thrown) => thrown);
  return request === undefined ? `nothing: ${error.message}` : `a request with ${request.input.at(-1).type}`;
}
const [chat, responses] = [await sent(false), await sent(true)];
console.log("chat completions sends", chat);
console.log("the responses API sends", responses);
if (!chat.startsWith("nothing: URL file blocks") || responses !== "a request with function_call_output") {
  console.error("The behavior has changed.");
  process.exit(1);
}
JS
node run.mjs
