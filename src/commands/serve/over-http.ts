import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import type { Logger } from "../../core/logger.ts";
import { tokenVerifier } from "../../server/auth-tokens.ts";
import { createAuthenticator } from "../../server/auth.ts";
import { createServerFactory } from "../../server/create-server.ts";
import { serveHttp, type HttpOptions } from "../../server/http.ts";
import type { ServerParts } from "../server-deps.ts";
import { atMost, untilSignal } from "./process.ts";

/** After this the process ends, whatever is still closing. */
const CLOSE_MS = 850;

/** Listens until a signal comes; then parks what runs and releases everything. */
export async function serveOverHttp(
  { http, dataDir }: Config,
  parts: ServerParts,
  listening: (url: string) => void,
): Promise<void> {
  const { deps } = parts;
  const { changes, logger } = deps;
  const signal = untilSignal();
  const server = await serveHttp({
    ...http,
    ...(await authenticationOf(http, logger)),
    factory: createServerFactory(deps),
    changes,
    logger,
    eventFile: join(dataDir, "streams.db"),
    statistics: async () => (await deps.runs()).statistics(),
  });
  process.stderr.write(`Serving MCP at ${server.url}\n`);
  listening(server.url);
  // A run that an earlier process left is taken up again, whether or not a client comes.
  deps.runs().catch((error: unknown) => logger.error("runs.not_opened", { error }));
  logger.info("server.closing", { reason: await signal });
  await atMost(
    CLOSE_MS,
    server.close().then(() => parts.close()),
  );
}

/** Whoever configures tokens or OAuth wants every request to carry a token, on loopback as well. */
export async function authenticationOf(
  { tokens, oauth, allowedHosts }: Config["http"],
  logger: Logger,
): Promise<Pick<HttpOptions, "authenticator" | "documents" | "allowedHosts">> {
  const known = tokens.length === 0 ? [] : [tokenVerifier(tokens)];
  if (oauth === undefined) {
    return {
      allowedHosts,
      ...(tokens.length === 0 ? {} : { authenticator: createAuthenticator({ verifiers: known }) }),
    };
  }
  const { oauthVerifier, resourceMetadata, resourceMetadataUrl } = await import("../../server/auth-oauth.ts");
  return {
    allowedHosts: [...allowedHosts, new URL(oauth.resource).hostname],
    documents: resourceMetadata(oauth),
    authenticator: createAuthenticator({
      verifiers: [...known, oauthVerifier(oauth, logger)],
      resourceMetadataUrl: resourceMetadataUrl(oauth),
    }),
  };
}
