import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { toNodeHandler, toWebRequest } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  isInitializeRequest,
  isJsonContentType,
  isLegacyRequest,
  type McpHttpHandler,
  type McpServerFactory,
} from "@modelcontextprotocol/server";
import { systemClock, type Clock } from "../core/clock.ts";
import { ConfigurationError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { Principal } from "../runs/run.ts";
import { createRequestGuard, inUrl, isLoopback, requireLoopback, unbracket } from "./host-guard.ts";
import { readJsonBody, sendError } from "./http-body.ts";
import { listenedUris, type ResourceChanges } from "./resources/bus.ts";
import { Sessions } from "./sessions.ts";

export interface HttpOptions {
  /** A loopback address; anything else is refused. */
  host: string;
  /** 0 picks a free port. */
  port: number;
  allowedHosts: readonly string[];
  allowedOrigins: readonly string[];
  factory: McpServerFactory;
  changes: ResourceChanges;
  logger: Logger;
  clock?: Clock;
  /** Sessions of 2025-era clients at one time. Default 100. */
  maxSessions?: number;
  /** Milliseconds after which an unused session ends. Default 30 minutes. */
  sessionIdleMs?: number;
}

export interface HttpServer {
  /** Address of the endpoint. */
  url: string;
  /** Ends sessions and streams, then stops listening. */
  close(): Promise<void>;
}

/** Without authentication everyone who reaches the port is this user. */
const PRINCIPAL: Principal = "local";
const PATH = "/mcp";
const METHODS = ["GET", "POST", "DELETE"];
const KEEP_ALIVE_MS = 10_000;
const EXPIRY_INTERVAL_MS = 60_000;
const CLOSE_GRACE_MS = 300;

/**
 * Serves MCP over Streamable HTTP on one endpoint, `/mcp`: 2026-07-28 requests without state, 2025-era
 * clients with sessions. Requests are not authenticated, so it listens on this machine only and
 * everyone who reaches it is the principal `local`.
 */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  requireLoopback(options.host);
  const { factory, logger, clock = systemClock, changes } = options;
  const onerror = (error: Error): void => logger.debug("http.rejected", { error: error.message });
  const modern = createMcpHandler(factory, { legacy: "reject", keepAliveMs: KEEP_ALIVE_MS, onerror });
  const sessions = new Sessions({
    factory,
    logger,
    clock,
    limit: options.maxSessions ?? 100,
    idleMs: options.sessionIdleMs ?? 30 * 60_000,
    keepAliveMs: KEEP_ALIVE_MS,
  });
  const route = createRoute({ modern, sessions, changes });
  const guard = createRequestGuard(options);
  const server = createServer((request, response) => {
    if (!guard(request, response)) return;
    route(request, response).catch((error: unknown) => {
      if (response.destroyed) return;
      logger.error("http.request_failed", { error });
      sendError(response, 500, -32603, "Internal server error");
    });
  });
  const port = await listen(server, options);
  const detach = changes.attach(modern.notify);
  const expiry = setInterval(() => {
    sessions.expire().catch((error: unknown) => logger.warn("http.expiry_failed", { error }));
  }, EXPIRY_INTERVAL_MS).unref();

  return {
    url: `http://${inUrl(options.host)}:${port}${PATH}`,
    close: async () => {
      clearInterval(expiry);
      detach();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.all([modern.close(), sessions.close()]);
      // What was answered just now may still be on its way out; then its connection is idle.
      const idle = setInterval(() => server.closeIdleConnections(), 10);
      const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
      await closed;
      clearInterval(idle);
      clearTimeout(cut);
    },
  };
}

interface Route {
  modern: McpHttpHandler;
  sessions: Sessions;
  changes: ResourceChanges;
}

function createRoute({ modern, sessions, changes }: Route) {
  const serveModern = toNodeHandler(modern);
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.url?.split("?", 1)[0] !== PATH) {
      return sendError(response, 404, -32000, `Not found: the endpoint is ${PATH}`);
    }
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
      for (const uri of listenedUris(body)) changes.follow(PRINCIPAL, uri);
      return serveModern(request, response, body);
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
  };
}

/** Resolves with the port once `server` listens, and makes sure that it does so on loopback. */
async function listen(server: Server, { host, port }: HttpOptions): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "the port is in use" : (cause.code ?? "unknown error");
      reject(
        new ConfigurationError(
          "http_listen_failed",
          `Cannot listen on ${inUrl(host)}:${port}: ${why}. Choose another http.port.`,
          { cause },
        ),
      );
    });
    server.listen(port, unbracket(host), resolve);
  });
  const address = server.address();
  if (address !== null && typeof address === "object" && isLoopback(address.address)) return address.port;
  server.close();
  throw new ConfigurationError(
    "http_host_not_loopback",
    `http.host "${host}" does not lead to this machine. Use 127.0.0.1, ::1 or localhost.`,
  );
}
