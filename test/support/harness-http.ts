import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { silentLogger } from "../../src/core/logger.ts";
import { createServerFactory } from "../../src/server/protocol/create-server.ts";
import type { ServerDeps } from "../../src/server/contracts/deps.ts";
import { serveHttp, type HttpOptions, type HttpServer } from "../../src/server/http/http.ts";
import { openStreams } from "../../src/storage/sqlite/streams.ts";
import type { Connector } from "./clients.ts";

type CleanUp = (close: () => Promise<void>) => void;

/** The server over HTTP on a free loopback port; `cleanUp` gets what closes it. */
export async function openHttp(
  deps: ServerDeps,
  cleanUp: CleanUp,
  options: Partial<HttpOptions> = {},
): Promise<HttpServer> {
  const server = await serveHttp({
    openStreams: () => openStreams(":memory:"),
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    allowedOrigins: [],
    factory: createServerFactory(deps),
    changes: deps.changes,
    logger: silentLogger,
    ...options,
  });
  cleanUp(() => server.close());
  return server;
}

/** Reaches such a server. */
export async function httpConnector(deps: ServerDeps, cleanUp: CleanUp): Promise<Connector> {
  const url = new URL((await openHttp(deps, cleanUp)).url);
  return { first: () => new FirstHttp(url), modern: () => new ModernHttp(url) };
}
