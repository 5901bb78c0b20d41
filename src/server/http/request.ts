/** Reads the bodies of requests, and checks their headers against them. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { isJsonContentType } from "@modelcontextprotocol/server";
import { MAX_MESSAGE_BYTES, MESSAGE_TOO_LONG, bytesShapeProblem } from "../../core/json.ts";
import { type ErrorAnswer, errorAnswer, readMessages } from "../contracts/envelope.ts";

type RefusedBody = { ok: false; status: number; answer: object };
type JsonBody = { ok: true; value: unknown } | RefusedBody;

/** Reads a request body as JSON. Stops reading it at the limit. */
export async function readJsonBody(request: IncomingMessage): Promise<JsonBody> {
  const { headers } = request;
  const unsupported = (what: string): JsonBody => {
    return { ok: false, status: 415, answer: errorAnswer(null, -32_000, `Unsupported ${what}`) };
  };
  if (!isJsonContentType(headers["content-type"] ?? null))
    return unsupported("media type: send application/json");
  // Compressed bodies are refused, because they may unpack to any size.
  if (!/^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? ""))
    return unsupported("content encoding: send the body uncompressed");
  const tooLong: JsonBody = { ok: false, status: 413, answer: errorAnswer(null, -32_000, MESSAGE_TOO_LONG) };
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
  if (problem !== undefined) return { ok: false, status: 400, answer: invalid(problem) };
  try {
    return { ok: true, value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) };
  } catch {
    const answer = errorAnswer(null, -32_700, "Parse error: the request body is not valid JSON in UTF-8");
    return { ok: false, status: 400, answer };
  }
}

/** The messages of a body with the errors about the rest of a batch, or the answer to a body without messages. */
export function messagesIn(
  value: unknown,
): { ok: true; value: unknown; errors: readonly ErrorAnswer[] } | RefusedBody {
  const { messages, errors } = readMessages(value, true);
  if (messages.length > 0) return { ok: true, value: Array.isArray(value) ? messages : messages[0], errors };
  const [error = invalid("Invalid request: the body is not a message of the protocol"), ...others] = errors;
  return { ok: false, status: 400, answer: others.length === 0 ? error : errors };
}

const invalid = (problem: string): ErrorAnswer => errorAnswer(null, -32_600, problem);

/** Answers with a small response that was made for the web's own interface. */
export async function sendResponse(response: ServerResponse, answer: Response): Promise<void> {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(await answer.text());
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
  // Receives and drops the rest of a refused body, within the time a request has. Closing a connection with
  // unread data resets it, and a client that is still sending could lose the answer.
  response.req.resume();
}

/** Answers with a JSON-RPC error that belongs to no request. */
export function sendError(response: ServerResponse, status: number, code: number, message: string): void {
  if (response.headersSent) {
    response.end();
    return;
  }
  sendJson(response, status, errorAnswer(null, code, message));
}

/** True if a request has one of these methods. Otherwise this answers it with 405. */
export function hasMethod(
  { method = "" }: IncomingMessage,
  response: ServerResponse,
  ...allowed: readonly string[]
): boolean {
  if (allowed.includes(method)) return true;
  response.setHeader("allow", allowed.join(", "));
  sendError(response, 405, -32_000, "Method not allowed");
  return false;
}

/** The path of a request. A slash at its end does not count. */
export const pathOf = ({ url = "" }: IncomingMessage): string =>
  (url.split("?", 1)[0] ?? "").replace(/(?<=[^/])\/$/, "");

const STREAM = "text/event-stream";

/**
 * Writes `Accept` in the words that the SDK looks for, where its ranges cover a stream, which answers to requests are.
 * Without the header, everything is accepted.
 */
export function spellAccept(request: IncomingMessage): void {
  const { accept } = request.headers;
  if (accept !== undefined && !accepts(accept, STREAM)) return;
  const spelled = `application/json, ${STREAM}`;
  request.headers.accept = spelled;
  const { rawHeaders } = request;
  const kept = rawHeaders.flatMap((name, at) =>
    at % 2 === 0 && name.toLowerCase() !== "accept" ? [name, rawHeaders[at + 1] ?? ""] : [],
  );
  request.rawHeaders = [...kept, "accept", spelled];
}

/** True if the ranges of an `Accept` header cover a media type; the most exact one counts (RFC 9110). */
export function accepts(header: string, type: string): boolean {
  const ranges = new Map(
    header
      .toLowerCase()
      .split(",")
      .map((range) => {
        const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
        return [name, parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1"];
      }),
  );
  const quality = ranges.get(type) ?? ranges.get(type.replace(/\/.*/, "/*")) ?? ranges.get("*/*");
  return Number(quality) > 0;
}

/** Headers that must not be repeated, because a proxy and this server could read them differently. */
const SINGLE =
  "host origin authorization content-type content-encoding last-event-id mcp-session-id mcp-protocol-version mcp-method mcp-name".split(
    " ",
  );

/** True if no such header is repeated. Otherwise this answers the request with 400. */
export function hasSingleHeaders(request: IncomingMessage, response: ServerResponse): boolean {
  const repeated = SINGLE.find((name) => (request.headersDistinct[name]?.length ?? 0) > 1);
  if (repeated === undefined) return true;
  sendError(response, 400, -32_000, `Bad request: the header ${repeated} is repeated`);
  return false;
}

/**
 * Lets pages of the configured origins read answers, and answers their preflight requests; true: it was one. Loopback
 * origins may only send requests that need no preflight, because any page that this machine serves has such an origin.
 */
export function answerCors(
  request: IncomingMessage,
  response: ServerResponse,
  allows: (origin: string) => boolean,
): boolean {
  const { origin } = request.headers;
  const isAllowed = origin !== undefined && origin !== "" && allows(origin);
  response.setHeader("vary", "Origin");
  if (isAllowed) {
    response.setHeader("access-control-allow-origin", origin);
    const readable = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";
    response.setHeader("access-control-expose-headers", readable);
  }
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined)
    return false;
  if (isAllowed) {
    response.setHeader("access-control-allow-methods", "GET, POST, DELETE");
    const headers =
      "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name";
    response.setHeader("access-control-allow-headers", headers);
    response.setHeader("access-control-max-age", 600);
  }
  response.writeHead(204).end();
  return true;
}
