/** Listens for MCP over Streamable HTTP, and routes each request to sessions or to a server of its own. */
import { once } from "node:events";
import { type Server, type ServerOptions, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toWebRequest } from "@modelcontextprotocol/node";
import {
  type McpServerFactory,
  PROTOCOL_VERSION_META_KEY,
  isInitializeRequest,
  isJSONRPCRequest,
  isLegacyRequest,
} from "@modelcontextprotocol/server";
import { type Clock, monotonicClock, systemClock } from "../../core/clock.ts";
import { originMatcher } from "../../config/origins.ts";
import { ConfigurationError, StorageError } from "../../core/errors.ts";
import type { Logger } from "../../core/logger.ts";
import type { RunStatistics } from "../../runs/ports.ts";
import type { SharedState, StreamStore } from "../../runs/server-ports.ts";
import { type Authenticator, HELD_MS, principalOf } from "../auth/auth.ts";
import type { AgUiEndpoint } from "../ag-ui/ag-ui.ts";
import { scopeChallenge } from "./challenge.ts";
import type { ErrorAnswer } from "../contracts/envelope.ts";
import { isApiAddress } from "../contracts/viewer.ts";
import type { ResourceChanges } from "../contracts/changes.ts";
import {
  RateLimit,
  clientAddress,
  createHostGuard,
  createRequestGuard,
  inUrl,
  isLoopback,
  requireLoopback,
  tokenCheck,
  unbracket,
} from "./admission.ts";
import type { HttpPage, HttpPageOptions } from "./http-page.ts";
import type { LoginServer } from "./login/login.ts";
import type { LogInOptions } from "./login/provider.ts";
import { SessionEvents } from "./event-store.ts";
import { Operations } from "./operations.ts";
import {
  answerCors,
  hasMethod,
  hasSingleHeaders,
  messagesIn,
  pathOf,
  readJsonBody,
  sendError,
  sendJson,
  sendResponse,
  spellAccept,
} from "./request.ts";
import { Sessions, SharedSessions } from "./sessions.ts";
import { slowReaderGuard } from "./slow-readers.ts";
import { type AuthenticatedRequest, OpenResponses, StatelessHandlers } from "./stateless.ts";

const MCP_PATH = "/mcp";

/** Routes a request by its path. Except for public documents, identifies the client before it reads anything else. */
async function route(endpoint: Endpoint, request: AuthenticatedRequest, response: ServerResponse) {
  const { rateLimit, operations, tokens } = endpoint;
  const { documents, takesRequests = true, agUi } = endpoint.options;
  const path = pathOf(request);
  if (documents?.has(path)) {
    if (!hasMethod(request, response, "GET", "HEAD")) return;
    response.setHeader("cache-control", "max-age=300");
    return sendJson(response, 200, documents.get(path));
  }
  // Clients look for metadata before they have a token, and take 404 for "none".
  if (path.includes("/.well-known/")) return sendJson(response, 404, { error: "not_found" });
  if (tokens !== undefined) {
    const checked = await tokens.check(request, request.headers.authorization);
    if (!checked.ok && checked.wait > 0) return sendTooMany(response, "refused tokens", checked.wait);
    if (!checked.ok) return sendResponse(response, checked.response);
    request.auth = checked.auth;
  }
  const wait = rateLimit.take(principalOf(request.auth));
  if (wait > 0) return sendTooMany(response, "requests", wait);
  if (path === "/metrics") return operations.metrics(request, response);
  if (!takesRequests) return sendError(response, 404, -32000, "This process works, and serves no MCP");
  if (path === "/ag-ui" && agUi !== undefined) {
    if (!hasMethod(request, response, "POST")) return;
    const read = await taken(request, response);
    if (read === undefined) return;
    endpoint.open?.add(request, response, false);
    keepOpen(response, endpoint.keepAliveMs);
    return agUi(read.value, request.auth, response);
  }
  if (path !== MCP_PATH) return sendError(response, 404, -32000, `Not found: the endpoint is ${MCP_PATH}`);
  return serveMcp(endpoint, request, response);
}

/** Keeps proxies from buffering a stream, and from closing it while it is silent. */
function keepOpen(response: ServerResponse, everyMs: number): void {
  response.setHeader("x-accel-buffering", "no");
  const timer = setInterval(() => {
    if (response.headersSent && !response.writableEnded) response.write(": keepalive\n\n");
  }, everyMs);
  response.once("close", () => clearInterval(timer));
}

