import { setTimeout as delay } from "node:timers/promises";
import { untilSignal } from "../app/lifecycle.ts";
import type { OpenedRuns } from "../app/open-runs.ts";
import type { ServerParts, ServerSettings } from "../app/server-deps.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import type { TokenConfig } from "../config/sections.ts";
import { systemClock, isDoneWithin } from "../core/clock.ts";
import { ConfigurationError, isTransient } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { Holds } from "../runs/shares.ts";
import { createAuthenticator, tokenVerifier } from "../server/auth/auth.ts";
import { type HttpOptions, serveHttp } from "../server/http/http.ts";
import type { ServerDeps } from "../server/contracts/deps.ts";
import { isSecureUrl } from "../web/url.ts";
import { createServerFactory } from "../server/protocol/create-server.ts";
import { complain } from "./output.ts";
import { print } from "./terminal/printer.ts";

/** Time limit for closing, in ms; then the process exits anyway. */
const CLOSE_MS = 850;

export interface ServeOptions {
  authentication: Authentication;
  /** True if MCP is served; otherwise only probes and metrics are. Default true. */
  takesRequests?: boolean;
  /** Reads the configuration again. */
  load: () => LoadedConfig;
  listening: (url: string) => void;
  publicUrl?: URL | undefined;
}

/**
 * Listens until a signal arrives; then parks the runs at work and releases all resources. Returns the exit code: 2 if
 * the configuration does not fit the storage.
 */
export async function serveOverHttp(
  config: Config,
  parts: ServerParts,
  { authentication: { tokens, holds: _holds, ...authentication }, load, ...options }: ServeOptions,
): Promise<0 | 2> {
  const { http, limits } = config;
  const { deps } = parts;
  const { changes, logger } = deps;
  const { listening, publicUrl, takesRequests = true } = options;
  const hasPage = takesRequests && config.page !== false;
  const page = hasPage ? (await import("../app/open-page.ts")).pageOf(config, deps, publicUrl) : undefined;
  const agUi =
    takesRequests && http.agUi ? (await import("../server/ag-ui/ag-ui.ts")).agUiEndpoint(deps) : undefined;
  const server = await serveHttp({
    ...http,
    ...authentication,
    page,
    agUi,
    takesRequests,
    factory: createServerFactory(deps),
    changes,
    logger,
    openStreams: () => parts.openStreams(),
    openShared: parts.openShared,
    statistics: async () => (await parts.operator()).statistics(),
    assertReady: async () => (await parts.operator()).assertWritable(),
  });
  print(`Serving ${takesRequests ? "MCP" : "probes and metrics"} at ${server.url}\n`, process.stderr);
  listening(server.url);
  if (server.pageUrl !== undefined) logger.info("page.started", { address: server.pageUrl });
  const following = tokens.follow(load, logger, () => server.recheck());
  // Runs left by an earlier process are resumed, even if no client connects, and `open` finds a page on this machine.
  const reason = await Promise.race([untilSignal(), refusal(parts, () => void deps.page?.address())]);
  logger.info("server.closing", { reason });
  server.leave();
  if (reason !== REFUSED) await drained(parts, limits.drain);
  following.stop();
  const closed = server.close().then(() => parts.close());
  await isDoneWithin(CLOSE_MS, closed);
  return reason === REFUSED ? 2 : 0;
}

/** Why a process ends whose configuration does not fit the storage. */
export const REFUSED = "configuration";

/** Opens the runs. Resolves only if the configuration does not fit the storage, with that problem. */
export async function refusal(
  parts: ServerParts,
  isOpened: () => void = () => undefined,
): Promise<typeof REFUSED> {
  const error: unknown = await opened(parts).catch((thrown: unknown) => thrown);
  if (error instanceof ConfigurationError) {
    complain(error.message);
    return REFUSED;
  }
  if (error === undefined) isOpened();
  else parts.deps.logger.error("runs.not_opened", { error });
  return new Promise(() => {});
}

/** Opens runs and their storage; while it cannot be reached, tries again. Throws on permanent failures. */
async function opened(parts: ServerParts): Promise<void> {
  for (let waitMs = 500; ; waitMs = Math.min(waitMs * 2, 10_000)) {
    try {
      await parts.operator();
      return;
    } catch (error) {
      if (!isTransient(error)) throw error;
      parts.deps.logger.warn("runs.not_opened", { error });
    }
    await delay(waitMs);
  }
}

