import { reserveStdout, sendTraces, surviveRejections, untilSignal } from "../app/lifecycle.ts";
import { type ServerParts, type ServerSettings, serverParts } from "../app/server-deps.ts";
import { type LoadedConfig, loadConfig } from "../config/load.ts";
import { packageVersion } from "../config/paths.ts";
import { commandLine, dataDirFlag } from "../config/program.ts";
import type { Config } from "../config/schema.ts";
import { createLogger } from "../core/logger.ts";
import { serveStdioServer } from "../server/stdio/stdio.ts";
import type { CommandArguments, ExitCode } from "./command.ts";
import { complain } from "./output.ts";
import type { authenticationOf } from "./serve-http.ts";

const version = packageVersion();

/** Serves until the client leaves or a signal comes, then exits the process. */
export async function runServe(given: CommandArguments): Promise<ExitCode> {
  const { flags, host } = given;
  const loaded = loadedFor(given);
  if (loaded === undefined) return 2;
  const { config, load, logger } = loaded;
  for (const message of loaded.warnings) logger.warn("config.warning", { message });
  const overStdio = flags["http"] !== true;
  const address = config.http.publicUrl ?? config.http.oauth?.resource.replace(/\/mcp\/?$/, "");
  const publicUrl = address === undefined ? undefined : new URL(address);
  const openCommand = (runId: string): string =>
    commandLine(host, ["runs", "open", runId, ...dataDirFlag(config, host)]);
  const server = { env: host.env, logger };
  const authentication = overStdio ? undefined : await authenticationFor(config.http, server, () => parts);
  const parts: ServerParts = serverParts({
    config,
    env: host.env,
    version,
    logger,
    holds: authentication?.holds,
    page: linkedPage(config, overStdio, publicUrl),
    works: flags["no-work"] !== true,
    // Clients over stdio started this program, so they may read where it is installed.
    ...(overStdio ? { openCommand } : {}),
  });
  const facts = { version, pid: process.pid, workspace: config.workspace ?? null };
  let code: ExitCode = 0;
  if (authentication !== undefined) {
    const { serveOverHttp } = await import("./serve-http.ts");
    const listening = (url: string): void => logger.info("server.started", { ...facts, url });
    code = await serveOverHttp(config, parts, { authentication, load, listening, publicUrl });
  } else {
    const streams = { stdout: reserveStdout(), ...given.connection };
    const { closed } = serveStdioServer(parts.deps, { ...streams, close: () => parts.close() });
    logger.info("server.started", facts);
    await closed;
  }
  await sendTraces(host.env);
  process.exit(code);
}

/** Loaded with a server over HTTP alone. */
const authenticationFor = async (...args: Parameters<typeof authenticationOf>) =>
  (await import("./serve-http.ts")).authenticationOf(...args);

/** The page that results link to. If requests need a token, it is the one over HTTP. */
function linkedPage(
  { page, http: { tokens, oauth, owner } }: Config,
  overStdio: boolean,
  publicUrl: URL | undefined,
): ServerSettings["page"] {
  if (page === false) return undefined;
  if (overStdio) return "local";
  if (tokens.length > 0 || oauth !== undefined || owner) return publicUrl ?? "request";
  return page ? "local" : undefined;
}

/** Works on runs that servers on the same storage take, until a signal comes, then exits the process. */
export async function runWork(given: CommandArguments): Promise<ExitCode> {
  const { flags, host } = given;
  const loaded = loadedFor(given);
  if (loaded === undefined) return 2;
  const { config, load, logger, warnings } = loaded;
  if (config.workspace === undefined) return complain(warnings, 2);
  reserveStdout();
  const isOverHttp = flags["http"] === true;
  const server = { env: host.env, logger };
  const authentication = isOverHttp ? await authenticationFor(config.http, server, () => parts) : undefined;
  const holds = authentication?.holds;
  const parts: ServerParts = serverParts({ config, env: host.env, version, logger, holds });
  const facts = { version, pid: process.pid, workspace: config.workspace };
  let code: ExitCode = 0;
  if (authentication !== undefined) {
    const { serveOverHttp } = await import("./serve-http.ts");
    const listening = (url: string): void => logger.info("worker.started", { ...facts, url });
    code = await serveOverHttp(config, parts, { authentication, load, listening, takesRequests: false });
  } else {
    // Works without a port for probes.
    const { REFUSED, drained, refusal } = await import("./serve-http.ts");
    const reason = await Promise.race([
      untilSignal(),
      refusal(parts, () => logger.info("worker.started", facts)),
    ]);
    parts.deps.logger.info("worker.closing", { reason });
    if (reason !== REFUSED) await drained(parts, config.limits.drain);
    await parts.close();
    code = reason === REFUSED ? 2 : 0;
  }
  await sendTraces(host.env);
  process.exit(code);
}

/** Reads the configuration, now and with `load` again; `undefined` when it has problems, which are printed. */
function loadedFor({ flags, host }: CommandArguments) {
  const load = (): LoadedConfig => loadConfig({ flags, ...host });
  const loaded = load();
  if (!loaded.ok) {
    complain(loaded.problems);
    return undefined;
  }
  const { config, warnings } = loaded;
  const logger = createLogger(config.logLevel);
  surviveRejections(logger);
  return { config, warnings, logger, load };
}