function sendTooMany(response: ServerResponse, what: string, seconds: number): void {
  response.setHeader("retry-after", String(seconds));
  sendError(response, 429, -32000, `Too many ${what}: try again in ${seconds} s`);
}

async function taken(request: AuthenticatedRequest, response: ServerResponse) {
  const read = await readJsonBody(request);
  if (read.ok) return read;
  if (read.status === 415) response.setHeader("accept-encoding", "identity");
  sendJson(response, read.status, read.answer);
  return undefined;
}

async function serveMcp(
  { options, stateless, sessions, operations, open }: Endpoint,
  request: AuthenticatedRequest,
  response: ServerResponse,
): Promise<void> {
  if (!hasMethod(request, response, "GET", "POST", "DELETE")) return;
  let body: unknown;
  let errors: readonly ErrorAnswer[] = [];
  if (request.method === "POST") {
    const json = await taken(request, response);
    if (json === undefined) return;
    const read = messagesIn(json.value);
    if (!read.ok) return sendJson(response, read.status, read.answer);
    ({ value: body, errors } = read);
    const challenge = scopeChallenge(body, request.auth);
    if (challenge !== undefined) {
      operations.refusals.count("missing_scope");
      const { scopes, response: refusal } = challenge;
      options.logger.info("auth.scope_missing", { principal: principalOf(request.auth), scopes });
      return sendResponse(response, refusal);
    }
  }
  const isListening = isJSONRPCRequest(body) && body.method === "subscriptions/listen";
  open?.add(request, response, request.method === "GET" || isListening);
  const opening = isInitializeRequest(body) ? body : undefined;
  // Its body names the revision; a header that is left from an earlier session does not count.
  if (opening !== undefined && opening.params._meta?.[PROTOCOL_VERSION_META_KEY] === undefined)
    delete request.headers["mcp-protocol-version"];
  if (!(await isLegacyRequest(await toWebRequest(request, body), body)))
    return stateless.serve(request, response, body);
  spellAccept(request);
  if (opening !== undefined) return sessions.open(request, response, opening);
  const id = request.headers["mcp-session-id"];
  if (typeof id === "string" && id !== "") return sessions.serve(id, request, response, body, errors);
  const message = "Bad request: send initialize first, then Mcp-Session-Id with every request";
  sendError(response, 400, -32000, message);
}

export interface HttpOptions {
  /** A loopback address; without `authenticator` anything else is refused. */
  host: string;
  /** 0 picks a free port. */
  port: number;
  allowedHosts: readonly string[];
  allowedOrigins: readonly string[];
  /** Authenticates requests and names their principals. Absent: all requests are accepted, as those of one user. */
  authenticator?: Authenticator | undefined;
  /** The page for people who log in with a token. Absent, or without `authenticator`: there is none. */
  page?: Omit<HttpPageOptions, "take" | "logIn" | "logOut"> | undefined;
  /** The log-in of this server's own people, whose tokens `authenticator` accepts. Absent: there is none. */
  logIn?: LogInOptions | undefined;
  /** JSON documents that anyone may read, by path. */
  documents?: ReadonlyMap<string, unknown>;
  factory: McpServerFactory;
  changes: ResourceChanges;
  logger: Logger;
  /** Serves AG-UI at `/ag-ui`. Absent: it is not served. */
  agUi?: AgUiEndpoint | undefined;
  /** Default: the system's for times, the monotonic one for durations. */
  clock?: Clock;
  /** Numbers for `/metrics`. Absent: there are none. */
  statistics?: () => Promise<RunStatistics>;
  /** Fails unless the server can do its work; `/readyz` reports it. Absent: it always can. */
  assertReady?: () => Promise<void>;
  /** True if MCP is served; otherwise only probes and metrics of a worker process are. Default true. */
  takesRequests?: boolean;
  /** Requests that a principal may make in a minute; one more gets 429. Default 1200. */
  requestsPerMinute?: number;
  /** Tokens from one address that may be refused in a minute; then 429 instead of 401. Default 60. */
  refusalsPerMinute?: number;
  /** Addresses and networks whose `X-Forwarded-For` is believed. Default: none. */
  trustedProxies?: readonly string[];
  /** Opens the message store of sessions, for resumed streams. */
  openStreams: () => Promise<StreamStore>;
  /** Opens the state shared with other servers of these clients. Absent: there are none. */
  openShared?: (() => Promise<SharedState>) | undefined;
  /** Sessions of 2025-era clients at one time. Default 200. */
  sessions?: number;
  /** Sessions of one principal. Default 100. */
  sessionsPerPrincipal?: number;
  /** Milliseconds in which a request, its body included, has to arrive. Default 30 seconds. */
  receiveMs?: number;
  /** Milliseconds in which a client must read some of its pending data. Default 60 seconds. */
  readMs?: number;
  /** Milliseconds between two comments in a silent stream. Default 10 seconds. */
  keepAliveMs?: number;
}

