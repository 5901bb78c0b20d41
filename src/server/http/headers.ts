import type { IncomingMessage, ServerResponse } from "node:http";
import { validateOriginHeader } from "@modelcontextprotocol/server";
import { sendError } from "./body.ts";

/** Headers of which a second one could mean something else to a proxy than to this server. */
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

/** Passes on a request whose headers mean one thing; has answered any other with 400 and returns false. */
export function hasSingleHeaders(request: IncomingMessage, response: ServerResponse): boolean {
  const repeated = SINGLE.find((name) => (request.headersDistinct[name]?.length ?? 0) > 1);
  if (repeated === undefined) return true;
  sendError(response, 400, -32_000, `Bad request: the header ${repeated} is there more than once`);
  return false;
}

/** Whether a body arrives as it was written. What unpacks to more than it seems is not unpacked at all. */
export function isPlain({ headers }: IncomingMessage): boolean {
  return /^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? "");
}

const EXPOSED = "mcp-session-id, mcp-protocol-version, www-authenticate, retry-after";
const ACCEPTED =
  "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name";
const PREFLIGHT_SECONDS = 600;

/**
 * Lets pages of the configured origins read answers, and answers their preflight requests; true: it was one.
 * Loopback origins may send what browsers send without asking, and no more: any page that this machine
 * serves would be one.
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
