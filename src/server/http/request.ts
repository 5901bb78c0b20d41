/** Reads the bodies of requests, and checks their headers against them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { validateOriginHeader } from "@modelcontextprotocol/server";
import { MAX_MESSAGE_BYTES, TOO_LONG, bytesShapeProblem } from "../../core/json.ts";

export type Body =
  | { ok: true; value: unknown }
  | { ok: false; status: number; code: number; message: string };

/** Reads a request body as JSON. Stops reading a body at the limit. */
export async function readJsonBody(request: IncomingMessage): Promise<Body> {
  const tooLong: Body = { ok: false, status: 413, code: -32_000, message: TOO_LONG };
  if (Number(request.headers["content-length"]) > MAX_MESSAGE_BYTES) return tooLong;
  const chunks: Buffer[] = [];
  let bytes = 0;
  // The stream has no encoding set, so its chunks are buffers. It is not destroyed, because the answer would be lost.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > MAX_MESSAGE_BYTES) return tooLong;
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  const problem = bytesShapeProblem(body);
  if (problem !== undefined) return { ok: false, status: 400, code: -32_600, message: problem };
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return { ok: true, value };
  } catch {
    return {
      ok: false,
      status: 400,
      code: -32700,
      message: "Parse error: the request body is not valid JSON in UTF-8",
    };
  }
}

/** Answers with a small response that was made for the web's own interface. */
export async function sendResponse(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(await answer.text());
}

/** Answers with a JSON-RPC error that belongs to no request. */
export function sendError(response: ServerResponse, status: number, code: number, message: string): void {
  if (response.headersSent) {
    response.end();
    return;
  }
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null }));
  // Receives and drops the rest of a refused body, within the time a request has. Closing a connection with
  // unread data resets it, and a client that is still sending could lose the answer.
  response.req.resume();
}

/** Headers that must not be repeated, because a proxy and this server could read them differently. */
const SINGLE = [
  "host",
  "origin",
  "authorization",
  "content-type",
  "content-encoding",
  "last-event-id",
  "mcp-session-id",
  "mcp-protocol-version",
  "mcp-method",
  "mcp-name",
];

/** Whether no such header is repeated. Otherwise the request was answered with 400. */
export function hasSingleHeaders(request: IncomingMessage, response: ServerResponse): boolean {
  const repeated = SINGLE.find((name) => (request.headersDistinct[name]?.length ?? 0) > 1);
  if (repeated === undefined) return true;
  sendError(response, 400, -32_000, `Bad request: the header ${repeated} is there more than once`);
  return false;
}

/** Whether a body is uncompressed. Compressed ones are refused, because they may unpack to any size. */
export function isPlain({ headers }: IncomingMessage): boolean {
  return /^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? "");
}

const EXPOSED = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";
const ACCEPTED =
  "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name";
const PREFLIGHT_SECONDS = 600;

/**
 * Lets pages of the configured origins read answers, and answers their preflight requests; true: it was one.
 * Loopback origins may only send requests that need no preflight, because any page that this machine serves
 * has such an origin.
 */
export function answerCors(
  request: IncomingMessage,
  response: ServerResponse,
  allowedOrigins: readonly string[],
): boolean {
  const { origin } = request.headers;
  const isAllowed = origin !== undefined && validateOriginHeader(origin, [...allowedOrigins]).ok;
  if (isAllowed) {
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("access-control-expose-headers", EXPOSED);
    response.setHeader("vary", "Origin");
  }
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) {
    return false;
  }
  if (isAllowed) {
    response.setHeader("access-control-allow-methods", "GET, POST, DELETE");
    response.setHeader("access-control-allow-headers", ACCEPTED);
    response.setHeader("access-control-max-age", PREFLIGHT_SECONDS);
  }
  response.writeHead(204).end();
  return true;
}