/** Lets runs at work end, so many seconds at most; a second signal ends the wait. */
export async function drained(parts: ServerParts, seconds: number): Promise<void> {
  if (seconds > 0) {
    const drain = parts.operator().then((runs) => runs.drain(seconds * 1000));
    await Promise.race([drain.catch(() => undefined), untilSignal()]);
  }
}

export interface Authentication extends Pick<HttpOptions, "authenticator" | "documents" | "allowedHosts"> {
  logIn?: HttpOptions["logIn"];
  tokens: CurrentTokens;
  holds: Holds;
}

/**
 * Makes the authenticator. With tokens, OAuth or a log-in configured, every request needs a token, also on loopback.
 * `parts`: those of the server, for its key and its people.
 */
export async function authenticationOf(
  { oauth, ...http }: Config["http"],
  { env, logger }: Pick<ServerSettings, "env" | "logger">,
  parts: () => { deps: Pick<ServerDeps, "stateKey">; operator: () => Promise<Pick<OpenedRuns, "logins">> },
): Promise<Authentication> {
  const key = (): Promise<Uint8Array> => parts().deps.stateKey();
  const logins = async () => (await parts().operator()).logins;
  const own = http.publicUrl === undefined ? [] : [new URL(http.publicUrl).hostname];
  const tokens = new CurrentTokens(http.tokens);
  const verifiers = http.tokens.length === 0 ? [] : [tokenVerifier(() => tokens.tokens)];
  const issuer = http.owner ? ownIssuer(http) : undefined;
  const claims = oauth ?? (issuer && { issuer, resource: `${issuer}/mcp` });
  const server = claims && (await import("../server/auth/verifiers.ts"));
  if (oauth && server) verifiers.push(server.oauthVerifier(oauth, { env, clock: systemClock, logger }));
  if (issuer && server) verifiers.push(server.loginVerifier(logins, `${issuer}/mcp`));
  const metadata = claims &&
    server && { oauth: claims, resourceMetadataUrl: server.resourceMetadataUrl(claims) };
  // Below the path of the server, because a proxy may pass on nothing else.
  const address = issuer && { resourceMetadataUrl: `${issuer}/.well-known/oauth-protected-resource/mcp` };
  const authenticator = createAuthenticator({ verifiers, key, ...metadata, ...address });
  return {
    tokens,
    holds: authenticator.holds,
    allowedHosts: [...http.allowedHosts, ...own, ...(oauth ? [new URL(oauth.resource).hostname] : [])],
    ...(claims && server && { documents: server.resourceMetadata(claims) }),
    ...(verifiers.length > 0 && { authenticator }),
    ...(issuer && { logIn: { logins, issuer, redirects: http.redirects, logger } }),
  };
}

/** The address of this server as an authorization server, without a slash at its end. */
function ownIssuer({ publicUrl, host, port }: Config["http"]): string {
  const address = publicUrl ?? `http://${host}:${port || "?"}`;
  if (isSecureUrl(address)) return address.endsWith("/") ? address.slice(0, -1) : address;
  const message =
    "--owner needs http.publicUrl, the address that clients use. Without it, listen on 127.0.0.1 or localhost, at a fixed port.";
  throw new ConfigurationError("http_public_url_missing", message);
}

/** Interval at which the configuration is reread, in ms. */
const INTERVAL_MS = 5000;

/** The tokens of the configuration as it is now, so that one can be taken away without a restart. */
export class CurrentTokens {
  tokens: readonly TokenConfig[];

  constructor(tokens: readonly TokenConfig[]) {
    this.tokens = tokens;
  }

  /** Looks for changes until stopped. Ignores an invalid configuration and keeps the earlier one. */
  follow(load: () => LoadedConfig, logger: Logger, changed: () => Promise<void>): { stop(): void } {
    let problems = "";
    const look = async (): Promise<void> => {
      const loaded = load();
      const found = loaded.ok ? "" : loaded.problems.join("; ");
      if (found !== "" && found !== problems) logger.warn("config.not_reloaded", { problems: found });
      problems = found;
      if (!loaded.ok) return;
      const { tokens } = loaded.config.http;
      if (JSON.stringify(tokens) === JSON.stringify(this.tokens)) return;
      this.tokens = tokens;
      logger.info("auth.tokens_changed", { tokens: tokens.length });
      await changed();
    };
    const timer = setInterval(() => {
      look().catch((error: unknown) => logger.warn("config.not_reloaded", { error }));
    }, INTERVAL_MS).unref();
    return { stop: () => clearInterval(timer) };
  }
}
