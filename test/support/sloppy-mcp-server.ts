/** MCP servers written by hand, which answer as tests say: over HTTP, over the older HTTP+SSE, and as processes. */
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { text } from "node:stream/consumers";
import { addressOf } from "./http-address.ts";

export interface Message {
  id?: unknown;
  method?: string;
}

const TOOL = { name: "a", inputSchema: { type: "object", properties: {} } };

/** Results of an ordinary server of 2025. */
const RESULTS: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "sloppy", version: "1" },
  },
  "tools/list": { tools: [TOOL] },
  "tools/call": { content: [{ type: "text", text: "fine" }] },
};

/** The body of an ordinary answer. */
export function ordinary({ id, method = "" }: Message): object {
  const result = RESULTS[method];
  const error = { code: -32_601, message: "Method not found" };
  return { jsonrpc: "2.0", id, ...(result ? { result } : { error }) };
}

export interface Exchange {
  message: Message;
  request: IncomingMessage;
  response: ServerResponse;
}

/** Answers what it wants itself, and returns `true` if it did. */
export type Handler = (exchange: Exchange) => boolean | undefined;

/** Answers only requests of one method. */
export const to =
  (method: string, answer: (exchange: Exchange) => boolean | undefined): Handler =>
  (exchange) =>
    exchange.message.method === method ? answer(exchange) : undefined;

/** An address where `handle` answers first, and an ordinary server of 2025 what is left. */
export async function sloppyHttp(handle: Handler): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const message = (body === "" ? {} : JSON.parse(body)) as Message;
      seen.push(message.method ?? request.method ?? "");
      if (handle({ message, request, response })) return;
      if (request.method !== "POST") return response.writeHead(405).end();
      if (message.id === undefined) return response.writeHead(202).end();
      return json(response, ordinary(message));
    });
  });
  return { url: `${await addressOf(server)}/mcp`, seen };
}

export function json(response: ServerResponse, body: object | string, type = "application/json"): true {
  response.writeHead(200, { "content-type": type });
  response.end(typeof body === "string" ? body : JSON.stringify(body));
  return true;
}

export function refuse(response: ServerResponse, status: number, body = ""): true {
  response.writeHead(status).end(body);
  return true;
}

/** A server of 2024: answers on the stream of a GET, and refuses a POST to that address with `status`. */
export function olderSse(status: number, onCall: Handler = () => undefined): Handler {
  let stream: ServerResponse | undefined;
  return ({ message, request, response }) => {
    if (request.method === "GET") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      stream.write("event: endpoint\ndata: /messages?sessionId=1\n\n");
      return true;
    }
    if (!request.url?.startsWith("/messages")) return refuse(response, status);
    if (onCall({ message, request, response })) return true;
    response.writeHead(202).end("Accepted");
    if (message.id !== undefined) stream?.write(`data: ${JSON.stringify(ordinary(message))}\n\n`);
    return true;
  };
}

/**
 * A process that answers as an ordinary server of 2025. `body` may change `say`, which writes an answer, and
 * `take`, which gets each message.
 */
export function sloppyProcess(body: string): { command: string; args: string[] } {
  const source = `
const RESULTS = ${JSON.stringify(RESULTS)};
const answerTo = ({ id, method }) => ({ jsonrpc: "2.0", id, ...(RESULTS[method] ? { result: RESULTS[method] } : { error: { code: -32601, message: "Method not found" } }) });
let say = (answer) => process.stdout.write(JSON.stringify(answer) + "\\n");
let take = (message) => { if (message.id !== undefined) say(answerTo(message)); };
${body}
let rest = "";
process.stdin.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\\n");
  rest = lines.pop();
  for (const line of lines) take(JSON.parse(line));
}).on("end", () => process.exit());
`;
  return { command: process.execPath, args: ["-e", source] };
}
