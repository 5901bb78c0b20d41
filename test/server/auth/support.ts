import { createHash } from "node:crypto";
import { StreamableHTTPClientTransport as ModernHttp } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport as FirstHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import { serverParts } from "../../../src/app/server-deps.ts";
import type { TokenConfig } from "../../../src/config/sections.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { tokenVerifier, createAuthenticator } from "../../../src/server/auth/auth.ts";
import type { HttpOptions, HttpServer } from "../../../src/server/http/http.ts";
import type { ClientKind, Person, TestClient } from "../../support/clients.ts";
import { connect, openHome } from "../../support/harness.ts";
import type { Think } from "../../support/harness-brain.ts";
import { openHttp } from "../../support/harness-http.ts";

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

export const entry = (
  token: string,
  principal: string,
  scopes: TokenConfig["scopes"] = ["run", "approve", "read"],
): TokenConfig => ({ sha256: sha256(token), principal, scopes });

export const withTokens = (...tokens: TokenConfig[]) =>
  createAuthenticator({ verifiers: [tokenVerifier(() => tokens)] });

export interface Guarded extends HttpServer {
  connect(token: string, kind: ClientKind, person?: Person): Promise<TestClient>;
}

/** The product over HTTP with authentication, with a data directory and a model of its own. */
export async function openGuarded(
  think: Think,
  options: Pick<HttpOptions, "authenticator"> & Partial<HttpOptions>,
  env: Record<string, string> = {},
): Promise<Guarded> {
  const home = await openHome({ think, env });
  const loaded = loadConfig({ flags: {}, cwd: "/", home: "/", platform: "linux", env: home.env });
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  const { deps, operator, close } = serverParts({
    config: loaded.config,
    env: home.env,
    version: "0.0.0-test",
    logger: silentLogger,
  });
  onTestFinished(close);
  const server = await openHttp(deps, onTestFinished, {
    statistics: async () => (await operator()).statistics(),
    ...options,
  });
  const url = new URL(server.url);
  return {
    ...server,
    connect: (token, kind, person) => {
      const init = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
      const connector = { first: () => new FirstHttp(url, init), modern: () => new ModernHttp(url, init) };
      return connect(connector, kind, person);
    },
  };
}
