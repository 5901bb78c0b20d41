import type { ServerResponse } from "node:http";
import { toWebRequest } from "@modelcontextprotocol/node";
import { isInitializeRequest, isJsonContentType, isLegacyRequest } from "@modelcontextprotocol/server";
import { principalOf, type Authenticator } from "./auth.ts";
import { readJsonBody, sendError, sendResponse } from "./http-body.ts";
import type { AuthenticatedRequest, ModernHandlers } from "./http-modern.ts";
import { METRICS_PATH, type Operations } from "./http-operations.ts";
import type { RateLimit } from "./http-rate-limit.ts";
import type { Sessions } from "./sessions.ts";

/** Path of the MCP endpoint. */
export const MCP_PATH = "/mcp";
const METHODS = ["GET", "POST", "DELETE"];

export interface Route {
  modern: ModernHandlers;
  sessions: Sessions;
  /** Absent: nobody is authenticated. */
  authenticator: Authenticator | undefined;
  documents: ReadonlyMap<string, unknown>;
  operations: Operations;
  rateLimit: RateLimit;
}

export type RequestListener = (request: AuthenticatedRequest, response: ServerResponse) => Promise<void>;

/** Public documents aside, who it is comes first; only then is anything of the request read. */
export function createRoute(route: Route): RequestListener {
  return async (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (route.documents.has(path)) return sendDocument(request, response, route.documents.get(path));
    if (route.authenticator !== undefined) {
      const outcome = await route.authenticator.authenticate(request.headers.authorization);
      if (!outcome.ok) return sendResponse(response, outcome.response);
      request.auth = outcome.auth;
    }
    const wait = route.rateLimit.take(principalOf(request.auth));
    if (wait > 0) {
      response.setHeader("retry-after", String(wait));
      return sendError(response, 429, -32000, `Too many requests: try again in ${wait} s`);
    }
    if (path === METRICS_PATH) return route.operations.metrics(request, response);
    if (path !== MCP_PATH) return sendError(response, 404, -32000, `Not found: the endpoint is ${MCP_PATH}`);
    return serveMcp(route, request, response);
  };
}

function sendDocument(request: AuthenticatedRequest, response: ServerResponse, document: unknown): void {
  if (request.method !== "GET") {
    response.setHeader("allow", "GET");
    return sendError(response, 405, -32000, "Method not allowed");
  }
  response.writeHead(200, { "content-type": "application/json", "cache-control": "max-age=300" });
  response.end(JSON.stringify(document));
}

async function serveMcp(
  { modern, sessions }: Route,
  request: AuthenticatedRequest,
  response: ServerResponse,
): Promise<void> {
  if (!METHODS.includes(request.method ?? "")) {
    response.setHeader("allow", METHODS.join(", "));
    return sendError(response, 405, -32000, "Method not allowed");
  }
  let body: unknown;
  if (request.method === "POST") {
    if (!isJsonContentType(request.headers["content-type"] ?? null)) {
      return sendError(response, 415, -32000, "Unsupported media type: send application/json");
    }
    const read = await readJsonBody(request);
    if (!read.ok) return sendError(response, read.status, read.code, read.message);
    body = read.value;
  }
  if (!(await isLegacyRequest(await toWebRequest(request, body), body))) {
    return modern.serve(request, response, body);
  }
  const id = request.headers["mcp-session-id"];
  if (typeof id === "string") return sessions.serve(id, request, response, body);
  if (isInitializeRequest(body)) return sessions.open(request, response, body);
  sendError(
    response,
    400,
    -32000,
    "Bad request: send initialize first, then Mcp-Session-Id with every request",
  );
}
