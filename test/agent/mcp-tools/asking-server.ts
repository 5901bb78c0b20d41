/** Servers that ask a person in the middle of a call, one of each generation. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { json } from "node:stream/consumers";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { McpServer, createMcpHandler, inputRequired, inputResponse } from "@modelcontextprotocol/server";
import { z } from "zod";
import { addressOf } from "../../support/http-address.ts";
import { programOf } from "../../support/bundled.ts";

const SEAT = {
  message: "Which seat?",
  requestedSchema: {
    type: "object" as const,
    properties: { seat: { type: "string" as const, enum: ["window", "aisle"] } },
    required: ["seat"],
  },
};

/** Speaks 2026-07-28: answers a call with what it wants to know. Each `book` that took effect is in `booked`. */
export async function newServer() {
  const booked: string[] = [];
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: "airline", version: "1.0.0" });
    server.registerTool("book", { description: "Books.", inputSchema: z.object({}) }, (_args, { mcpReq }) => {
      const answer = inputResponse(mcpReq.inputResponses, "seat");
      if (answer.kind !== "elicit")
        return inputRequired({ inputRequests: { seat: inputRequired.elicit(SEAT) } });
      const { action, content } = answer;
      if (action === "accept") booked.push(String(content?.["seat"]));
      return { content: [{ type: "text", text: `${action} ${String(content?.["seat"])}` }] };
    });
    return server;
  });
  const handle = toNodeHandler(handler);
  const server = createServer((request, response) => void handle(request, response));
  return { url: `${await addressOf(server)}/mcp`, booked };
}

const SOURCE = `
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
const server = new McpServer({ name: "airline", version: "1.0.0" });
server.registerTool("book", { description: "Books.", inputSchema: {} }, async () => {
  const { action, content } = await server.server.elicitInput(${JSON.stringify(SEAT)});
  return { content: [{ type: "text", text: action + " " + content?.seat }] };
});
await server.connect(new StdioServerTransport());
`;

/** Speaks a revision of 2025, over standard input and output: asks while the call is at work. */
export async function oldServer() {
  return { command: process.execPath, args: [await programOf(SOURCE)] };
}

/** Speaks a revision of 2025 over HTTP: each question comes on the stream of its call. */
export async function oldHttpServer() {
  const answers = new Map<unknown, (answer: unknown) => void>();
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method, result } = (await json(request)) as {
      id?: number;
      method?: string;
      result?: Answered;
    };
    if (method === undefined) answers.get(id)?.(result);
    if (id === undefined || method === undefined) return void response.writeHead(202).end();
    response.writeHead(200, { "content-type": "text/event-stream", "mcp-session-id": "s" });
    const put = (message: object) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    if (method === "tools/call") {
      const asked = `q${answers.size}`;
      put({ id: asked, method: "elicitation/create", params: SEAT });
      answers.set(asked, (answer) => {
        const { action, content } = answer as Answered;
        put({ id, result: { content: [{ type: "text", text: `${action} ${String(content?.seat)}` }] } });
        response.end();
      });
      return;
    }
    const known = RESULTS[method];
    put(known ? { id, result: known } : { id, error: { code: -32_601, message: "Method not found" } });
    response.end();
  };
  const server = createServer((request, response) => void handle(request, response));
  return { url: `${await addressOf(server)}/mcp` };
}

interface Answered {
  action: string;
  content?: { seat?: unknown };
}

const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "airline", version: "1.0.0" },
  },
  "tools/list": { tools: [{ name: "book", description: "Books.", inputSchema: { type: "object" } }] },
};
