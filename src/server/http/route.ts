import type { ServerResponse } from "node:http";
import { toWebRequest } from "@modelcontextprotocol/node";
import {
  isInitializeRequest,
  isJSONRPCRequest,
  isJsonContentType,
  isLegacyRequest,
} from "@modelcontextprotocol/server";
import { type Authenticator, principalOf } from "../auth/auth.ts";
import { scopeChallenge } from "../auth/challenge.ts";
import { type AddressOf, type RateLimit, clientNetwork } from "./admission.ts";
import type { AuthenticatedRequest, OpenResponses, StatelessHandlers } from "./stateless.ts";
import { METRICS_PATH, type Operations } from "./operations.ts";
import { isPlain, readJsonBody, sendError, sendResponse } from "./request.ts";
import type { Sessions } from "./sessions.ts";

/** Path of the MCP endpoint. */
export const MCP_PATH = "/mcp";
const METHODS = ["GET", "POST", "DELETE"];

export interface Route {
  stateless: StatelessHandlers;
  sessions: Sessions;
  /** Absent: nobody is authenticated. */
  authenticator: Authenticator | undefined;
  documents: ReadonlyMap<string, unknown>;
  operations: Operations;
  /** Limits requests, by principal. */
  rateLimit: RateLimit;
  /** Limits refused tokens, by network. */
  refusalLimit: RateLimit;
  addressOf: AddressOf;
  /** Absent as `authenticator` is. */
  open: OpenResponses | undefined;
}

export type RequestListener = (request: AuthenticatedRequest, response: ServerResponse) => Promise<void>;

/** Creates the route. Except for public documents, it identifies the client before it reads anything else. */
export function createRoute(route: Route): RequestListener {
  return async (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    if (route.documents.has(path)) return sendDocument(request, response, route.documents.get(path));
    if (!(await identify(route, request, response))) return;
    const wait = route.rateLimit.take(principalOf(request.auth));
    if (wait > 0) return sendTooMany(response, "requests", wait);
    if (path === METRICS_PATH) return route.operations.metrics(request, response);
    if (path !== MCP_PATH) return sendError(response, 404, -32000, `Not found: the endpoint is ${MCP_PATH}`);
    return serveMcp(route, request, response);
  };
}

/**
 * Identifies the client of a request, or refuses it and returns false. After too many refused tokens an address
 * is served only with tokens that are known to be good; unknown ones are not checked any more.
 */
async function identify(
  { authenticator, refusalLimit, operations, addressOf }: Route,
  request: AuthenticatedRequest,
  response: ServerResponse,
): Promise<boolean> {
  if (authenticator === undefined) return true;
  const network = clientNetwork(addressOf(request));
  const mayAsk = refusalLimit.wait(network) === 0;
  const outcome = await authenticator.authenticate(request.headers.authorization, { mayAsk });
  if (outcome.ok) {
    request.auth = outcome.auth;
    return true;
  }
  const { reason } = outcome;
  operations.refusals.count(reason);
  // A missing token is no guess, and a token that could not be checked may be good.
  const isGuess = reason !== "no_token" && reason !== "issuer_unavailable";
  const wait = isGuess ? refusalLimit.take(network) : 0;
  if (wait > 0) sendTooMany(response, "refused tokens", wait);
  else await sendResponse(response, outcome.response);
  return false;
}

function sendTooMany(response: ServerResponse, what: string, seconds: number): void {
  response.setHeader("retry-after", String(seconds));
  sendError(response, 429, -32000, `Too many ${what}: try again in ${seconds} s`);
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
  { stateless, sessions, operations, open }: Route,
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
    if (!isPlain(request)) {
      response.setHeader("accept-encoding", "identity");
      return sendError(response, 415, -32000, "Unsupported content encoding: send the body uncompressed");
    }
    const read = await readJsonBody(request);
    if (!read.ok) return sendError(response, read.status, read.code, read.message);
    body = read.value;
    const challenge = scopeChallenge(body, request.auth);
    if (challenge !== undefined) {
      operations.refusals.count("missing_scope");
      return sendResponse(response, challenge);
    }
  }
  open?.add(request, response, request.method === "GET" || isListening(body));
  if (!(await isLegacyRequest(await toWebRequest(request, body), body))) {
    return stateless.serve(request, response, body);
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

const isListening = (body: unknown): boolean =>
  isJSONRPCRequest(body) && body.method === "subscriptions/listen";
