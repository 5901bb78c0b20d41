import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { silentLogger } from "../../src/core/logger.ts";
import { createServerFactory } from "../../src/server/create-server.ts";
import type { ServerDeps } from "../../src/server/deps.ts";
import { serveHttp } from "../../src/server/http/http.ts";
import type { Connector } from "./clients.ts";

/** Reaches a server over HTTP on a free loopback port; `cleanUp` gets what closes it. */
export async function httpConnector(
  deps: ServerDeps,
  cleanUp: (close: () => Promise<void>) => void,
): Promise<Connector> {
  const server = await serveHttp({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: [],
    allowedOrigins: [],
    factory: createServerFactory(deps),
    changes: deps.changes,
    logger: silentLogger,
  });
  cleanUp(() => server.close());
  const url = new URL(server.url);
  return { first: () => new FirstHttp(url), modern: () => new ModernHttp(url) };
}