export interface HttpServer {
  /** Address of the endpoint. */
  url: string;
  /** Address of the page. Absent: there is none. */
  pageUrl?: string;
  /** Closes sessions and streams of invalid tokens; call it after tokens were revoked. */
  recheck(): Promise<void>;
  /** Signals load balancers to send nothing more, and answers requests that still arrive. */
  leave(): void;
  /** Ends sessions and streams, then stops listening. */
  close(): Promise<void>;
}

/**
 * Serves MCP over Streamable HTTP on one endpoint, `/mcp`: 2026-07-28 requests without state, 2025-era
 * clients with sessions. Without an authenticator it listens on this machine only, and everyone who
 * reaches it is the same principal.
 */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const { logger } = options;
  if (options.authenticator === undefined) requireLoopback(options.host);
  const endpoint = createEndpoint(options);
  const { logIn, page } = await openPages(options, endpoint);
  const handle = createHandler(options, endpoint, { logIn, page });
  const server = createServer(serverLimits(options), (request, response) => {
    response.once("close", () => endpoint.operations.requests.count(String(response.statusCode)));
    endpoint.guard(response);
    response.setHeader("x-content-type-options", "nosniff");
    handle(request, response).catch((error: unknown) => {
      if (response.destroyed) return;
      if (error instanceof StorageError) {
        logger.warn("http.storage_failed", { error });
        const message = "The server cannot reach its storage now. Try again in a moment.";
        return sendError(response, 503, -32_000, message);
      }
      logger.error("http.request_failed", { error });
      sendError(response, 500, -32603, "Internal server error");
    });
  });
  const port = await listen(server, options).catch(async (error: unknown) => {
    await endpoint.events.close();
    throw error;
  });
  const recheck = async (): Promise<void> => endpoint.open?.recheck();
  const stopTimers = startTimers(logger, [
    [60_000, () => endpoint.sessions.expire()],
    // Shorter than a session has to be idle to make room for another.
    [15_000, () => endpoint.sessions.tellUse()],
    [1000, () => endpoint.rateLimit.tell()],
    [1000, () => endpoint.refusalLimit.tell()],
    [1000, () => endpoint.open?.expire()],
    [HELD_MS, recheck],
  ]);

  const origin = `http://${inUrl(options.host)}:${port}`;
  return {
    url: origin + MCP_PATH,
    ...(page === undefined ? {} : { pageUrl: options.page?.publicUrl?.href ?? `${origin}/` }),
    recheck,
    leave: () => void (endpoint.operations.isLeaving = true),
    close: async () => {
      stopTimers();
      endpoint.operations.isClosing = true;
      page?.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all([endpoint.stateless.close(), endpoint.sessions.close()]);
      // Answers may still be on their way out; afterwards their connections are idle.
      const idle = setInterval(() => server.closeIdleConnections(), 10);
      const cut = setTimeout(() => server.closeAllConnections(), 300);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
      await endpoint.events.close();
    },
  };
}

async function openPages({ logIn, page }: HttpOptions, { tokens, rateLimit }: Endpoint) {
  if (tokens === undefined) return {};
  const own = logIn && new (await import("./login/login.ts")).LoginServer(logIn, tokens);
  const take = (principal: string): number => rateLimit.take(principal);
  const shown = page && { ...page, take, ...own?.forPage };
  return { logIn: own, page: shown && new (await import("./http-page.ts")).HttpPage(shown, { tokens }) };
}

/** Answers requests: probes, then refusals by header, then the log-in, the page and the route. */
function createHandler(
  options: HttpOptions,
  endpoint: Endpoint,
  { logIn, page }: { logIn?: LoginServer | undefined; page?: HttpPage | undefined },
) {
  const { operations } = endpoint;
  const guard = createRequestGuard(options);
  const hostGuard = createHostGuard(options);
  const allows = originMatcher(options.allowedOrigins);
  return async (request: AuthenticatedRequest, response: ServerResponse): Promise<void> => {
    if (await operations.probe(request, response, pathOf(request))) return;
    if (!hasSingleHeaders(request, response)) return;
    const pageOfRequest = [logIn, page].find((one) => one?.isFor(request));
    if (!(pageOfRequest ? hostGuard : guard)(request, response)) return;
    if (operations.isClosing) {
      response.setHeader("connection", "close");
      return sendError(response, 503, -32_000, "The server is shutting down. Connect again.");
    }
    if (pageOfRequest !== undefined) return pageOfRequest.serve(request, response);
    if (answerCors(request, response, allows)) return;
    if (page !== undefined && isApiAddress(pathOf(request))) return page.serveApi(request, response);
    await route(endpoint, request, response);
  };
}

/** Limits how long a client may take to send; a slower one is cut off, authenticated or not. */
const serverLimits = ({ receiveMs = 30_000 }: HttpOptions): ServerOptions => ({
  headersTimeout: Math.min(10_000, receiveMs),
  requestTimeout: receiveMs,
  connectionsCheckingInterval: Math.min(5000, receiveMs),
  // Longer than proxies keep theirs, so that none sends a request into a connection that is being closed.
  keepAliveTimeout: 75_000,
  // A token may be long; see `auth.ts`.
  maxHeaderSize: 32_768,
});

/** Starts the periodic chores of a server, which do not keep the process alive; returns a function to stop them. */
function startTimers(
  logger: Logger,
  chores: readonly (readonly [everyMs: number, work: () => void | Promise<void>])[],
): () => void {
  const timers = chores.map(([everyMs, work]) =>
    setInterval(() => {
      Promise.resolve(work()).catch((error: unknown) => logger.warn("http.chore_failed", { error }));
    }, everyMs).unref(),
  );
  return () => timers.forEach((timer) => clearInterval(timer));
}

type Endpoint = ReturnType<typeof createEndpoint>;

function createEndpoint(options: HttpOptions) {
  const { factory, logger, clock = systemClock, changes, authenticator, openShared } = options;
  const { keepAliveMs = 10_000 } = options;
  const elapsed = options.clock ?? monotonicClock;
  const onerror = (error: Error): void => logger.debug("http.rejected", { error: error.message });
  const stateless = new StatelessHandlers({ factory, changes, keepAliveMs, onerror });
  const events = new SessionEvents({ open: options.openStreams, clock, logger });
  const sessions = new Sessions({
    factory,
    events,
    shared: openShared && new SharedSessions(openShared),
    logger,
    clock: elapsed,
    limit: options.sessions ?? 200,
    limitPerOwner: options.sessionsPerPrincipal ?? 100,
    idleMs: 30 * 60_000,
    keepAliveMs,
  });
  const { statistics, assertReady, readMs: patienceMs } = options;
  const count = (): number => sessions.size;
  const operations = new Operations({ statistics, assertReady, clock: elapsed, logger, sessions: count });
  const guard = slowReaderGuard({ logger, patienceMs, cut: operations.readersCut });
  const open = authenticator && new OpenResponses({ authenticator, clock, logger });
  const limitOf = (name: string, perMinute: number): RateLimit =>
    new RateLimit({ perMinute, clock: elapsed, shared: openShared && { name, open: openShared } });
  const rateLimit = limitOf("requests", options.requestsPerMinute ?? 1200);
  const refusalLimit = limitOf("refusals", options.refusalsPerMinute ?? 60);
  const addressOf = clientAddress(options.trustedProxies ?? []);
  const { refusals } = operations;
  const counted = { refusalLimit, visits: limitOf("log-in", 120), refusals };
  const tokens = authenticator && tokenCheck(authenticator, { ...counted, addressOf, logger });
  const limits = { rateLimit, refusalLimit, keepAliveMs };
  return { options, stateless, events, sessions, operations, guard, open, tokens, ...limits };
}

/** Resolves with the port once `server` listens; without authentication it does so on loopback only. */
async function listen(server: Server, { host, port, authenticator }: HttpOptions): Promise<number> {
  server.listen(port, unbracket(host));
  await once(server, "listening").catch((cause: NodeJS.ErrnoException) => {
    const why = cause.code === "EADDRINUSE" ? "the port is in use" : (cause.code ?? "unknown error");
    const message = `Cannot listen on ${inUrl(host)}:${port}: ${why}. Choose another one with --port.`;
    throw new ConfigurationError("http_listen_failed", message, { cause });
  });
  const address = server.address() as AddressInfo; // it listens on a port
  if (authenticator !== undefined || isLoopback(address.address)) return address.port;
  server.close();
  const message = `--host ${host} does not lead to this machine. Use 127.0.0.1, ::1 or localhost.`;
  throw new ConfigurationError("http_host_not_loopback", message);
}
